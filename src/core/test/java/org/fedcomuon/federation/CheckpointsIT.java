package org.fedcomuon.federation;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.FedCoMuon;
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
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.Soak;
import org.fedcomuon.testing.SoakReport;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests that a run that was stopped or killed resumes with bit-identical results. */
class CheckpointsIT {
    @TempDir
    Path directory;

    static Stream<Method> methods() {
        return AllMethods.all();
    }

    private static Federation.Builder testbed(Method method) {
        return Federation.of(AllMethods.problem(method, 8), method)
                .iterations(33)
                .tau(5)
                .seed(42);
    }

    /** Stops after {@code step}. */
    static Result runUntil(long step, Federation.Builder builder) throws InterruptedException {
        var federation = new Federation[1];
        builder.listener(new Listener() {
            @Override
            public void onStep(long done) {
                if (done == step) {
                    federation[0].stop();
                }
            }
        });
        federation[0] = builder.build();
        return federation[0].run();
    }

    @ParameterizedTest
    @MethodSource("methods")
    void resumingIsBitIdenticalOnOtherDevicesToo(Method method) throws Exception {
        Result whole = testbed(method).participation(0.6).build().run();
        for (long stop : new long[] {10, 12, 14}) { // at an exchange, in a round, right before an exchange
            Path here = directory.resolve("stop-" + stop);
            Result first = runUntil(
                    stop,
                    testbed(method).participation(0.6).devices("cpu:0", "cpu:1").checkpoints(here, 2));
            assertThat(first.stopped()).isTrue();
            assertThat(first.checkpoint()).isPresent();
            Result rest = testbed(method)
                    .participation(0.6)
                    .devices("cpu:0", "cpu:1", "cpu:2")
                    .resume(here)
                    .build()
                    .run();
            assertThat(rest.sha256()).isEqualTo(whole.sha256());
            assertThat(rest.step()).isEqualTo(33);
            assertThat(rest.communicatedBytes()).isEqualTo(whole.communicatedBytes());
            assertThat(rest.roundTrips()).isEqualTo(whole.roundTrips());
        }
    }

