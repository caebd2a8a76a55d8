package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** Masks of dropout that are made by threads without a device, and what is refused. */
class DropoutMaskIT {
    private static final int LENGTH = 100_003;

    private static byte[] onHost(long... seeds) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment masks = arena.allocate((long) LENGTH * seeds.length);
            Devices.dropoutMask(20_000, seeds, masks);
            return masks.toArray(ValueLayout.JAVA_BYTE);
        }
    }

    private static byte[] onDevice(int threads, long... seeds) {
        try (Arena arena = Arena.ofConfined();
                Device device = Devices.open("cpu:0", threads, InstructionSet.AUTO)) {
            MemorySegment masks = arena.allocate((long) LENGTH * seeds.length);
            device.dropoutMask(20_000, seeds, masks);
            return masks.toArray(ValueLayout.JAVA_BYTE);
        }
    }

    @Test
    void anyThreadMakesThemAtAnyTime() throws Exception {
        byte[] expected = onDevice(3, 1, -2, 3);
        var masks = new ArrayList<Future<byte[]>>();
        try (var threads = Executors.newFixedThreadPool(4)) {
            for (int i = 0; i < 40; i++) {
                masks.add(threads.submit(() -> onHost(1, -2, 3)));
            }
        }
        for (Future<byte[]> each : masks) {
            assertThat(each.get()).isEqualTo(expected);
        }
    }

    @Test
    void noClientHasNoMask() {
        Devices.dropoutMask(1, new long[0], MemorySegment.NULL);
        Operands.assertRefused(
                () -> Devices.dropoutMask(1, new long[0], Arena.ofAuto().allocate(1)),
                "1 bytes of masks for 0 clients");
    }

    @Test
    void whatIsImpossibleIsRefused() {
        MemorySegment masks = Arena.ofAuto().allocate(7);
        Operands.assertRefused(() -> Devices.dropoutMask(1, new long[2], masks), "7 bytes of masks for 2 clients");
        Operands.assertRefused(() -> Devices.dropoutMask(-1, new long[1], masks), "left = -1");
        Operands.assertRefused(() -> Devices.dropoutMask(65_537, new long[1], masks), "left = 65537");
        assertThatThrownBy(() -> Devices.dropoutMask(1, new long[1], MemorySegment.ofArray(new byte[7])))
                .isInstanceOf(IllegalArgumentException.class);
        assertThat(masks.toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
    }

    @Test
    void aVirtualThreadMakesNone() throws Exception {
        try (var virtual = Executors.newVirtualThreadPerTaskExecutor()) {
            Callable<byte[]> call = () -> onHost(1);
            assertThatThrownBy(() -> virtual.submit(call).get())
                    .hasRootCauseInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("platform thread");
        }
    }
}
