package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.fedcomuon.testing.Simulator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Means over simulated devices, each with a thread of its own. */
class NcclIT {
    private static final int RANKS = 3;
    private static final int LENGTH = 1000;

    private final List<ExecutorService> threads = new ArrayList<>();
    private final List<Device> devices = new ArrayList<>();
    private final List<Buffer> vectors = new ArrayList<>();
    private final List<float[]> values = new ArrayList<>();

    @BeforeEach
    void open() throws Exception {
        Simulated.open(0).close(); // here, where a missing one skips the test
        for (int rank = 0; rank < RANKS; rank++) {
            threads.add(Executors.newSingleThreadExecutor());
            int ordinal = rank;
            devices.add(on(rank, () -> Simulated.open(ordinal)));
            var random = new java.util.Random(rank);
            var numbers = new float[LENGTH];
            for (int i = 0; i < LENGTH; i++) {
                numbers[i] = (float) random.nextGaussian();
            }
            values.add(numbers);
            vectors.add(on(rank, () -> {
                Buffer buffer = devices.get(ordinal).allocate("vector", ElementType.FLOAT32, LENGTH);
                buffer.copyIn(0, numbers);
                return buffer;
            }));
        }
    }

    @AfterEach
    void close() throws Exception {
        for (int rank = 0; rank < devices.size(); rank++) {
            int which = rank;
            on(rank, () -> {
                Simulator.inject("clear", which, 0);
                vectors.get(which).close();
                devices.get(which).close();
                return true;
            });
            assertThat(Simulator.liveBytes(rank)).isZero();
        }
        threads.forEach(ExecutorService::close);
    }

    private <T> T on(int rank, Callable<T> body) throws Exception {
        return threads.get(rank).submit(body).get();
    }

    private List<Future<float[]>> averages(NcclMean mean) {
        var results = new ArrayList<Future<float[]>>();
        for (int rank = 0; rank < RANKS; rank++) {
            int which = rank;
            results.add(threads.get(rank).submit(() -> {
                mean.average(vectors.get(which).batch(1, LENGTH));
                return vectors.get(which).toFloats(0, LENGTH);
            }));
        }
        return results;
    }

    @Test
    void everyDeviceGetsTheMeanAndItIsNotThatOfClientOrder() throws Exception {
        try (var mean = NcclMean.of(devices)) {
            assertThat(mean.title()).startsWith("NCCL 2.");
            List<Future<float[]>> results = averages(mean);
            float[] first = results.getFirst().get();
            int different = 0;
            for (int i = 0; i < LENGTH; i++) {
                float inOrder = (values.get(0)[i] + values.get(1)[i] + values.get(2)[i]) / RANKS;
                assertThat(first[i]).isCloseTo(inOrder, org.assertj.core.api.Assertions.within(1e-6f));
                different += first[i] == inOrder ? 0 : 1;
            }
            // This is why it is not what a federation does unless asked.
            assertThat(different).isGreaterThan(LENGTH / 50);
            for (Future<float[]> result : results) {
                assertThat(result.get()).isEqualTo(first);
            }
        }
    }

    @Test
    void aFailureOnOneDeviceIsTypedAndDoesNotHangTheOthers() throws Exception {
        try (var mean = NcclMean.of(devices)) {
            Simulator.inject("nccl", 1, 1);
            List<Future<float[]>> results = averages(mean);
            assertThatThrownBy(results.get(1)::get)
                    .isInstanceOf(ExecutionException.class)
                    .cause()
                    .isInstanceOf(DeviceException.Fault.class)
                    .hasMessageContaining("cudasim:1")
                    .hasMessageContaining("mean of 1000 elements of vector over cudasim:0,cudasim:1,cudasim:2")
                    .hasMessageContaining("injected");
            for (int rank : new int[] {0, 2}) {
                assertThatThrownBy(results.get(rank)::get).cause().isInstanceOf(DeviceException.Fault.class);
            }
        }
    }

    @Test
    void devicesThatDoNotGoTogether() throws Exception {
        try (Device cpu = Devices.open("cpu:0")) {
            assertThatThrownBy(() -> NcclMean.of(List.of(cpu))).isInstanceOf(DeviceException.InvalidOperand.class);
        }
        assertThatThrownBy(() -> NcclMean.of(List.of(devices.get(0), devices.get(0))))
                .isInstanceOf(DeviceException.InvalidOperand.class)
                .hasMessageContaining("NCCL says");
        var two = NcclMean.of(devices.subList(0, 2));
        assertThatThrownBy(() -> on(2, () -> {
                    two.average(vectors.get(2).batch(1, LENGTH));
                    return true;
                }))
                .cause()
                .hasMessage("cudasim:2 is not one of cudasim:0,cudasim:1");
        two.close();
        two.close();
        assertThatThrownBy(() -> two.average(vectors.get(0).batch(1, LENGTH)))
                .isInstanceOf(IllegalStateException.class);
    }
}
