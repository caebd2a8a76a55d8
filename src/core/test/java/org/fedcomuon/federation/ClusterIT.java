package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Contribution;
import org.fedcomuon.cluster.InProcessCluster;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.cluster.WireFormat;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Method;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A federation whose clients are divided among members: the bits are those of one process. */
class ClusterIT {
    private static final int CLIENTS = 8;

    @TempDir
    Path directory;

    static Stream<Method> methods() {
        return AllMethods.all();
    }

    private static Federation.Builder testbed(Method method) {
        return testbed(AllMethods.problem(method, CLIENTS), method);
    }

    private static Federation.Builder testbed(Problem problem, Method method) {
        return Federation.of(problem, method).iterations(23).tau(5).seed(42).participation(0.6);
    }

    /** Each member in a thread of its own; what member 0 returns. The first failure is thrown when all have ended. */
    private static Result run(int members, UnaryOperator<Cluster> wrap, Function<Cluster, Federation> federation)
            throws Exception {
        List<Cluster> clusters = InProcessCluster.of(members);
        try (var threads = Executors.newFixedThreadPool(members)) {
            CompletionService<Result> ended = new ExecutorCompletionService<>(threads);
            var futures = new ArrayList<Future<Result>>();
            for (Cluster cluster : clusters) {
                Callable<Result> member =
                        () -> federation.apply(wrap.apply(cluster)).run();
                futures.add(ended.submit(member));
            }
            Throwable first = null;
            for (int i = 0; i < members; i++) {
                try {
                    ended.take().get();
                } catch (ExecutionException e) {
                    first = first == null ? e.getCause() : first;
                }
            }
            if (first instanceof Exception e) {
                throw e;
            }
            return futures.getFirst().get();
        } finally {
            clusters.forEach(Cluster::close);
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void theNumberOfMembersDoesNotChangeABit(Method method) throws Exception {
        Result whole = testbed(method).build().run();
        for (int members : new int[] {1, 2, 3}) {
            Result result = run(
                    members,
                    cluster -> cluster,
                    cluster -> testbed(method).cluster(cluster).build());
            assertThat(result.sha256()).isEqualTo(whole.sha256());
            assertThat(result.communicatedBytes()).isEqualTo(whole.communicatedBytes());
            assertThat(result.roundTrips()).isEqualTo(whole.roundTrips());
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void goesOnFromACheckpointHereOrInOneProcess(Method method) throws Exception {
        Result whole = testbed(method).build().run();
        Path here = Files.createDirectory(directory.resolve("checkpoints"));
        // What members that were killed have left.
        Files.createFile(here.resolve(".checkpoint-0000000004.member-1.0123456789abcdef.safetensors-part"));
        Files.createFile(here.resolve("checkpoint-0000000004.member-2"));
        Result stopped = run(3, cluster -> cluster, cluster -> {
            var federation = new Federation[1];
            federation[0] = testbed(method)
                    .cluster(cluster)
                    .checkpoints(here, 1)
                    .listener(new Listener() {
                        @Override
                        public void onStep(long done) {
                            if (done == 7) {
                                federation[0].stop();
                            }
                        }
                    })
                    .build();
            return federation[0];
        });
        assertThat(stopped.stopped()).isTrue();
        assertThat(stopped.step()).isBetween(8L, 11L);
        try (Stream<Path> files = Files.list(here)) {
            assertThat(files.map(file -> "" + file.getFileName()))
                    .allMatch(name -> name.matches("checkpoint-\\d+\\.safetensors"));
        }
        Result inOne = testbed(method).resume(here).build().run();
        Result inTwo = run(
                2,
                cluster -> cluster,
                cluster -> testbed(method).cluster(cluster).resume(here).build());
        assertThat(inOne.sha256()).isEqualTo(whole.sha256());
        assertThat(inTwo.sha256()).isEqualTo(whole.sha256());
        assertThat(inTwo.communicatedBytes()).isEqualTo(whole.communicatedBytes());
    }

    /** Something between a member and its cluster. */
    private abstract static class Forwarding implements Cluster {
        private final Cluster cluster;

        Forwarding(Cluster cluster) {
            this.cluster = cluster;
        }

        @Override
        public int members() {
            return cluster.members();
        }

        @Override
        public int self() {
            return cluster.self();
        }

        @Override
        public Cluster.Answer exchange(Contribution mine) {
            return cluster.exchange(mine);
        }

        @Override
        public void fail(String reason) {
            cluster.fail(reason);
        }

        @Override
        public void close() {
            cluster.close();
        }
    }

    /** Writes down what leaves a member. */
    private static final class Listening extends Forwarding {
        private final ConcurrentLinkedQueue<Contribution> left;
        private final AtomicInteger textBytes;

        Listening(Cluster cluster, ConcurrentLinkedQueue<Contribution> left, AtomicInteger textBytes) {
            super(cluster);
            this.left = left;
            this.textBytes = textBytes;
        }

        @Override
        public Cluster.Answer exchange(Contribution mine) {
            left.add(mine);
            textBytes.addAndGet(WireFormat.header(mine).length);
            return super.exchange(mine);
        }
    }

    /** u is private; W and M cross, and what is said beside them is too short to hold an example. */
    @Test
    void nothingButWAndMLeavesAMember() throws Exception {
        var left = new ConcurrentLinkedQueue<Contribution>();
        var text = new AtomicInteger();
        Path here = directory.resolve("checkpoints");
        Result result = run(
                2,
                cluster -> new Listening(cluster, left, text),
                cluster -> Federation.of(new RateTestbed(CLIENTS, 1), AllMethods.fedCoMuon())
                        .iterations(20)
                        .tau(5)
                        .cluster(cluster)
                        .checkpoints(here, 2)
                        .build());
        Set<String> names = new TreeSet<>();
        long bytes = 0;
        for (Contribution each : left) {
            for (Contribution.Values values : each.values()) {
                names.add(values.name());
                bytes += values.name().equals("average W") ? 0 : values.rows().byteSize();
            }
        }
        assertThat(names).containsExactly("M", "W", "average W");
        assertThat(2 * bytes).isEqualTo(result.communicatedBytes()); // and as much comes back
        assertThat(text.get() / left.size()).isLessThan(200);
    }

    @Test
    void whatMembersSayIsReadAsItWasWritten() throws Exception {
        var left = new ConcurrentLinkedQueue<Contribution>();
        run(
                2,
                cluster -> new Listening(cluster, left, new AtomicInteger()),
                cluster -> testbed(new Failing(), AllMethods.fedCoMuon())
                        .onFault(ClientFault.Policy.DROP)
                        .cluster(cluster)
                        .build());
        assertThat(left).anyMatch(each -> !each.status().faults().isEmpty());
        for (Contribution each : left) {
            WireFormat.Header read = WireFormat.header(WireFormat.header(each));
            assertThat(read.status()).isEqualTo(each.status());
            assertThat(read.clients()).isEqualTo(each.clients());
            assertThat(read.weights()).isEqualTo(each.weights());
            for (int i = 0; i < each.values().size(); i++) {
                assertThat(read.lengths().get(i)).isEqualTo(each.length(i));
                assertThat(read.names().get(i)).isEqualTo(each.values().get(i).name());
            }
            var answer = new Cluster.Answer(List.of(each.status()), each.weights(), List.of());
            assertThat(WireFormat.answer(WireFormat.answer(answer))).isEqualTo(answer);
        }
    }

    /** Clients 3 and 4 throw in their tenth sample. */
    private static final class Failing implements Problem {
        private final Problem bed = new RateTestbed(CLIENTS, 1);

        @Override
        public Layout layout() {
            return bed.layout();
        }

        @Override
        public int innerDimension() {
            return bed.innerDimension();
        }

        @Override
        public int clients() {
            return bed.clients();
        }

        @Override
        public Client client(int k) {
            Client client = bed.client(k);
            if (k != 3 && k != 4) {
                return client;
            }
            return new Client() {
                @Override
                public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                    if (xi.draw() == 9) {
                        throw new IllegalStateException("out of order");
                    }
                    client.inner(xi, w, value, jacobian);
                }

                @Override
                public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                    client.outerGradient(zeta, y, gradient);
                }
            };
        }
    }

    @Test
    void faultsOfAnyMemberAreToldByTheFirst() throws Exception {
        var told = new HashSet<Integer>();
        var listener = new Listener() {
            @Override
            public void onClientFault(ClientFault fault) {
                told.add(fault.client());
            }
        };
        Function<Federation.Builder, Federation.Builder> drop =
                builder -> builder.participation(1).onFault(ClientFault.Policy.DROP);
        Result whole = drop.apply(testbed(new Failing(), AllMethods.fedCoMuon()))
                .build()
                .run();
        Result result = run(3, cluster -> cluster, cluster -> {
            Federation.Builder builder =
                    drop.apply(testbed(new Failing(), AllMethods.fedCoMuon()).cluster(cluster));
            return (cluster.self() == 0 ? builder.listener(listener) : builder).build();
        });
        assertThat(result.sha256()).isEqualTo(whole.sha256());
        assertThat(result.faults()).isEqualTo(whole.faults()).isEqualTo(2);
        assertThat(told).containsExactlyInAnyOrder(3, 4);
    }

    @Test
    void aMemberThatFailsEndsTheRunEverywhere() {
        assertThatThrownBy(() -> run(
                        3,
                        cluster -> cluster,
                        cluster -> testbed(new Failing(), AllMethods.fedCoMuon())
                                .participation(1)
                                .cluster(cluster)
                                .build()))
                .hasMessageContaining("out of order");
    }

    private static Contribution nothing(int client) {
        return new Contribution(
                new Cluster.MemberStatus("run", 0, false, Map.of(), List.of()),
                List.of(client),
                List.of(1.0),
                List.of());
    }

    @Test
    @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aMemberThatLeavesEarlyIsNotWaitedFor() throws Exception {
        List<Cluster> members = InProcessCluster.of(2);
        try (var threads = Executors.newFixedThreadPool(2);
                Cluster first = members.get(0)) {
            Future<Cluster.Answer> waiting = threads.submit(() -> first.exchange(nothing(0)));
            members.get(1).close();
            members.get(1).close(); // again: it is one member that has left
            assertThatThrownBy(waiting::get).hasRootCauseMessage("member 1 failed: it has left early");
            assertThatThrownBy(() -> first.exchange(nothing(0))).isInstanceOf(MemberFailedException.class);
        }
    }

    @Test
    @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aMeetingThatAllCameToIsNotUndoneByWhoLeavesFirst() throws Exception {
        for (int i = 0; i < 200; i++) {
            List<Cluster> members = InProcessCluster.of(2);
            try (var threads = Executors.newFixedThreadPool(2)) {
                var answers = new ArrayList<Future<Cluster.Answer>>();
                for (Cluster member : members) {
                    answers.add(threads.submit(() -> {
                        try (member) {
                            return member.exchange(nothing(member.self()));
                        }
                    }));
                }
                for (Future<Cluster.Answer> answer : answers) {
                    assertThat(answer.get().weights()).containsExactly(1.0, 1.0);
                }
            }
        }
    }

    @Test
    void membersThatRunDifferentThingsAreToldApart() {
        assertThatThrownBy(() -> run(
                        2,
                        cluster -> cluster,
                        cluster -> testbed(cluster.self() == 0 ? AllMethods.fedCoMuon() : AllMethods.fedCoMuonVr())
                                .tau(cluster.self() == 0 ? 5 : 4)
                                .cluster(cluster)
                                .build()))
                .isInstanceOf(MemberFailedException.class)
                .hasMessageContaining("where member 0 brings");
    }

    @Test
    void membersWithOtherDataAreToldApart() {
        assertThatThrownBy(() -> run(
                        2,
                        cluster -> cluster,
                        cluster -> testbed(AllMethods.fedCoMuon())
                                .describe("data", "of member " + cluster.self())
                                .cluster(cluster)
                                .build()))
                .isInstanceOf(MemberFailedException.class)
                .hasMessageContaining("member 1 failed: it does not run what member 0 runs: its data");
    }

    /** What a member brought to a meeting, and was answered. */
    private record SharedState(Contribution brought, Cluster.Answer answered) {}

    private static MemorySegment copy(MemorySegment segment) {
        return MemorySegment.ofArray(segment.toArray(ValueLayout.JAVA_BYTE));
    }

    private static Contribution copy(Contribution mine) {
        return new Contribution(
                mine.status(),
                mine.clients(),
                mine.weights(),
                mine.values().stream()
                        .map(values -> new Contribution.Values(values.name(), copy(values.rows())))
                        .toList());
    }

    /** Writes the meetings of a member down. */
    private static Cluster recording(Cluster cluster, List<SharedState> meetings) {
        return new Forwarding(cluster) {
            @Override
            public Cluster.Answer exchange(Contribution mine) {
                Contribution brought = copy(mine);
                Cluster.Answer answer = super.exchange(mine);
                meetings.add(new SharedState(
                        brought,
                        new Cluster.Answer(
                                answer.statuses(),
                                answer.weights(),
                                answer.means().stream().map(ClusterIT::copy).toList())));
                return answer;
            }
        };
    }

    /** A member that was lost: it is alone, and hears what was answered before. */
    private static Cluster replaying(Cluster cluster, Iterator<SharedState> meetings) {
        return new Forwarding(cluster) {
            @Override
            public boolean isRejoining() {
                return true;
            }

            @Override
            public Cluster.Answer exchange(Contribution mine) {
                SharedState before = meetings.next();
                assertThat(mine.status().step())
                        .isEqualTo(before.brought().status().step());
                assertThat(mine.weights()).isEqualTo(before.brought().weights());
                assertThat(mine.values()).hasSameSizeAs(before.brought().values());
                for (int i = 0; i < mine.values().size(); i++) {
                    assertThat(mine.values()
                                    .get(i)
                                    .rows()
                                    .mismatch(before.brought().values().get(i).rows()))
                            .isEqualTo(-1);
                }
                return before.answered();
            }
        };
    }

    /** Whichever it is, and though the others have gone on: the first finds checkpoints that it has written itself. */
    @ParameterizedTest
    @MethodSource("methods")
    void aMemberThatStartsAgainBringsWhatItBrought(Method method) throws Exception {
        int members = 3;
        Path here = directory.resolve("checkpoints");
        List<List<SharedState>> meetings = Stream.generate(() -> (List<SharedState>) new ArrayList<SharedState>())
                .limit(members)
                .toList();
        Result whole = run(
                members,
                cluster -> recording(cluster, meetings.get(cluster.self())),
                cluster -> testbed(method).cluster(cluster).checkpoints(here, 1).build());
        List<Path> kept = new CheckpointStore(here).all();
        long step = CheckpointStore.step(kept.getFirst());
        assertThat(step).isEqualTo(20);
        List<Cluster> clusters = InProcessCluster.of(members);
        try {
            for (Cluster cluster : clusters) {
                Iterator<SharedState> since = meetings.get(cluster.self()).stream()
                        .dropWhile(meeting -> meeting.brought().status().step() < step)
                        .iterator();
                Result again = testbed(method)
                        .cluster(replaying(cluster, since))
                        .checkpoints(here, 1)
                        .resume(kept.getFirst())
                        .build()
                        .run();
                assertThat(again.sha256()).isEqualTo(whole.sha256());
                assertThat(since).isExhausted();
            }
        } finally {
            clusters.forEach(Cluster::close);
        }
        assertThat(new CheckpointStore(here).all()).isEqualTo(kept);
    }

    @Test
    void aMemberHasOneDeviceAndAClient() {
        List<Cluster> clusters = InProcessCluster.of(CLIENTS + 1);
        try {
            Cluster cluster = clusters.getFirst();
            assertThatThrownBy(() ->
                            testbed(AllMethods.fedCoMuon()).cluster(cluster).build())
                    .hasMessageContaining("9 members for 8 clients");
            assertThatThrownBy(() -> testbed(AllMethods.fedCoMuon())
                            .devices("cpu:0", "cpu:1")
                            .cluster(cluster)
                            .build())
                    .isInstanceOf(IllegalArgumentException.class);
        } finally {
            clusters.forEach(Cluster::close);
        }
    }
}
