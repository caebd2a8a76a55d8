package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/** The mean over clients that live on two GPUs, each with a thread of its own. */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#groups")
class AveragingGpuIT {
    private static final int CLIENTS = 5;

    /** Of the clients, those on the first device. */
    private static final int FIRST = 3;

    @Parameter
    private List<String> names;

    private final List<ExecutorService> threads = new ArrayList<>();
    private final List<Device> devices = new ArrayList<>();

    @BeforeEach
    void open() throws Exception {
        TestDevices.open(names.getFirst()).close(); // here, where a missing one skips the test
        assumeTrue(names.size() > 1, () -> "%s is the only GPU here".formatted(names.getFirst()));
        for (String name : names.subList(0, 2)) {
            threads.add(Executors.newSingleThreadExecutor());
            devices.add(threads.getLast().submit(() -> TestDevices.open(name)).get());
        }
    }

    @AfterEach
    void close() throws Exception {
        for (int i = 0; i < devices.size(); i++) {
            Device device = devices.get(i);
            assertThat(on(i, device::liveBytes)).isZero();
            on(i, () -> {
                device.close();
                return true;
            });
        }
        threads.forEach(ExecutorService::close);
    }

    private <T> T on(int device, Callable<T> body) throws Exception {
        return threads.get(device).submit(body).get();
    }

    private int length() {
        return TestDevices.isSimulated(names.getFirst()) ? 5_003 : 5_000_003;
    }

    private static float[] values(int client, int length) {
        var random = new Random(client);
        var values = new float[length];
        for (int i = 0; i < length; i++) {
            values[i] = (float) random.nextGaussian();
        }
        return values;
    }

    /** What a device contributes: the exponents and sums of its clients. */
    private final class Part implements AutoCloseable {
        final int device;
        final Buffer x;
        final Buffer exponents;
        final Buffer maxima;
        final Buffer sums;

        Part(int device, int n) {
            this.device = device;
            Device own = devices.get(device);
            x = own.allocate("x", ElementType.FLOAT32, (long) count() * n);
            exponents = own.allocate("exponents", ElementType.UINT8, n);
            maxima = own.allocate("maxima", ElementType.UINT8, n);
            sums = own.allocate("sums", ElementType.INT64, n);
            for (int k = 0; k < count(); k++) {
                x.copyIn((long) k * n, values(first() + k, n));
            }
            own.meanExponents(x.batch(count(), n), ones(), exponents.batch(1, n));
        }

        int count() {
            return device == 0 ? FIRST : CLIENTS - FIRST;
        }

        private int first() {
            return device == 0 ? 0 : FIRST;
        }

        private double[] ones() {
            var weights = new double[count()];
            Arrays.fill(weights, 1);
            return weights;
        }

        void sum(Buffer maximum, int n) {
            devices.get(device).meanSums(x.batch(count(), n), ones(), CLIENTS, maximum.batch(1, n), sums.batch(1, n));
        }

        @Override
        public void close() {
            x.close();
            exponents.close();
            maxima.close();
            sums.close();
        }
    }

    private float[] expected(int n) {
        try (Device cpu = Devices.open("cpu:0");
                Buffer all = cpu.allocate("all", ElementType.FLOAT32, (long) CLIENTS * n)) {
            for (int k = 0; k < CLIENTS; k++) {
                all.copyIn((long) k * n, values(k, n));
            }
            cpu.average(all.batch(CLIENTS, n));
            return all.toFloats(0, n);
        }
    }

    /** What the GPUs of a federation do without NCCL: the first gets what the second has. */
    @Test
    void byCopiesItIsTheBitsOfTheCpu() throws Exception {
        int n = length();
        try (Part here = on(0, () -> new Part(0, n));
                Part there = on(1, () -> new Part(1, n));
                Buffer exponents = on(0, () -> devices.get(0).allocate("exponents there", ElementType.UINT8, n));
                Buffer sums = on(0, () -> devices.get(0).allocate("sums there", ElementType.INT64, n))) {
            on(0, () -> {
                exponents.copyFrom(there.exponents, 0, 0, n);
                devices.get(0)
                        .combineExponents(
                                List.of(here.exponents.batch(1, n), exponents.batch(1, n)), here.maxima.batch(1, n));
                here.sum(here.maxima, n);
                return true;
            });
            on(1, () -> {
                there.maxima.copyFrom(here.maxima, 0, 0, n);
                there.sum(there.maxima, n);
                return true;
            });
            float[] mean = on(0, () -> {
                sums.copyFrom(there.sums, 0, 0, n);
                devices.get(0)
                        .finishMean(
                                List.of(here.sums.batch(1, n), sums.batch(1, n)),
                                here.maxima.batch(1, n),
                                CLIENTS,
                                CLIENTS,
                                List.of(
                                        here.x.batch(FIRST, n).client(0),
                                        here.x.batch(FIRST, n).client(2)));
                return here.x.toFloats(2L * n, n);
            });
            assertThat(mean).isEqualTo(expected(n));
        }
    }

    @Test
    void byNcclItIsTheBitsOfTheCpu() throws Exception {
        int n = length();
        NcclReduction.Group group = nccl();
        var results = new ArrayList<Future<float[]>>();
        for (int i = 0; i < 2; i++) {
            int rank = i;
            results.add(threads.get(i).submit(() -> {
                try (NcclReduction nccl = group.join(devices.get(rank));
                        Part part = new Part(rank, n)) {
                    nccl.max(part.exponents.batch(1, n));
                    part.sum(part.exponents, n);
                    nccl.sum(part.sums.batch(1, n));
                    devices.get(rank)
                            .finishMean(
                                    List.of(part.sums.batch(1, n)),
                                    part.exponents.batch(1, n),
                                    CLIENTS,
                                    CLIENTS,
                                    List.of(part.x.batch(1, n)));
                    nccl.await();
                    return part.x.toFloats(0, n);
                }
            }));
        }
        for (Future<float[]> result : results) {
            assertThat(result.get()).isEqualTo(expected(n));
        }
    }

    private NcclReduction.Group nccl() {
        try {
            return NcclReduction.Group.of(devices, NcclReduction.Group.defaultTimeLimit());
        } catch (DeviceException.LibraryMissing e) {
            return abort("no NCCL: " + e.getMessage());
        }
    }
}
