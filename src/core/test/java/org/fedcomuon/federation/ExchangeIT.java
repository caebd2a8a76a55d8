package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.MatrixQuadratics;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.TestDevices;
import org.fedcomuon.testing.Trace;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** How devices work out means among themselves. */
class ExchangeIT {
    private static final int CLIENTS = 5;
    private static final long PARAMETERS = (long) RateTestbed.ROWS * RateTestbed.COLS;

    @TempDir
    private Path directory;

    private static void requireSimulated() {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
    }

    @AfterEach
    void nothingIsLeft() {
        if (TestDevices.simulated().findAny().isPresent()) {
            Simulator.inject("clear", -1, 0);
            assertThat(Simulator.liveBytes(-1)).isZero(); // of all devices, and pinned
        }
    }

    private static Federation.Builder testbed(Method method, String... devices) {
        return Federation.of(new RateTestbed(CLIENTS, 1), method)
                .devices(devices)
                .iterations(4)
                .tau(2)
                .seed(42)
                .participation(0.7)
                .weights(5, 1, 1, 2, 3);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 3, 7, 16, 1000})
    void noChunkChangesABit(long chunk) throws Exception {
        Method method = AllMethods.fedCoMuonVr();
        var onCpu = new HashSet<String>();
        onCpu.add(testbed(method, "cpu:0").build().run().sha256());
        onCpu.add(testbed(method, "cpu:0", "cpu:1", "cpu:2")
                .exchangeChunk(chunk)
                .build()
                .run()
                .sha256());
        assertThat(onCpu).hasSize(1);
        requireSimulated();
        var onGpus = new HashSet<String>();
        onGpus.add(testbed(method, "cudasim:0").build().run().sha256());
        onGpus.add(testbed(method, "cudasim:0", "cudasim:1")
                .exchangeChunk(chunk)
                .build()
                .run()
                .sha256());
        onGpus.add(testbed(method, "cudasim:2", "cudasim:0", "cudasim:1")
                .exchangeChunk(chunk)
                .build()
                .run()
                .sha256());
        assertThat(onGpus).hasSize(1);
    }

    /** In turns of two slots: the copies of a chunk wait for the sum of the one before the last, and for no later. */
    @Test
    void aChunkIsCopiedWhileTheOneBeforeItIsSummed() throws Exception {
        requireSimulated();
        int devices = 2;
        int chunk = 4;
        int parameters = 9 * 5; // two stretches that no chunk of four divides
        Path file = directory.resolve("trace");
        var problem = new MatrixQuadratics(CLIENTS, 9, 5, 0.3, 0.05, Risk.mean(), 3);
        Simulator.traced(
                file,
                () -> Federation.of(problem, new FedAvg(Schedule.constant(0.1)))
                        .devices("cudasim:0", "cudasim:1")
                        .exchangeChunk(chunk)
                        .iterations(2)
                        .build()
                        .run());
        Trace trace = Trace.read(file);
        for (int device = 0; device < devices; device++) {
            int size = parameters * (device + 1) / devices - parameters * device / devices;
            int chunks = Math.ceilDiv(size, chunk);
            List<Trace.Work> sums = trace.launches(device, "fcm_k_average");
            assertThat(chunks).isGreaterThan(4);
            assertThat(sums).isNotEmpty().hasSize(sums.size() / chunks * chunks);
            long main = sums.getFirst().stream();
            List<Trace.Work> copies = trace.copies(device).stream()
                    .filter(copy -> copy.stream() != main)
                    .toList();
            int means = sums.size() / chunks;
            int each = chunks * CLIENTS + devices; // what is gathered, then what is taken
            assertThat(copies).hasSize(means * each);
            for (int mean = 0; mean < means; mean++) {
                for (int c = 0; c < chunks; c++) {
                    Trace.Work sum = sums.get(mean * chunks + c);
                    int first = mean * each + c * CLIENTS;
                    List<Trace.Work> own = copies.subList(first, first + CLIENTS);
                    assertThat(own)
                            .allSatisfy(copy -> assertThat(sum.runsAfter(copy)).isTrue());
                    if (c + 1 < chunks) {
                        assertThat(copies.subList(first + CLIENTS, first + 2 * CLIENTS))
                                .as("chunk %d, beside the sum of %d", c + 1, c)
                                .allSatisfy(next -> {
                                    assertThat(next.line()).isLessThan(sum.line());
                                    assertThat(next.runsAfter(sum)).isFalse();
                                    assertThat(sum.runsAfter(next)).isFalse();
                                });
                    }
                    if (c + 2 < chunks) {
                        assertThat(copies.get(first + 2 * CLIENTS).runsAfter(sum))
                                .isTrue();
                    }
                }
            }
        }
    }

    /** At the start and in the middle of exchanges. */
    @ParameterizedTest
    @CsvSource({"malloc, 1", "malloc, 10", "malloc, 25", "copy, 9", "copy, 31", "copy, 200", "launch, 1", "launch, 77"})
    void aDeviceThatFailsIsNamedAndNothingIsLeft(String what, int after) {
        requireSimulated();
        Simulator.inject(what, 1, after);
        Federation federation = testbed(AllMethods.fedCoMuon(), "cudasim:0", "cudasim:1", "cudasim:2")
                .exchangeChunk(1)
                .iterations(200)
                .build();
        assertThatThrownBy(federation::run)
                .isInstanceOf(what.equals("malloc") ? DeviceException.OutOfMemory.class : DeviceException.Fault.class)
                .hasMessageContaining("cudasim:1");
    }

    private static double distance(Result a, Result b) {
        Floats x = a.weights().values();
        Floats y = b.weights().values();
        double largest = 0;
        for (long i = 0; i < x.length(); i++) {
            largest = Math.max(largest, Math.abs((double) x.get(i) - y.get(i)));
        }
        return largest;
    }

    @Test
    void ncclAveragesToTheSameUpToRounding() throws Exception {
        requireSimulated();
        for (Method method : List.of(AllMethods.fedCoMuon(), AllMethods.fedCoMuonVr())) {
            Result ordered = testbed(method, "cudasim:0").build().run();
            assertThat(ordered.exchange()).isEqualTo("ordered");
            for (List<String> devices : List.of(
                    List.of("cudasim:0"),
                    List.of("cudasim:0", "cudasim:1"),
                    List.of("cudasim:3", "cudasim:0", "cudasim:1"))) {
                Result summed = testbed(method, devices.toArray(String[]::new))
                        .exchange(Federation.ExchangeKind.NCCL)
                        .build()
                        .run();
                assertThat(summed.exchange()).startsWith("nccl (NCCL 2.");
                assertThat(distance(summed, ordered)).isLessThan(1e-5);
                assertThat(summed.communicatedBytes()).isEqualTo(ordered.communicatedBytes());
            }
        }
    }

    /** One client a device, two of which sit every round out: a device without a weight has nothing to add. */
    @Test
    void ncclLeavesOutADeviceWhoseClientsSitOut() throws Exception {
        requireSimulated();
        var problem = new RateTestbed(3, 1);
        Method method = new FedAvg(Schedule.constant(0.1));
        Result ordered = Federation.of(problem, method)
                .devices("cudasim:0")
                .iterations(6)
                .participation(0.3)
                .build()
                .run();
        Result summed = Federation.of(problem, method)
                .devices("cudasim:0", "cudasim:1", "cudasim:2")
                .exchange(Federation.ExchangeKind.NCCL)
                .iterations(6)
                .participation(0.3)
                .build()
                .run();
        assertThat(distance(summed, ordered)).isLessThan(1e-6);
    }

    @Test
    void aFailureOfNcclIsTypedAndNamesDeviceOperationAndSize() {
        requireSimulated();
        for (int after : new int[] {2, 3}) { // 1 is the start of NCCL
            Simulator.inject("nccl", 1, after);
            Federation federation = testbed(AllMethods.fedCoMuon(), "cudasim:0", "cudasim:1", "cudasim:2")
                    .exchange(Federation.ExchangeKind.NCCL)
                    .build();
            assertThatThrownBy(federation::run)
                    .isInstanceOf(DeviceException.Fault.class)
                    .hasMessageContaining("cudasim:1: sum of %d elements of a sum for NCCL".formatted(PARAMETERS))
                    .hasMessageContaining("injected");
            nothingIsLeft();
        }
        Simulator.inject("nccl", 1, 1);
        assertThatThrownBy(testbed(AllMethods.fedCoMuon(), "cudasim:0", "cudasim:1")
                        .exchange(Federation.ExchangeKind.NCCL)
                        .build()::run)
                .isInstanceOf(DeviceException.Fault.class)
                .hasMessageContaining("cudasim:0,cudasim:1: ncclCommInitAll");
    }

    @Test
    void ncclIsForGpusAndItsCheckpointsAreItsOwn() throws Exception {
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon(), "cpu:0")
                        .exchange(Federation.ExchangeKind.NCCL)
                        .build())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("exchange = nccl: NCCL works on GPUs, not on cpu:0");
        requireSimulated();
        testbed(AllMethods.fedCoMuon(), "cudasim:0", "cudasim:1")
                .exchange(Federation.ExchangeKind.NCCL)
                .checkpoints(directory, 1)
                .build()
                .run();
        assertThatThrownBy(testbed(AllMethods.fedCoMuon(), "cudasim:0")
                        .iterations(6)
                        .resume(directory)
                        .build()::run)
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining("config.exchange");
        assertThat(testbed(AllMethods.fedCoMuon(), "cudasim:0")
                        .iterations(6)
                        .exchange(Federation.ExchangeKind.NCCL)
                        .resume(directory)
                        .build()
                        .run()
                        .step())
                .isEqualTo(6);
    }
}
