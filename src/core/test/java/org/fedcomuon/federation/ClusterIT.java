package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
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
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.Cluster.MeanBlock;
import org.fedcomuon.cluster.Cluster.MemberStatus;
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
import org.junit.jupiter.params.provider.ValueSource;

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
    static Result run(int members, UnaryOperator<Cluster> wrap, Function<Cluster, Federation> federation)
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
        public List<MemberStatus> exchange(MemberStatus mine) {
            return cluster.exchange(mine);
        }

        @Override
        public void mean(List<? extends MeanBlock> blocks) {
            cluster.mean(blocks);
        }

        @Override
        public long exchangedBytes() {
            return cluster.exchangedBytes();
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

    /** Something between a block and its engine. */
    private abstract static class ForwardingBlock implements MeanBlock {
        final MeanBlock block;

        ForwardingBlock(MeanBlock block) {
            this.block = block;
        }

        @Override
        public int length() {
            return block.length();
        }

        @Override
        public long terms() {
            return block.terms();
        }

        @Override
        public double total() {
            return block.total();
        }

        @Override
        public void exponents(MemorySegment into) {
            block.exponents(into);
        }

        @Override
        public void sums(MemorySegment exponents, MemorySegment into) {
            block.sums(exponents, into);
        }

        @Override
        public void finish(MemorySegment exponents, MemorySegment sums) {
            block.finish(exponents, sums);
        }

        @Override
        public void receive(MemorySegment mean) {
            block.receive(mean);
        }
    }

    /** Writes down what leaves a member. */
    private static final class Listening extends Forwarding {
        private final ConcurrentLinkedQueue<MemberStatus> left;
        private final AtomicLong meanBytes;

        Listening(Cluster cluster, ConcurrentLinkedQueue<MemberStatus> left, AtomicLong meanBytes) {
            super(cluster);
            this.left = left;
            this.meanBytes = meanBytes;
        }

        @Override
        public List<MemberStatus> exchange(MemberStatus mine) {
            left.add(mine);
            return super.exchange(mine);
        }

        @Override
        public void mean(List<? extends MeanBlock> blocks) {
            super.mean(blocks.stream()
                    .map(block -> new ForwardingBlock(block) {
                        @Override
                        public void exponents(MemorySegment into) {
                            super.exponents(into);
                            meanBytes.addAndGet(into.byteSize());
                        }

                        @Override
                        public void sums(MemorySegment exponents, MemorySegment into) {
                            super.sums(exponents, into);
                            meanBytes.addAndGet(into.byteSize());
                        }
                    })
                    .toList());
        }
    }

    /** u is private; W and M cross, nine bytes a weight, and what is said beside them is too short for an example. */
    @ParameterizedTest
    @ValueSource(ints = {10, 1000})
    void nothingButWAndMLeavesAMember(int clients) throws Exception {
        var left = new ConcurrentLinkedQueue<MemberStatus>();
        var meanBytes = new AtomicLong();
        Path here = directory.resolve("checkpoints");
        int members = 2;
        Result result = run(
                members,
                cluster -> new Listening(cluster, left, meanBytes),
                cluster -> Federation.of(new RateTestbed(clients, 1), AllMethods.fedCoMuon())
                        .iterations(20)
                        .tau(5)
                        .participation(0.5)
                        .cluster(cluster)
                        .checkpoints(here, 2)
                        .build());
        long elements = 0;
        long text = 0;
        Set<String> names = new TreeSet<>();
        for (MemberStatus each : left) {
            for (MemberStatus.Posted posted : each.posted()) {
                names.add(posted.name());
                elements += posted.length();
            }
            int bytes = WireFormat.bytes(each).length;
            assertThat(bytes).isLessThan(250);
            text += bytes;
        }
        assertThat(names).containsExactly("M", "W", "average W");
        assertThat(meanBytes.get()).isEqualTo(9 * elements);
        long parameters = (long) RateTestbed.ROWS * RateTestbed.COLS;
        assertThat(elements / members).isEqualTo(parameters * (2 * 4 + 1)); // four rounds, and the result
        // What a member sends comes back, and the statuses of all.
        assertThat(result.exchangedBytes()).isEqualTo(2 * 9 * elements / members + text / members * (1 + members));
        assertThat(result.exchanges()).isEqualTo(left.size() / members);
    }

    @Test
    void whatMembersSayIsReadAsItWasWritten() throws Exception {
        var left = new ConcurrentLinkedQueue<MemberStatus>();
        run(
                2,
                cluster -> new Listening(cluster, left, new AtomicLong()),
                cluster -> testbed(new Failing(), AllMethods.fedCoMuon())
                        .onFault(ClientFault.Policy.DROP)
                        .cluster(cluster)
                        .build());
        assertThat(left).anyMatch(each -> !each.faults().isEmpty());
        assertThat(left).anyMatch(each -> !each.dropped().isEmpty());
        for (MemberStatus each : left) {
            assertThat(WireFormat.status(WireFormat.bytes(each))).isEqualTo(each);
        }
        List<MemberStatus> all = List.copyOf(left);
        assertThat(WireFormat.statuses(WireFormat.bytes(all))).isEqualTo(all);
    }

    /** As the driver of an engine may do it, far from any device: with the formula that the kernels have. */
    private static float[] meanElsewhere(MeanBlock block, MemorySegment exponents, MemorySegment sums) {
        var mean = new float[block.length()];
        int bits = 62 - (64 - Long.numberOfLeadingZeros(block.terms() - 1));
        for (int i = 0; i < mean.length; i++) {
            int exponent = exponents.get(ValueLayout.JAVA_BYTE, i) & 0xff;
            double sum = (double) sums.getAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, i);
            mean[i] = exponent == 0xff ? Float.NaN : (float) (Math.scalb(sum, exponent - 126 - bits) / block.total());
        }
        return mean;
    }

    @Test
    void aMeanThatIsComputedElsewhereHasTheSameBits() throws Exception {
        Method method = AllMethods.fedCoMuonVr();
        double[] weights = {5, 1, 1, 2, 3, 0.1, 7, 1};
        String expected = testbed(method).weights(weights).build().run().sha256();
        Result result = run(
                2,
                cluster -> new Forwarding(cluster) {
                    @Override
                    public void mean(List<? extends MeanBlock> blocks) {
                        super.mean(blocks.stream()
                                .map(block -> new ForwardingBlock(block) {
                                    @Override
                                    public void finish(MemorySegment exponents, MemorySegment sums) {
                                        block.receive(MemorySegment.ofArray(meanElsewhere(block, exponents, sums)));
                                    }
                                })
                                .toList());
                    }
                },
                cluster -> testbed(method).weights(weights).cluster(cluster).build());
        assertThat(result.sha256()).isEqualTo(expected);
    }

    /** Memory of the Java heap, and native memory that no 64-bit integer begins at. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anyMemoryOfAnEngineWillDo(boolean heap) throws Exception {
        Method method = AllMethods.fedCoMuon();
        String expected = testbed(method).build().run().sha256();
        Result result = run(
                2,
                cluster -> new Forwarding(cluster) {
                    private MemorySegment other(MemorySegment memory) {
                        return heap
                                ? MemorySegment.ofArray(new byte[(int) memory.byteSize()])
                                : Arena.ofAuto()
                                        .allocate(memory.byteSize() + 1, Long.BYTES)
                                        .asSlice(1);
                    }

                    @Override
                    public void mean(List<? extends MeanBlock> blocks) {
                        super.mean(blocks.stream()
                                .map(block -> new ForwardingBlock(block) {
                                    @Override
                                    public void exponents(MemorySegment into) {
                                        MemorySegment memory = other(into);
                                        super.exponents(memory);
                                        into.copyFrom(memory);
                                    }

                                    @Override
                                    public void sums(MemorySegment exponents, MemorySegment into) {
                                        MemorySegment memory = other(into);
                                        super.sums(other(exponents).copyFrom(exponents), memory);
                                        into.copyFrom(memory);
                                    }

                                    @Override
                                    public void finish(MemorySegment exponents, MemorySegment sums) {
                                        super.finish(
                                                other(exponents).copyFrom(exponents),
                                                other(sums).copyFrom(sums));
                                    }
                                })
                                .toList());
                    }
                },
                cluster -> testbed(method).cluster(cluster).build());
        assertThat(result.sha256()).isEqualTo(expected);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 7, 1000})
    void noSizeOfBlocksChangesABit(long elements) throws Exception {
        Method method = AllMethods.fedCoMuonVr();
        String expected = testbed(method).build().run().sha256();
        Result result = run(
                2,
                cluster -> cluster,
                cluster -> testbed(method)
                        .exchangeSection(elements)
                        .cluster(cluster)
                        .build());
        assertThat(result.sha256()).isEqualTo(expected);
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

    private static final MemberStatus NOTHING =
            new MemberStatus("run", 0, false, List.of(), List.of(), Map.of(), List.of());

    @Test
    @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aMemberThatLeavesEarlyIsNotWaitedFor() throws Exception {
        List<Cluster> members = InProcessCluster.of(2);
        try (var threads = Executors.newFixedThreadPool(2);
                Cluster first = members.get(0)) {
            Future<List<MemberStatus>> waiting = threads.submit(() -> first.exchange(NOTHING));
            members.get(1).close();
            members.get(1).close(); // again: it is one member that has left
            assertThatThrownBy(waiting::get).hasRootCauseMessage("member 1 failed: it has left early");
            assertThatThrownBy(() -> first.exchange(NOTHING)).isInstanceOf(MemberFailedException.class);
        }
    }

    @Test
    @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
    void aMeetingThatAllCameToIsNotUndoneByWhoLeavesFirst() throws Exception {
        for (int i = 0; i < 200; i++) {
            List<Cluster> members = InProcessCluster.of(2);
            try (var threads = Executors.newFixedThreadPool(2)) {
                var answers = new ArrayList<Future<List<MemberStatus>>>();
                for (Cluster member : members) {
                    answers.add(threads.submit(() -> {
                        try (member) {
                            return member.exchange(NOTHING);
                        }
                    }));
                }
                for (Future<List<MemberStatus>> answer : answers) {
                    assertThat(answer.get()).containsExactly(NOTHING, NOTHING);
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

    /**
     * What a member brought to a meeting, and got from it. Blocks follow each other in {@code brought} and {@code got}.
     */
    private record Meeting(
            MemberStatus status, List<MemberStatus> statuses, List<MemorySegment> brought, List<MemorySegment> got) {}

    private static MemorySegment copy(MemorySegment segment) {
        return MemorySegment.ofArray(segment.toArray(ValueLayout.JAVA_BYTE));
    }

    /** Writes the meetings of a member down. */
    private static Cluster recording(Cluster cluster, List<Meeting> meetings) {
        return new Forwarding(cluster) {
            @Override
            public List<MemberStatus> exchange(MemberStatus mine) {
                List<MemberStatus> all = super.exchange(mine);
                meetings.add(new Meeting(mine, all, new ArrayList<>(), new ArrayList<>()));
                return all;
            }

            @Override
            public void mean(List<? extends MeanBlock> blocks) {
                Meeting meeting = meetings.getLast();
                super.mean(blocks.stream()
                        .map(block -> new ForwardingBlock(block) {
                            @Override
                            public void exponents(MemorySegment into) {
                                super.exponents(into);
                                meeting.brought().add(copy(into));
                            }

                            @Override
                            public void sums(MemorySegment exponents, MemorySegment into) {
                                super.sums(exponents, into);
                                meeting.brought().add(copy(into));
                            }

                            @Override
                            public void finish(MemorySegment exponents, MemorySegment sums) {
                                super.finish(exponents, sums);
                                meeting.got().add(copy(exponents));
                                meeting.got().add(copy(sums));
                            }
                        })
                        .toList());
            }
        };
    }

    /** A member that was lost: it is alone, and gets what was exchanged before. */
    private static Cluster replaying(Cluster cluster, Iterator<Meeting> meetings) {
        return new Forwarding(cluster) {
            private Meeting meeting;

            @Override
            public boolean isRejoining() {
                return true;
            }

            @Override
            public List<MemberStatus> exchange(MemberStatus mine) {
                meeting = meetings.next();
                assertThat(mine.step()).isEqualTo(meeting.status().step());
                assertThat(mine.posted()).isEqualTo(meeting.status().posted());
                assertThat(mine.dropped()).isEqualTo(meeting.status().dropped());
                return meeting.statuses();
            }

            @Override
            public void mean(List<? extends MeanBlock> blocks) {
                assertThat(meeting.brought()).hasSize(2 * blocks.size());
                for (int i = 0; i < blocks.size(); i++) {
                    MeanBlock block = blocks.get(i);
                    MemorySegment exponents = meeting.got().get(2 * i);
                    var ownExponents = MemorySegment.ofArray(new byte[block.length()]);
                    block.exponents(ownExponents);
                    assertThat(ownExponents.mismatch(meeting.brought().get(2 * i)))
                            .isEqualTo(-1);
                    var ownSums = MemorySegment.ofArray(new long[block.length()]);
                    block.sums(exponents, ownSums);
                    assertThat(ownSums.mismatch(meeting.brought().get(2 * i + 1)))
                            .isEqualTo(-1);
                    block.finish(exponents, meeting.got().get(2 * i + 1));
                }
            }
        };
    }

    /** Whichever it is, and though the others have gone on: the first finds checkpoints that it has written itself. */
    @ParameterizedTest
    @MethodSource("methods")
    void aMemberThatStartsAgainBringsWhatItBrought(Method method) throws Exception {
        int members = 3;
        Path here = directory.resolve("checkpoints");
        List<List<Meeting>> meetings = Stream.generate(() -> (List<Meeting>) new ArrayList<Meeting>())
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
                Iterator<Meeting> since = meetings.get(cluster.self()).stream()
                        .dropWhile(meeting -> meeting.status().step() < step)
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
