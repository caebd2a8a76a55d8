package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
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

    private Buffer allocate(int device, String label, long length) throws Exception {
        return on(device, () -> devices.get(device).allocate(label, ElementType.FLOAT32, length));
    }

    /** What a federation does unless asked for NCCL: gathered, summed in client order, and sent back. */
    @Test
    void gatheredItIsTheBitsOfTheCpu() throws Exception {
        int n = length();
        float[] expected;
        try (Device cpu = Devices.open("cpu:0");
                Buffer all = cpu.allocate("all", ElementType.FLOAT32, (long) CLIENTS * n)) {
            for (int k = 0; k < CLIENTS; k++) {
                all.copyIn((long) k * n, values(k, n));
            }
            cpu.average(all.batch(CLIENTS, n));
            expected = all.toFloats(0, n);
        }
        long elsewhere = CLIENTS - FIRST;
        try (Buffer all = allocate(0, "all", (long) CLIENTS * n);
                Buffer far = allocate(1, "far", elsewhere * n)) {
            for (int k = 0; k < CLIENTS; k++) {
                int client = k;
                on(k < FIRST ? 0 : 1, () -> {
                    float[] values = values(client, n);
                    if (client < FIRST) {
                        all.copyIn((long) client * n, values);
                    } else {
                        far.copyIn((long) (client - FIRST) * n, values);
                    }
                    return true;
                });
            }
            on(0, () -> {
                all.copyFrom(far, 0, (long) FIRST * n, elsewhere * n);
                devices.get(0).average(all.batch(CLIENTS, n));
                return true;
            });
            float[] there = on(1, () -> {
                far.copyFrom(all, (long) FIRST * n, 0, elsewhere * n);
                return far.toFloats((elsewhere - 1) * n, n);
            });
            assertThat(on(0, () -> all.toFloats(0, n))).isEqualTo(expected);
            assertThat(there).isEqualTo(expected);
        }
    }

    @Test
    void byNcclItIsTheMeanUpToTheOrderOfTheSum() throws Exception {
        int n = length();
        NcclMean.Group group = nccl();
        var results = new ArrayList<Future<float[]>>();
        for (int i = 0; i < 2; i++) {
            int rank = i;
            results.add(threads.get(i).submit(() -> {
                try (NcclMean mean = group.join(devices.get(rank));
                        Buffer x = devices.get(rank).allocate("x", ElementType.FLOAT32, n)) {
                    x.copyIn(0, values(rank, n));
                    mean.average(x.batch(1, n));
                    return x.toFloats(0, n);
                }
            }));
        }
        float[] first = values(0, n);
        float[] second = values(1, n);
        float[] result = results.get(0).get();
        for (int i = 0; i < n; i++) {
            assertThat(result[i]).isCloseTo((first[i] + second[i]) / 2, within(1e-6f));
        }
        assertThat(results.get(1).get()).isEqualTo(result);
    }

    private NcclMean.Group nccl() {
        try {
            return NcclMean.Group.of(devices, NcclMean.Group.defaultTimeLimit());
        } catch (DeviceException.LibraryMissing e) {
            return abort("no NCCL: " + e.getMessage());
        }
    }
}
