package org.fedcomuon.federation;

import static java.util.stream.Collectors.toSet;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.TestDevices;
import org.fedcomuon.testing.Trace;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** How devices work out means among themselves. */
class ExchangeIT {
    private static final int CLIENTS = 5;
    /** A time limit that no test reaches. */
    private static final Duration IN_THE_END = Duration.ofMinutes(10);

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
    @ValueSource(longs = {0, 1, 3, 7, 16, 1000}) // 0 is direct where devices reach each other
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

    @Test
    void aChunkIsCopiedWhileTheOneBeforeItIsSummed() throws Exception {
        requireSimulated();
        ExchangeProgram.requireOverlap(directory.resolve("trace"));
    }

    /** On a machine of its own, because a process has one. Returns what {@link ExchangeProgram} prints. */
    private List<String> onMachine(String peers) throws Exception {
        Path printed = directory.resolve("printed." + peers);
        Path logged = directory.resolve("logged." + peers);
        var builder = new ProcessBuilder(
                        ChildJvm.command(List.of(), ExchangeProgram.class, List.of(directory.toString())))
                .redirectOutput(printed.toFile())
                .redirectError(logged.toFile());
        builder.environment().put("FEDCOMUON_CUDASIM_PEERS", peers);
        assertThat(builder.start().waitFor()).as(() -> read(logged)).isZero();
        return read(printed).lines().toList();
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** GPUs with peer access read each other's memory, others copy; the bits are those of one GPU. */
    @Test
    @Timeout(120)
    void machinesWithAndWithoutPeerAccessGiveTheSameBits() throws Exception {
        requireSimulated();
        List<String> with = onMachine("on");
        List<String> without = onMachine("off");
        assertThat(with.getLast()).isEqualTo("direct sums: some, copies between devices: none");
        assertThat(without.getLast()).isEqualTo("direct sums: none, copies between devices: some");
        assertThat(with).hasSize(ExchangeProgram.PLACEMENTS.size() + 1);
        var hashes = new HashSet<String>(with.subList(0, with.size() - 1));
        hashes.addAll(without.subList(0, without.size() - 1));
        hashes.add(ExchangeProgram.run(List.of("cudasim:0"), 0).sha256());
        assertThat(hashes).hasSize(1);
    }

    /** Devices wait for each other's reads and writes by events, and the host for nothing. */
    @Test
    void aDeviceReadsOthersAfterTheyHaveWrittenAndWritesAfterTheyHaveRead() throws Exception {
        requireSimulated();
        assumeTrue(!"off".equals(System.getenv("FEDCOMUON_CUDASIM_PEERS")), "no peers on this machine");
        Path file = directory.resolve("trace");
        Simulator.traced(file, () -> ExchangeProgram.run(List.of("cudasim:0", "cudasim:1"), 0));
        Trace trace = Trace.read(file);
        List<Trace.Work> first = trace.launches(0, "fcm_k_average_rows");
        List<Trace.Work> second = trace.launches(1, "fcm_k_average_rows");
        assertThat(first).hasSameSizeAs(second).hasSizeGreaterThan(2);
        for (int device = 0; device < 2; device++) {
            List<Trace.Work> own = device == 0 ? first : second;
            List<Trace.Work> other = device == 0 ? second : first;
            List<Trace.Work> elsewhere = trace.launchesOn(1 - device);
            for (int mean = 0; mean < own.size(); mean++) {
                Trace.Work sum = own.get(mean);
                Trace.Work peer = other.get(mean);
                assertThat(sum.runsAfter(peer) || peer.runsAfter(sum))
                        .as("one waits for the other")
                        .isFalse();
                Trace.Work before = elsewhere.get(elsewhere.indexOf(peer) - 1); // made what the sum reads
                assertThat(sum.runsAfter(before)).isTrue();
                trace.launchesOn(device).stream()
                        .filter(work -> work.line() > sum.line())
                        .findFirst()
                        .ifPresent(next -> assertThat(next.runsAfter(peer)).isTrue());
            }
        }
    }

    /** At the start and in the middle of exchanges, direct and in chunks of one. */
    @ParameterizedTest
    @CsvSource({
        "malloc, 1, 1",
        "malloc, 10, 1",
        "malloc, 25, 1",
        "copy, 9, 1",
        "copy, 31, 1",
        "copy, 200, 1",
        "launch, 1, 1",
        "launch, 77, 1",
        "malloc, 5, 0",
        "launch, 1, 0",
        "launch, 13, 0",
        "launch, 14, 0",
        "launch, 77, 0"
    })
    void aDeviceThatFailsIsNamedAndNothingIsLeft(String what, int after, long chunk) {
        requireSimulated();
        Simulator.inject(what, 1, after);
        Federation federation = testbed(AllMethods.fedCoMuon(), "cudasim:0", "cudasim:1", "cudasim:2")
                .exchangeChunk(chunk)
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

    private static Set<Thread> deviceThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().contains("cudasim"))
                .collect(toSet());
    }

