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
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
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

    private static final List<UnaryOperator<Federation.Builder>> MEANS = List.of(
            builder -> builder,
            builder -> builder.exchange(Federation.ExchangeKind.PEER),
            Federation.Builder::exchangeCopies);

    @ParameterizedTest
    @ValueSource(longs = {0, 1, 3, 16, 1000})
    void noSectionAndNoWayOfExchangingChangesABit(long section) throws Exception {
        Method method = AllMethods.fedCoMuonVr();
        var onCpu = new HashSet<String>();
        onCpu.add(testbed(method, "cpu:0").build().run().sha256());
        for (UnaryOperator<Federation.Builder> means : MEANS) {
            onCpu.add(means.apply(testbed(method, "cpu:0", "cpu:1", "cpu:2"))
                    .exchangeSection(section)
                    .build()
                    .run()
                    .sha256());
        }
        assertThat(onCpu).hasSize(1);
        requireSimulated();
        var onGpus = new HashSet<String>();
        onGpus.add(testbed(method, "cudasim:0").build().run().sha256());
        for (UnaryOperator<Federation.Builder> means : MEANS) {
            for (List<String> devices :
                    List.of(List.of("cudasim:0", "cudasim:1"), List.of("cudasim:2", "cudasim:0", "cudasim:1"))) {
                onGpus.add(means.apply(testbed(method, devices.toArray(String[]::new)))
                        .exchangeSection(section)
                        .build()
                        .run()
                        .sha256());
            }
        }
        assertThat(onGpus).hasSize(1);
    }

    @Test
    void theCopiesOfASectionRunBesideTheKernelsOfTheNext() throws Exception {
        requireSimulated();
        ExchangeProgram.requireOverlap(directory.resolve("trace"));
    }

    /** Whatever is exchanged, there is as much of it for ten clients as for a thousand. */
    @Test
    void exchangedBytesDoNotDependOnTheNumberOfClients() throws Exception {
        requireSimulated();
        String[] devices = {"cudasim:0", "cudasim:1"};
        for (UnaryOperator<Federation.Builder> means : MEANS) {
            var bytes = new HashSet<Long>();
            for (int clients : new int[] {10, 300}) {
                Federation.Builder federation = Federation.of(
                                new RateTestbed(clients, 1), new FedAvg(Schedule.constant(0.1)))
                        .iterations(4)
                        .tau(2)
                        .devices(devices);
                Result result = means.apply(federation).build().run();
                bytes.add(result.exchangedBytes());
                assertThat(result.exchanges()).isEqualTo(3); // two rounds, and the result
                assertThat(result.communicatedBytes()).isEqualTo(2L * 2 * clients * PARAMETERS * Float.BYTES);
            }
            // Reads and copies: the other's exponents, half of its sums and of the mean, and as much to it.
            boolean nccl = means.equals(MEANS.getFirst());
            assertThat(bytes).containsExactly(3 * PARAMETERS * (nccl ? 18 : 2 + 8 + 4));
        }
        Result onCpu = testbed(AllMethods.fedCoMuon(), "cpu:0", "cpu:1").build().run();
        assertThat(onCpu.exchangedBytes()).isZero(); // they have one memory
        assertThat(onCpu.exchanges()).isPositive();
        Result alone = testbed(AllMethods.fedCoMuon(), "cudasim:0").build().run();
        assertThat(alone.exchangedBytes()).isZero();
        assertThat(alone.exchanges()).isZero();
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
        assertThat(with.getLast()).isEqualTo("peer (reads), copies between devices: none");
        assertThat(without.getLast()).isEqualTo("peer (copies), copies between devices: some");
        assertThat(with).hasSize(2 * ExchangeProgram.PLACEMENTS.size() + 1);
        var hashes = new HashSet<String>(with.subList(0, with.size() - 1));
        hashes.addAll(without.subList(0, without.size() - 1));
        hashes.add(ExchangeProgram.run(List.of("cudasim:0")).sha256());
        assertThat(hashes).hasSize(1);
    }

    /** Devices wait for each other's reads and writes by events, and the host for nothing. */
    @Test
    void aDeviceReadsOthersAfterTheyHaveWrittenAndWritesAfterTheyHaveRead() throws Exception {
        requireSimulated();
        assumeTrue(!"off".equals(System.getenv("FEDCOMUON_CUDASIM_PEERS")), "no peers on this machine");
        Path file = directory.resolve("trace");
        Simulator.traced(file, () -> ExchangeProgram.run(List.of("cudasim:0", "cudasim:1")));
        Trace trace = Trace.read(file);
        for (int device = 0; device < 2; device++) {
            int other = 1 - device;
            List<Trace.Work> exponents = trace.launches(other, "fcm_k_mean_exponents");
            List<Trace.Work> sums = trace.launches(other, "fcm_k_mean_sums");
            List<Trace.Work> ownSums = trace.launches(device, "fcm_k_mean_sums");
            List<Trace.Work> combined = trace.launches(device, "fcm_k_mean_combine");
            List<Trace.Work> finished = trace.launches(device, "fcm_k_mean_finish");
            int means = combined.size();
            assertThat(means).isGreaterThan(2);
            for (int mean = 0; mean < means; mean++) {
                assertThat(combined.get(mean).runsAfter(exponents.get(mean))).isTrue();
                assertThat(finished.get(mean).runsAfter(sums.get(mean))).isTrue();
                assertThat(ownSums.get(mean).runsAfter(sums.get(mean)))
                        .as("one waits for the other")
                        .isFalse();
                Trace.Work written = finished.get(mean);
                trace.launchesOn(other).stream()
                        .filter(work -> work.line()
                                > trace.launches(other, "fcm_k_mean_finish")
                                        .get(written.equals(finished.getLast()) ? means - 1 : finished.indexOf(written))
                                        .line())
                        .findFirst()
                        .ifPresent(next -> assertThat(next.runsAfter(written)).isTrue());
                if (mean + PeerAveraging.SLOTS < means) { // each mean is one section, in the first slot
                    assertThat(exponents.get(mean + 1).runsAfter(combined.get(mean)))
                            .isTrue();
                    assertThat(sums.get(mean + 1).runsAfter(written)).isTrue();
                }
            }
        }
    }

    /** At the start and in the middle of exchanges: by reads, by copies and by NCCL, as numbered in {@code MEANS}. */
    @ParameterizedTest
    @CsvSource({
        "malloc, 1, 2",
        "malloc, 10, 2",
        "malloc, 25, 2",
        "copy, 9, 2",
        "copy, 31, 2",
        "copy, 200, 2",
        "launch, 1, 2",
        "launch, 77, 2",
        "malloc, 5, 1",
        "malloc, 14, 1",
        "launch, 1, 1",
        "launch, 13, 1",
        "launch, 14, 1",
        "launch, 77, 1",
        "malloc, 14, 0",
        "launch, 77, 0"
    })
    @Timeout(60)
    void aDeviceThatFailsIsNamedAndNothingIsLeft(String what, int after, int means) {
        requireSimulated();
        Simulator.inject(what, 1, after);
        Federation federation = MEANS.get(means)
                .apply(testbed(AllMethods.fedCoMuon(), "cudasim:0", "cudasim:1", "cudasim:2"))
                .exchangeSection(means == 2 ? 1 : 0)
                .iterations(200)
                .build();
        assertThatThrownBy(federation::run)
                .isInstanceOf(what.equals("malloc") ? DeviceException.OutOfMemory.class : DeviceException.Fault.class)
                .hasMessageContaining("cudasim:1");
    }

    @Test
    void ncclIsUsedWhereItIsAndItsBitsAreThoseOfOneDevice() throws Exception {
        requireSimulated();
        for (Method method : List.of(AllMethods.fedCoMuon(), AllMethods.fedCoMuonVr())) {
            Result one = testbed(method, "cudasim:0").build().run();
            assertThat(one.exchange()).isEqualTo("one device");
            for (List<String> devices :
                    List.of(List.of("cudasim:0", "cudasim:1"), List.of("cudasim:3", "cudasim:0", "cudasim:1"))) {
                Result result =
                        testbed(method, devices.toArray(String[]::new)).build().run();
                assertThat(result.exchange()).startsWith("nccl (NCCL 2.");
                assertThat(result.sha256()).isEqualTo(one.sha256());
                assertThat(result.communicatedBytes()).isEqualTo(one.communicatedBytes());
            }
            Result alone = testbed(method, "cudasim:0")
                    .exchange(Federation.ExchangeKind.NCCL)
                    .build()
                    .run();
            assertThat(alone.exchange()).startsWith("nccl (NCCL 2.");
            assertThat(alone.sha256()).isEqualTo(one.sha256());
        }
    }

    /** One client a device, two of which sit every round out: a device without a weight has nothing to add. */
    @Test
    void devicesWhoseClientsSitOutAddNothing() throws Exception {
        requireSimulated();
        var problem = new RateTestbed(3, 1);
        Method method = new FedAvg(Schedule.constant(0.1));
        var hashes = new HashSet<String>();
        hashes.add(Federation.of(problem, method)
                .devices("cudasim:0")
                .iterations(6)
                .participation(0.3)
                .build()
                .run()
                .sha256());
        for (UnaryOperator<Federation.Builder> means : MEANS) {
            hashes.add(means.apply(Federation.of(problem, method).devices("cudasim:0", "cudasim:1", "cudasim:2"))
                    .iterations(6)
                    .participation(0.3)
                    .build()
                    .run()
                    .sha256());
        }
        assertThat(hashes).hasSize(1);
    }

    /** Client 3 fails in its fourth sample, and is left out for the rest of its round. */
    private static Problem failing() {
        var testbed = new RateTestbed(CLIENTS, 1);
        return Problem.of(testbed.layout(), testbed.innerDimension(), CLIENTS, k -> new Client() {
            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                if (k == 3 && xi.draw() == 3) {
                    throw new IOException("away");
                }
                testbed.client(k).inner(xi, w, value, jacobian);
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                testbed.client(k).outerGradient(zeta, y, gradient);
            }
        });
    }

    /** The others learn who was dropped, wherever the client is. */
    @ParameterizedTest
    @ValueSource(strings = {"cpu", "cudasim"})
    void aClientThatIsDroppedIsDroppedEverywhere(String kind) throws Exception {
        if (kind.equals("cudasim")) {
            requireSimulated();
        }
        var hashes = new HashSet<String>();
        for (UnaryOperator<Federation.Builder> means : MEANS) {
            for (int devices = 1; devices <= 3; devices++) {
                String[] names = IntStream.range(0, devices)
                        .mapToObj(i -> kind + ":" + i)
                        .toArray(String[]::new);
                Federation.Builder federation = Federation.of(failing(), AllMethods.fedCoMuonVr())
                        .devices(names)
                        .iterations(9)
                        .tau(3)
                        .seed(42)
                        .weights(5, 1, 1, 2, 0.3)
                        .onFault(ClientFault.Policy.DROP);
                Result result = means.apply(federation).build().run();
                assertThat(result.faults()).isEqualTo(1);
                hashes.add(result.sha256());
            }
        }
        assertThat(hashes).hasSize(1);
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
        List<String> calls = List.of(
                "maximum of %d elements of exponents for NCCL".formatted(PARAMETERS),
                "sum of %d elements of sums for NCCL".formatted(PARAMETERS));
        for (int i = 0; i < calls.size(); i++) {
            Simulator.inject("nccl", 1, 2 + i); // 1 is the start of NCCL
            assertThat(failureByNccl(devices, IN_THE_END))
                    .isInstanceOf(DeviceException.Fault.class)
                    .hasMessageContaining("cudasim:1: " + calls.get(i))
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
                .hasMessageContaining("of %d elements".formatted(PARAMETERS))
                .hasMessageContaining("remote process exited");
    }

    @Test
    void ncclIsForGpusAndItsCheckpointsAreThoseOfAll() throws Exception {
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
        Result whole = testbed(AllMethods.fedCoMuon(), "cudasim:0")
                .iterations(6)
                .build()
                .run();
        for (Federation.ExchangeKind kind : Federation.ExchangeKind.values()) {
            Result rest = testbed(AllMethods.fedCoMuon(), "cudasim:1", "cudasim:2")
                    .iterations(6)
                    .exchange(kind)
                    .resume(directory)
                    .build()
                    .run();
            assertThat(rest.step()).isEqualTo(6);
            assertThat(rest.sha256()).isEqualTo(whole.sha256());
        }
    }
}
