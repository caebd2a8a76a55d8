package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class DevicesIT {
    @Test
    void everyDeviceIsAvailableOrSaysWhyNot() {
        var devices = Devices.list();
        assertThat(devices).extracting(Devices.DeviceInfo::name).contains("cpu:0");
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
    void simulatedGpusAreHereOrSayWhyNot() {
        if (TestDevices.simulated().findAny().isEmpty()) {
            assertThatThrownBy(() -> Devices.open("cudasim:0"))
                    .isInstanceOf(DeviceException.Unavailable.class)
                    .hasMessageContaining("cudasim:0 is not available: no libfedcomuon_cudasim.so in ")
                    .hasMessageContaining("-Dfedcomuon.cudasim.library=FILE");
            return;
        }
        try (Device device = Devices.open("cudasim:1", 3, InstructionSet.AUTO)) {
            assertThat(device.name()).isEqualTo("cudasim:1");
            assertThat(device.isHost()).isFalse();
            assertThat(device.instructionSet()).isEqualTo(InstructionSet.AUTO);
            assertThat(device).hasToString("cudasim:1 (%s)".formatted(device.model()));
        }
        assertThat(Devices.list()).extracting(Devices.DeviceInfo::name).contains("cpu:0", "cudasim:0", "cudasim:3");
        assertThatThrownBy(() -> Devices.open("cudasim:99"))
                .isInstanceOf(DeviceException.Unavailable.class)
                .hasMessageContaining("cudasim:99 is not here");
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
    @ValueSource(strings = {"", "gpu:0", "cpu:", "cpu:-1", "cpu:x", "CPU:0", "cudasimulator:0", "cpu:99999999999"})
    void unknownNamesAreRefused(String name) {
        assertThatThrownBy(() -> Devices.open(name))
                .isInstanceOf(DeviceException.Unavailable.class)
                .hasMessageContaining("'" + name + "'");
    }

    @Test
    void aMissingDeviceIsRefusedWithTheReason() {
        Devices.DeviceInfo cuda = Devices.list().stream()
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

    @Test
    void everyLibraryHasALine() {
        assertThat(Devices.vendorLibraries("cuda"))
                .extracting(Devices.VendorLibrary::name)
                .containsExactly("cuBLAS", "cuSOLVER", "NCCL");
        assertThat(Devices.vendorLibraries("cuda"))
                .allSatisfy(library -> assertThat(library.toString()).doesNotContain("\n"));
        assertThat(Devices.vendorLibraries("cpu:0")).isEmpty();
    }

    @Test
    void theSimulatedOnesAreTold() {
        Simulated.open(0).close();
        assertThat(Devices.vendorLibraries("cudasim:1"))
                .extracting(Devices.VendorLibrary::toString)
                .satisfiesExactly(
                        line -> assertThat(line)
                                .matches("cuBLAS 13\\.0\\.0 through Panama \\(.*libcublas\\.so\\.13\\)"),
                        line -> assertThat(line).matches("cuSOLVER 12\\.2\\.0 through Panama \\(.*\\.so\\.12\\)"),
                        line -> assertThat(line).matches("NCCL 2\\.\\d+\\.\\d+ through Panama \\(.*\\.so\\.2\\)"));
    }
}
