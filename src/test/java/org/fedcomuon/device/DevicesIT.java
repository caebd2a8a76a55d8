package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class DevicesIT {
    @Test
    void everyDeviceIsAvailableOrSaysWhyNot() {
        var devices = Devices.list();
        assertThat(devices).extracting(DeviceInfo::name).contains("cpu:0");
        assertThat(devices).anyMatch(device -> device.name().startsWith("cuda"));
        assertThat(devices).allSatisfy(device -> {
            assertThat(device.model()).isNotBlank();
            assertThat(device.available()).isEqualTo(device.reason().isEmpty());
            device.reason().ifPresent(reason -> assertThat(reason).isNotBlank());
        });
        assertThat(devices.getFirst().memoryBytes()).isGreaterThan(1L << 28);
        assertThat(Devices.libraryInfo()).startsWith("fedcomuon ");
    }

    @Test
    void virtualDevicesHaveAnyNumber() {
        try (Device device = Devices.open("cpu:41", 3, InstructionSet.BASELINE)) {
            assertThat(device.name()).isEqualTo("cpu:41");
            assertThat(device.threads()).isEqualTo(3);
            assertThat(device.instructionSet()).isEqualTo(InstructionSet.BASELINE);
        }
    }

    @Test
    void theBestInstructionSetIsChosen() {
        try (Device device = Devices.open("cpu")) {
            assertThat(device.name()).isEqualTo("cpu:0");
            assertThat(device.instructionSet())
                    .isEqualTo(Devices.list().getFirst().instructionSet().orElseThrow());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "gpu:0", "cpu:", "cpu:-1", "cpu:x", "CPU:0", "cpu:99999999999"})
    void unknownNamesAreRefused(String name) {
        assertThatThrownBy(() -> Devices.open(name))
                .isInstanceOf(DeviceException.Unavailable.class)
                .hasMessageContaining("'" + name + "'");
    }

    @Test
    void aMissingDeviceIsRefusedWithTheReason() {
        DeviceInfo cuda = Devices.list().stream()
                .filter(device -> device.name().startsWith("cuda"))
                .findFirst()
                .orElseThrow();
        cuda.reason()
                .ifPresent(reason -> assertThatThrownBy(() -> Devices.open("cuda:0"))
                        .isInstanceOf(DeviceException.Unavailable.class)
                        .hasMessageContaining(reason));
    }

    @Test
    void badThreadCountsAreRefused() {
        assertThatThrownBy(() -> Devices.open("cpu:0", 0, InstructionSet.AUTO))
                .isInstanceOf(DeviceException.InvalidOperand.class)
                .hasMessageContaining("threads");
    }
}