    @Test
    void aClientDroppedFromTheRoundStaysDroppedAfterResuming() throws Exception {
        var testbed = new RateTestbed(8, 1);
        Problem problem = Problem.of(testbed.layout(), testbed.innerDimension(), 8, k -> new Client() {
            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                testbed.client(k).inner(xi, w, value, jacobian);
                if (k == 2 && xi.draw() == 7) { // step 6
                    throw new IOException("away");
                }
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                testbed.client(k).outerGradient(zeta, y, gradient);
            }
        });
        var builder = Federation.of(problem, AllMethods.fedCoMuon())
                .iterations(20)
                .tau(5)
                .seed(42)
                .onFault(ClientFault.Policy.DROP);
        Result whole = builder.build().run();
        assertThat(whole.faults()).isEqualTo(1);
        Result first = runUntil(8, builder.checkpoints(directory, 1));
        assertThat(first.step()).isEqualTo(8);
        Result rest = Federation.of(problem, AllMethods.fedCoMuon())
                .iterations(20)
                .tau(5)
                .seed(42)
                .onFault(ClientFault.Policy.DROP)
                .resume(directory)
                .build()
                .run();
        assertThat(rest.sha256()).isEqualTo(whole.sha256());
        assertThat(rest.faults()).isEqualTo(1);
    }

    @Test
    void holdsTheWholeStateAndSaysWhatItIs() throws Exception {
        testbed(AllMethods.fedCoMuonVr())
                .devices("cpu:0", "cpu:1")
                .checkpoints(directory, 2)
                .describe("data", "none")
                .build()
                .run();
        var store = new CheckpointStore(directory);
        assertThat(store.all()).hasSize(2);
        try (SafetensorsFile file = store.openNewest()) {
            assertThat(file.tensors().keySet())
                    .containsExactly("W", "Wold", "u", "v", "H", "M", "clients", "draws", "dropped");
            assertThat(file.longs("clients")).containsExactly(0, 1, 2, 3, 4, 5, 6, 7);
            assertThat(file.tensors().get("H").shape()).containsExactly(8L, 60L);
            assertThat(file.metadata())
                    .containsEntry("method", "fedcomuon-vr")
                    .containsEntry("method.gamma", "0.9")
                    .containsEntry("step", "33")
                    .containsEntry("seed", "42")
                    .containsEntry("tau", "5")
                    .containsEntry("iterations", "33")
                    .containsEntry("config.data", "none");
            // Three initial samples of g and one a step; the same of f.
            assertThat(file.longs("draws")).containsOnly(36L);
        }
    }

    @Test
    void writesEverySoManyRoundsAndAtTheEnd() throws Exception {
        var files = new ArrayList<Long>();
        testbed(AllMethods.fedCoMuon())
                .checkpoints(directory, 2)
                .listener(new Listener() {
                    @Override
                    public void onCheckpoint(long step, Path file) {
                        assertThat(file).exists();
                        files.add(step);
                    }
                })
                .build()
                .run();
        assertThat(files).containsExactly(10L, 20L, 30L, 33L);
    }

    @Test
    void aCheckpointOfAnotherRunIsRefusedWithTheDifference() throws Exception {
        testbed(AllMethods.fedCoMuon()).checkpoints(directory, 1).build().run();
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .tau(4)
                        .resume(directory)
                        .build()
                        .run())
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining("its tau is 5, not 4");
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .seed(1)
                        .resume(directory)
                        .build()
                        .run())
                .hasMessageContaining("its seed is 42, not 1");
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuonVr())
                        .resume(directory)
                        .build()
                        .run())
                .hasMessageContaining("its method is fedcomuon, not fedcomuon-vr");
        var faster =
                new FedCoMuon(Schedule.constant(0.03), Schedule.constant(0.2), Schedule.constant(0.1), AllMethods.MUON);
        assertThatThrownBy(() -> testbed(faster).resume(directory).build().run())
                .hasMessageContaining("its method.eta is 0.02, not 0.03");
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .describe("data", "x")
                        .resume(directory)
                        .build()
                        .run())
                .hasMessageContaining("does not say its config.data");
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .iterations(20)
                        .resume(directory)
                        .build()
                        .run())
                .hasMessageContaining("at step 33, beyond the 20 of this run");
        assertThatThrownBy(() -> Federation.of(new RateTestbed(9, 1), AllMethods.fedCoMuon())
                        .iterations(33)
                        .tau(5)
                        .seed(42)
                        .resume(directory)
                        .build()
                        .run())
                .hasMessageContaining("its clients is 8, not 9");
    }

    @Test
    void aCheckpointFromBeforeMeansWereExactIsRefused() throws Exception {
        testbed(AllMethods.fedCoMuon()).checkpoints(directory, 1).build().run();
        var store = new CheckpointStore(directory.resolve("older"));
        try (SafetensorsFile file = new CheckpointStore(directory).openNewest()) {
            var metadata = new LinkedHashMap<>(file.metadata());
            assertThat(metadata.remove(Setup.MEANS)).isEqualTo("exact");
            CheckpointStore.OURS.forEach(entry -> metadata.remove(entry.getKey()));
            metadata.remove("sha256");
            try (CheckpointStore.Pending pending = store.begin(33, metadata, List.of())) {
                pending.commit();
            }
        }
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .resume(store.directory())
                        .build()
                        .run())
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining("is from a version whose means were sums in client order");
    }

    @Test
    void aNewRunDoesNotMixItsCheckpointsWithThoseOfAnother() throws Exception {
        testbed(AllMethods.fedCoMuon()).checkpoints(directory, 1).build().run();
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .checkpoints(directory, 1)
                        .build()
                        .run())
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining("holds the checkpoints of a run already");
        testbed(AllMethods.fedCoMuon())
                .checkpoints(directory, 1)
                .resume(new CheckpointStore(directory).newest().orElseThrow())
                .build()
                .run();
    }

    @Test
    void aRunMayGoOnLongerUnlessASchedulePlansForItsEnd() throws Exception {
        testbed(AllMethods.fedCoMuon()).checkpoints(directory, 1).build().run();
        Result longer = testbed(AllMethods.fedCoMuon())
                .iterations(50)
                .resume(directory)
                .build()
                .run();
        assertThat(longer.sha256())
                .isEqualTo(testbed(AllMethods.fedCoMuon())
                        .iterations(50)
                        .build()
                        .run()
                        .sha256());
        var planned = new FedCoMuon(
                Schedule.cosine(0.02, 0.001), Schedule.constant(0.2), Schedule.constant(0.1), AllMethods.MUON);
        Path other = directory.resolve("planned");
        testbed(planned).checkpoints(other, 1).build().run();
        assertThatThrownBy(() ->
                        testbed(planned).iterations(50).resume(other).build().run())
                .hasMessageContaining("its iterations is 33, not 50");
    }

    @Test
    void aDamagedCheckpointIsRefusedAndThePreviousOneServes() throws Exception {
        Result whole = testbed(AllMethods.fedCoMuon())
                .checkpoints(directory, 1)
                .build()
                .run();
        var store = new CheckpointStore(directory);
        Path newest = store.newest().orElseThrow();
        byte[] bytes = Files.readAllBytes(newest);
        bytes[bytes.length - 100] ^= 4;
        Files.write(newest, bytes);
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .resume(directory)
                        .build()
                        .run())
                .isInstanceOfSatisfying(CheckpointException.class, e -> {
                    Path previous = e.previous().orElseThrow();
                    assertThat(e.getMessage()).contains(previous.toString());
                    try {
                        assertThat(testbed(AllMethods.fedCoMuon())
                                        .resume(previous)
                                        .build()
                                        .run()
                                        .sha256())
                                .isEqualTo(whole.sha256());
                    } catch (InterruptedException interrupted) {
                        throw new AssertionError(interrupted);
                    }
                });
    }

    @Test
    void aDirectoryThatCannotBeWrittenEndsTheRunWithOneLine() throws Exception {
        Path file = Files.writeString(directory.resolve("in-the-way"), "");
        assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                        .devices("cpu:0", "cpu:1")
                        .checkpoints(file.resolve("sub"), 1)
                        .build()
                        .run())
                .isInstanceOf(CheckpointException.class)
                .hasMessageContaining("in-the-way");
    }

    /** Runs in a process of its own, to be killed: the directory, the devices, whether to resume. */
    static final class Victim {
        private Victim() {}

        public static void main(String[] arguments) throws Exception {
            Path directory = Path.of(arguments[0]);
            var builder = Federation.of(new RateTestbed(8, 1), AllMethods.fedCoMuonVr())
                    .iterations(2000)
                    .tau(5)
                    .seed(42)
                    .devices(arguments[1].split(","))
                    .checkpoints(directory, 1);
            if (new CheckpointStore(directory).newest().isPresent()) {
                builder.resume(directory);
            }
            System.out.println(builder.build().run().sha256());
        }
    }

    private static Process start(Path directory, String devices) throws IOException {
        return new ProcessBuilder(ChildJvm.command(List.of(), Victim.class, List.of(directory.toString(), devices)))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }

    @Slow
    @Test
    @Tag(Soak.TAG)
    void aRunKilledWhileWritingResumesBitIdentically() throws Exception {
        String whole = Federation.of(new RateTestbed(8, 1), AllMethods.fedCoMuonVr())
                .iterations(2000)
                .tau(5)
                .seed(42)
                .build()
                .run()
                .sha256();
        int runs = Soak.times(1, 20);
        int kills = 3;
        int writing = 0;
        for (int run = 0; run < runs; run++) {
            Path here = directory.resolve("run" + run);
            for (int kill = 0; kill < kills; kill++) {
                writing += killWhileItWrites(here, kill % 2 == 0 ? "cpu:0" : "cpu:0,cpu:1") ? 1 : 0;
            }
            Process last = start(here, "cpu:0,cpu:1,cpu:2");
            String printed = new String(last.getInputStream().readAllBytes(), UTF_8).strip();
            assertThat(last.waitFor()).isZero();
            assertThat(printed).isEqualTo(whole);
            assertThat(unfinished(here)).isEmpty();
        }
        SoakReport.row(
                SoakReport.Table.KILLS,
                "the rate test-bed, as soon as a file is being written",
                "%d".formatted(runs * kills),
                "%d".formatted(writing),
                "%d of %d runs".formatted(runs, runs));
    }

    /** Whether it left something unfinished. */
    private static boolean killWhileItWrites(Path here, String devices) throws Exception {
        var store = new CheckpointStore(here);
        var before = store.newest();
        Process victim = start(here, devices);
        for (int i = 0; i < 600 && store.newest().equals(before) && victim.isAlive(); i++) {
            Thread.sleep(50);
        }
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(5);
        while (unfinished(here).isEmpty() && victim.isAlive() && System.nanoTime() < deadline) {
            Thread.onSpinWait();
        }
        victim.destroyForcibly(); // SIGKILL
        assertThat(victim.waitFor(30, TimeUnit.SECONDS)).isTrue();
        assertThat(store.newest()).isPresent();
        return !unfinished(here).isEmpty();
    }

    private static List<Path> unfinished(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.toString().endsWith("part")).toList();
        }
    }
}
