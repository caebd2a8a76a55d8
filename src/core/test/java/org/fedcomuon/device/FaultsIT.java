package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.fedcomuon.testing.Simulator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A GPU that fails on order: each failure is an exception of its type that names device, operation and size, nothing is
 * left behind, and the device goes on. {@link CudaBlasIT} has the failures of NVIDIA's libraries, {@link NcclIT} those
 * of NCCL.
 */
class FaultsIT {
    private static final int ORDINAL = 1; // not the first: a fault on the wrong device would be found out
    private static final String NAME = "cudasim:1";

    private NativeDevice device;

    @BeforeEach
    void open() {
        device = Simulated.open(ORDINAL);
    }

    @AfterEach
    void close() {
        if (device != null) {
            Simulator.inject("clear", ORDINAL, 0);
            assertThat(device.liveBytes()).isZero();
            device.close();
            assertThat(Simulator.liveBytes(ORDINAL)).isZero();
        }
    }

    @Test
    void noMemoryForABuffer() {
        Simulator.inject("malloc", ORDINAL, 1);
        assertThatThrownBy(() -> device.allocate("momentum", ElementType.FLOAT32, 30_864))
                .isInstanceOf(DeviceException.OutOfMemory.class)
                .hasMessageContaining(NAME)
                .hasMessageContaining("fcm_buffer_allocate")
                .hasMessageContaining("123456 bytes");
        device.allocate("momentum", ElementType.FLOAT32, 30_864).close(); // and then there is
    }

    @Test
    void noPinnedMemoryForAMirror() {
        try (Buffer buffer = device.allocate("momentum", ElementType.FLOAT32, 100)) {
            Simulator.inject("malloc", ORDINAL, 1);
            assertThatThrownBy(buffer::mirror)
                    .isInstanceOf(DeviceException.OutOfMemory.class)
                    .hasMessageContaining(NAME)
                    .hasMessageContaining("400 bytes");
            buffer.mirror().close();
        }
    }

    @Test
    void noMemoryForAnOperationsWorkspace() {
        try (Buffer x = device.allocate("x", ElementType.FLOAT32, 3000);
                Buffer norms = device.allocate("norms", ElementType.FLOAT64, 3)) {
            Simulator.inject("malloc", ORDINAL, 1);
            assertThatThrownBy(() -> device.norm(x.batch(3, 1000), norms.batch(3, 1)))
                    .isInstanceOf(DeviceException.OutOfMemory.class)
                    .hasMessageContaining(NAME)
                    .hasMessageContaining("24 bytes");
            device.norm(x.batch(3, 1000), norms.batch(3, 1));
            assertThat(norms.toDoubles(0, 3)).containsOnly(0);
        }
    }

    @Test
    void aCopyThatFails() {
        try (Buffer x = device.allocate("x", ElementType.FLOAT32, 250)) {
            Simulator.inject("copy", ORDINAL, 1);
            assertThatThrownBy(() -> x.copyIn(0, new float[250]))
                    .isInstanceOf(DeviceException.Fault.class)
                    .hasMessageContaining(NAME)
                    .hasMessageContaining("fcm_copy_in")
                    .hasMessageContaining("1000 bytes");
            Simulator.inject("copy", ORDINAL, 1);
            assertThatThrownBy(() -> x.toFloats(0, 250))
                    .isInstanceOf(DeviceException.Fault.class)
                    .hasMessageContaining("fcm_copy_out")
                    .hasMessageContaining("1000 bytes");
            x.copyIn(0, 1f);
            assertThat(x.toFloats(0, 2)).containsExactly(1f, 0f);
        }
    }

    /** The first launch of an operation fails, then the second, until it has no more. */
    @ParameterizedTest
    @MethodSource("org.fedcomuon.device.OperationTable#operations")
    void aLaunchThatFails(OperationTable.Operation operation) {
        int n = 2_003;
        double[][] expected;
        try (var operands = new Operands(device, 23)) {
            operation.body().run(device, operands, 3, n);
            expected = operands.contents();
        }
        var messages = new ArrayList<String>();
        for (int launch = 1; launch < 30; launch++) {
            try (var operands = new Operands(device, 23)) {
                Simulator.inject("launch", ORDINAL, launch);
                Throwable failure = catchThrowable(() -> operation.body().run(device, operands, 3, n));
                Simulator.inject("clear", ORDINAL, 0);
                if (failure == null) {
                    // The device has gone on as before, NaN and all.
                    assertThat(Arrays.deepEquals(operands.contents(), expected)).isTrue();
                    break;
                }
                assertThat(failure).isInstanceOf(DeviceException.Fault.class);
                messages.add(failure.getMessage());
            }
            assertThat(device.liveBytes()).isZero();
        }
        boolean launches = !operation.name().equals("copies"); // those are no kernels
        assertThat(messages.isEmpty()).isNotEqualTo(launches);
        assertThat(messages)
                .allSatisfy(message ->
                        assertThat(message).startsWith("fcm_").contains(NAME).containsPattern("fcm_k_\\w+ .* x "));
    }

    @Test
    void faultsOfOneDeviceAreNoneOfAnother() {
        try (NativeDevice other = Simulated.open(0);
                Buffer here = device.allocate("here", ElementType.FLOAT32, 8);
                Buffer there = other.allocate("there", ElementType.FLOAT32, 8)) {
            Simulator.inject("launch", ORDINAL, 1);
            other.average(there.batch(2, 4));
            other.synchronize();
            assertThatThrownBy(() -> device.average(here.batch(2, 4)))
                    .isInstanceOf(DeviceException.Fault.class)
                    .hasMessageContaining(NAME);
            assertThat(there.toFloats(0, 8)).containsOnly(0f);
        }
    }

    @Test
    void ncclThatDoesNotStart() {
        Simulator.inject("nccl", ORDINAL, 1);
        NcclReduction.Group group = NcclReduction.Group.of(List.of(device), NcclReduction.Group.defaultTimeLimit());
        assertThatThrownBy(() -> group.join(device))
                .isInstanceOf(DeviceException.Fault.class)
                .hasMessageContaining("%s: joining %s: NCCL says".formatted(NAME, NAME))
                .hasMessageContaining("injected");
        NcclReduction.Group.of(List.of(device), NcclReduction.Group.defaultTimeLimit())
                .join(device)
                .close();
    }
}