    /** Runs with NCCL on as many simulated GPUs, and returns why that fails. */
    private Throwable failureByNccl(int devices, Duration limit) {
        String[] names =
                IntStream.range(0, devices).mapToObj(i -> "cudasim:" + i).toArray(String[]::new);
        Federation federation = testbed(AllMethods.fedCoMuon(), names)
                .exchange(Federation.ExchangeKind.NCCL)
                .ncclTimeout(limit)
                .build();
        Throwable failure = catchThrowable(federation::run);
        assertThat(deviceThreads()).isEmpty();
        nothingIsLeft();
        return failure;
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4})
    @Timeout(60)
    void aFailureOfNcclIsTypedAndNamesDeviceOperationAndSize(int devices) {
        requireSimulated();
        for (int after : new int[] {2, 3}) { // 1 is the start of NCCL
            Simulator.inject("nccl", 1, after);
            assertThat(failureByNccl(devices, IN_THE_END))
                    .isInstanceOf(DeviceException.Fault.class)
                    .hasMessageContaining("cudasim:1: sum of %d elements of a sum for NCCL".formatted(PARAMETERS))
                    .hasMessageContaining("injected");
        }
        Simulator.inject("nccl", 1, 1);
        assertThat(failureByNccl(devices, IN_THE_END))
                .isInstanceOf(DeviceException.Fault.class)
                .hasMessageContaining("cudasim:1: joining cudasim:0,cudasim:1");
    }

    /** A device fails beside NCCL, at the start and in exchanges, while the others wait for it there. */
    @ParameterizedTest
    @CsvSource({
        "2, malloc, 1",
        "3, malloc, 9",
        "4, malloc, 12",
        "2, launch, 1",
        "3, launch, 9",
        "4, launch, 24",
        "3, copy, 2"
    })
    @Timeout(60)
    void aDeviceThatFailsBesideNcclIsNamed(int devices, String what, int after) {
        requireSimulated();
        Simulator.inject(what, 1, after);
        assertThat(failureByNccl(devices, IN_THE_END))
                .isInstanceOf(what.equals("malloc") ? DeviceException.OutOfMemory.class : DeviceException.Fault.class)
                .hasMessageContaining("cudasim:1");
    }

    /** NCCL reports nothing, and kernels wait for a device that does not take part. */
    @ParameterizedTest
    @CsvSource({"2, nccl-dead, 1", "3, nccl-dead, 3", "4, nccl-dead, 2", "2, nccl-stuck, 1", "3, nccl-stuck, 2"})
    @Timeout(60)
    void aDeviceThatNoLongerTakesPartIsFoundByTheTimeLimit(int devices, String what, int after) {
        requireSimulated();
        Simulator.inject(what, 1, after);
        assertThat(failureByNccl(devices, Duration.ofMillis(500)))
                .isInstanceOf(DeviceException.Fault.class)
                .hasMessageContaining("cudasim:")
                .hasMessageContaining("not done after 0.500 s");
    }

    /** The call of NCCL has succeeded, and its query says otherwise later. */
    @ParameterizedTest
    @ValueSource(ints = {2, 3, 4})
    @Timeout(60)
    void anAsynchronousErrorOfNcclEndsTheRun(int devices) {
        requireSimulated();
        Simulator.inject("nccl-remote", 1, 2);
        assertThat(failureByNccl(devices, IN_THE_END))
                .isInstanceOf(DeviceException.Fault.class)
                .hasMessageContaining("sum of %d elements".formatted(PARAMETERS))
                .hasMessageContaining("remote process exited");
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
