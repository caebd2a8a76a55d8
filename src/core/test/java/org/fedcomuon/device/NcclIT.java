package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
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
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Reductions over simulated devices, each with a thread of its own, and what becomes of them when a device fails. */
@Timeout(60)
class NcclIT {
    private static final int RANKS = 3;
    private static final Duration SOON = Duration.ofMillis(400);
    private static final Duration LONG = Duration.ofMinutes(10);
    private static final int LENGTH = 1000;

    private final List<ExecutorService> threads = new ArrayList<>();
    private final List<Device> devices = new ArrayList<>();
    private final List<Buffer> vectors = new ArrayList<>();
    private final List<long[]> values = new ArrayList<>();
    private final List<NcclReduction> reductions = new ArrayList<>();

    @BeforeEach
    void open() throws Exception {
        Simulated.open(0).close(); // here, where a missing one skips the test
        for (int rank = 0; rank < RANKS; rank++) {
            threads.add(Executors.newSingleThreadExecutor());
            int ordinal = rank;
            devices.add(on(rank, () -> Simulated.open(ordinal)));
            var random = new java.util.Random(rank);
            long[] numbers = random.longs(LENGTH).toArray();
            values.add(numbers);
            vectors.add(on(rank, () -> {
                Buffer buffer = devices.get(ordinal).allocate("vector", ElementType.INT64, LENGTH);
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
                reductions.get(which).close();
                devices.get(which).synchronize(); // returns, because no kernel is left waiting
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

    /** All devices join a group. */
    private void join(Duration limit) throws Exception {
        NcclReduction.Group group = NcclReduction.Group.of(devices, limit);
        var joined = new ArrayList<Future<NcclReduction>>();
        for (int rank = 0; rank < RANKS; rank++) {
            int which = rank;
            joined.add(threads.get(rank).submit(() -> group.join(devices.get(which))));
        }
        for (Future<NcclReduction> mean : joined) {
            reductions.add(mean.get());
        }
    }

    private List<Future<long[]>> sums(int... ranks) {
        var results = new ArrayList<Future<long[]>>();
        for (int rank : ranks) {
            results.add(threads.get(rank).submit(() -> {
                reductions.get(rank).sum(vectors.get(rank).batch(1, LENGTH));
                reductions.get(rank).await();
                return vectors.get(rank).toLongs(0, LENGTH);
            }));
        }
        return results;
    }

    private static DeviceException.Fault fault(Future<?> result) {
        try {
            result.get();
            throw new AssertionError("it did not fail");
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        } catch (ExecutionException e) {
            assertThat(e.getCause()).isInstanceOf(DeviceException.Fault.class);
            return (DeviceException.Fault) e.getCause();
        }
    }

    @Test
    void everyDeviceGetsTheSumModulo2To64() throws Exception {
        join(LONG);
        assertThat(reductions.getFirst().title()).startsWith("NCCL 2.");
        var expected = new long[LENGTH];
        for (long[] each : values) {
            for (int i = 0; i < LENGTH; i++) {
                expected[i] += each[i];
            }
        }
        for (Future<long[]> result : sums(0, 1, 2)) {
            assertThat(result.get()).isEqualTo(expected);
        }
    }

    @Test
    void everyDeviceGetsTheMaximumOfUnsignedBytes() throws Exception {
        join(LONG);
        var results = new ArrayList<Future<byte[]>>();
        var expected = new byte[LENGTH];
        for (int rank = 0; rank < RANKS; rank++) {
            var bytes = new byte[LENGTH];
            new java.util.Random(rank).nextBytes(bytes);
            for (int i = 0; i < LENGTH; i++) {
                expected[i] = (byte) Math.max(expected[i] & 0xff, bytes[i] & 0xff);
            }
            int which = rank;
            results.add(threads.get(rank).submit(() -> {
                try (Buffer buffer = devices.get(which).allocate("bytes", ElementType.UINT8, LENGTH)) {
                    buffer.copyIn(0, bytes);
                    reductions.get(which).max(buffer.batch(1, LENGTH));
                    reductions.get(which).await();
                    return buffer.toBytes(0, LENGTH);
                }
            }));
        }
        for (Future<byte[]> result : results) {
            assertThat(result.get()).isEqualTo(expected);
        }
        assertThatThrownBy(() -> on(0, () -> {
                    reductions.get(0).max(vectors.get(0).batch(1, LENGTH));
                    return true;
                }))
                .cause()
                .hasMessage("vector holds INT64, not UINT8");
    }

    /** The others learn of it from the device that failed, long before the time limit. */
    @Test
    void aFailureOnOneDeviceIsTypedAndDoesNotHangTheOthers() throws Exception {
        join(LONG);
        Simulator.inject("nccl", 1, 1);
        List<Future<long[]>> results = sums(0, 1, 2);
        assertThat(fault(results.get(1)).isElsewhere()).isFalse();
        assertThat(fault(results.get(1)))
                .hasMessageContaining("cudasim:1")
                .hasMessageContaining("sum of 1000 elements of vector over cudasim:0,cudasim:1,cudasim:2")
                .hasMessageContaining("injected");
        for (int rank : new int[] {0, 2}) {
            DeviceException.Fault fault = fault(results.get(rank));
            assertThat(fault.isElsewhere()).isTrue();
            assertThat(fault)
                    .hasMessageContaining("cudasim:" + rank + ": no sum of")
                    .hasMessageContaining("cudasim:1: sum");
        }
        assertThat(fault(sums(2).getFirst())).hasMessageContaining("after a failure");
    }

    /** NCCL says that all is well, and the kernels of all devices wait for one that does not take part. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void aPeerThatDiesSilentlyIsFoundByTheTimeLimit(int dead) throws Exception {
        join(SOON);
        Simulator.inject("nccl-dead", dead, 1);
        List<Future<long[]>> results = sums(0, 1, 2);
        for (int rank = 0; rank < RANKS; rank++) {
            assertThat(fault(results.get(rank))).hasMessageContaining("cudasim:" + rank + ": ");
        }
        assertThat(results.stream().map(NcclIT::fault).filter(fault -> !fault.isElsewhere()))
                .isNotEmpty()
                .allSatisfy(fault -> assertThat(fault)
                        .hasMessageContaining("sum of 1000 elements")
                        .hasMessageContaining("not done after 0.400 s; all devices have called"));
    }

    @Test
    void aDeviceThatNeverCallsIsNamed() throws Exception {
        join(SOON);
        List<Future<long[]>> results = sums(0, 2);
        assertThat(results.stream().map(NcclIT::fault))
                .allSatisfy(fault -> assertThat(fault.isElsewhere()).isTrue())
                .anySatisfy(fault ->
                        assertThat(fault).hasMessageEndingWith("not done after 0.400 s; cudasim:1 has not called"));
        assertThat(fault(sums(1).getFirst())).hasMessageContaining("cudasim:1: no sum of");
    }

    @Test
    void aCallThatIsNeverPosted() throws Exception {
        join(SOON);
        Simulator.inject("nccl-stuck", 0, 1);
        assertThat(sums(0, 1, 2)).allSatisfy(result -> assertThat(fault(result)).hasMessageContaining("cudasim:"));
    }

    /** The call itself has succeeded. */
    @Test
    void anAsynchronousErrorEndsTheWaitOfAll() throws Exception {
        join(LONG);
        Simulator.inject("nccl-remote", 2, 1);
        List<Future<long[]>> results = sums(0, 1, 2);
        assertThat(results.stream().map(NcclIT::fault))
                .allSatisfy(fault -> assertThat(fault.isElsewhere()).isTrue())
                .anySatisfy(fault -> assertThat(fault).hasMessageContaining("remote process exited"));
    }

    @Test
    void whoGivesUpReleasesTheOthers() throws Exception {
        join(LONG);
        List<Future<long[]>> results = sums(0, 2);
        Thread.sleep(50); // they wait by now, but need not
        on(1, () -> {
            reductions.get(1).abandon();
            return true;
        });
        assertThat(results)
                .allSatisfy(result -> assertThat(fault(result)).hasMessageContaining("cudasim:1 has given up"));
    }

    @Test
    void aDeviceThatDoesNotJoinIsNamed() throws Exception {
        NcclReduction.Group group = NcclReduction.Group.of(devices, SOON);
        var results = new ArrayList<Future<NcclReduction>>();
        for (int rank : new int[] {0, 2}) {
            results.add(threads.get(rank).submit(() -> group.join(devices.get(rank))));
        }
        assertThat(results.stream().map(NcclIT::fault))
                .anySatisfy(fault -> assertThat(fault)
                        .hasMessageContaining("joining cudasim:0,cudasim:1,cudasim:2: not done")
                        .hasMessageEndingWith("cudasim:1 has not called"));
        join(LONG);
    }

    @Test
    void devicesThatDoNotGoTogether() throws Exception {
        try (Device cpu = Devices.open("cpu:0")) {
            assertThatThrownBy(() -> NcclReduction.Group.of(List.of(cpu), LONG))
                    .isInstanceOf(DeviceException.InvalidOperand.class);
        }
        assertThatThrownBy(() -> NcclReduction.Group.of(List.of(devices.get(0), devices.get(0)), LONG))
                .isInstanceOf(DeviceException.InvalidOperand.class)
                .hasMessageContaining("each GPU once");
        assertThatThrownBy(() -> NcclReduction.Group.of(devices, Duration.ZERO))
                .isInstanceOf(IllegalArgumentException.class);
        NcclReduction.Group two = NcclReduction.Group.of(devices.subList(0, 2), LONG);
        assertThatThrownBy(() -> on(2, () -> two.join(devices.get(2))))
                .cause()
                .hasMessage("cudasim:2 is not one of cudasim:0,cudasim:1");
        join(LONG);
        assertThatThrownBy(() -> on(0, () -> {
                    reductions.get(0).sum(vectors.get(1).batch(1, LENGTH));
                    return true;
                }))
                .cause()
                .hasMessage("vector is on cudasim:1, not on cudasim:0");
        assertThatThrownBy(() -> reductions.get(0).sum(vectors.get(0).batch(1, LENGTH)))
                .isInstanceOf(WrongThreadException.class);
        assertThatThrownBy(() -> on(0, () -> {
                    reductions.get(0).close();
                    reductions.get(0).close();
                    reductions.get(0).sum(vectors.get(0).batch(1, LENGTH));
                    return true;
                }))
                .cause()
                .isInstanceOf(IllegalStateException.class);
    }
}
