package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CompletableFuture;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Copies beside the operations of a device, and the events that order the two. */
class CopyStreamIT {
    private static final String NAMES = "org.fedcomuon.testing.TestDevices#names";
    private static final int LENGTH = 100;

    @AfterEach
    void nothingIsLeft() {
        if (TestDevices.simulated().findAny().isPresent()) {
            assertThat(Simulator.liveBytes(-1)).isZero(); // of all devices, and pinned
        }
    }

    private static float[] count() {
        var values = new float[LENGTH];
        for (int i = 0; i < LENGTH; i++) {
            values[i] = i - 50;
        }
        return values;
    }

    @ParameterizedTest
    @MethodSource(NAMES)
    void copiesFromHereAndFromElsewhereInTheOrderOfMarks(String name) {
        try (Device device = Devices.open(name);
                Device other = Devices.open(TestDevices.other(name));
                CopyStream stream = device.copyStream();
                StreamEvent there = other.event();
                StreamEvent here = device.event();
                StreamEvent copied = stream.event();
                Buffer source = other.allocate("source", ElementType.FLOAT32, LENGTH);
                Buffer doubled = other.allocate("doubled", ElementType.FLOAT32, LENGTH);
                Buffer target = device.allocate("target", ElementType.FLOAT32, 2 * LENGTH)) {
            source.copyIn(0, count());
            other.vectorStep(-2, source.batch(1, LENGTH), doubled.batch(1, LENGTH));
            there.record();
            here.record();
            stream.await(there);
            stream.await(here); // the memory has been made
            stream.copy(target, 0, doubled, 0, LENGTH);
            stream.copy(target, LENGTH, target, 10, 20);
            copied.record();
            device.await(copied);
            float[] arrived = target.toFloats(0, 2 * LENGTH);
            for (int i = 0; i < LENGTH; i++) {
                assertThat(arrived[i]).isEqualTo(2f * (i - 50));
                assertThat(arrived[LENGTH + i]).isEqualTo(i < 20 ? 2f * (i - 40) : 0);
            }
        }
    }

    /** The simulation does nothing before somebody waits for it. */
    @Test
    void aCopyThatNobodyWaitsForHasNotHappened() {
        try (Device device = Simulated.open(0);
                CopyStream stream = device.copyStream();
                StreamEvent never = stream.event();
                Buffer source = device.allocate("source", ElementType.FLOAT32, LENGTH);
                Buffer target = device.allocate("target", ElementType.FLOAT32, LENGTH)) {
            source.copyIn(0, count());
            device.synchronize();
            stream.copy(target, 0, source, 0, LENGTH);
            device.await(never); // holds nothing up
            assertThat(target.toFloats(0, LENGTH)).containsOnly(0);
            stream.synchronize();
            assertThat(target.toFloats(0, LENGTH)).isEqualTo(count());
        }
    }

    @ParameterizedTest
    @MethodSource(NAMES)
    void whatDoesNotFitIsRefused(String name) {
        try (Device device = Devices.open(name);
                CopyStream stream = device.copyStream();
                Buffer floats = device.allocate("floats", ElementType.FLOAT32, LENGTH);
                Buffer doubles = device.allocate("doubles", ElementType.FLOAT64, LENGTH)) {
            assertThatThrownBy(() -> stream.copy(floats, 0, doubles, 0, 1))
                    .isInstanceOf(DeviceException.InvalidOperand.class)
                    .hasMessageContaining("doubles holds FLOAT64");
            assertThatThrownBy(() -> stream.copy(floats, 1, floats, 0, LENGTH))
                    .isInstanceOf(DeviceException.InvalidOperand.class);
            assertThatThrownBy(() -> CompletableFuture.runAsync(() -> stream.copy(floats, 0, floats, 50, 1))
                            .join())
                    .hasCauseInstanceOf(WrongThreadException.class);
        }
    }

    @ParameterizedTest
    @MethodSource(NAMES)
    void closingTwiceIsFineAndADeviceClosesItsMarks(String name) {
        StreamEvent forgotten;
        try (Device device = Devices.open(name)) {
            StreamEvent mark = device.event();
            mark.close();
            mark.close();
            assertThatThrownBy(mark::record).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(() -> device.await(mark)).isInstanceOf(IllegalStateException.class);
            CopyStream stream = device.copyStream();
            stream.close();
            stream.close();
            forgotten = device.event();
        }
        assertThatThrownBy(forgotten::record).isInstanceOf(IllegalStateException.class);
        forgotten.close();
    }
}
