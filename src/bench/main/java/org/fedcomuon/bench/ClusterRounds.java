package org.fedcomuon.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Round;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.method.Variable;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;

/**
 * Rounds with almost no computation, so that their time is the time of the exchange of W and M: tau = 1, and one vector
 * as the weights, which is not orthogonalized.
 */
public final class ClusterRounds {
    private ClusterRounds() {}

    /**
     * The rounds to measure.
     *
     * @param clients of all members
     * @param elements of the weights
     * @param rounds to measure; one more precedes them
     * @param computes whether clients take FedCoMuon's steps; otherwise they only exchange, with as little memory as
     *     that takes
     */
    public record Work(int clients, int elements, int rounds, boolean computes) {
        private Federation.Builder federation() {
            Layout layout = Layout.of(Block.vector("W", elements));
            Schedule rate = Schedule.constant(0.1);
            return computes
                    ? Federation.of(
                            new ScaleProblem(layout, clients, 1), new FedCoMuon(rate, rate, rate, Muon.standard()))
                    : Federation.of(new NoOracle(layout, clients), new ExchangeAlone());
        }
    }

    /**
     * The result of one process.
     *
     * @param seconds the median of a round
     * @param bytes that it has sent and received per round
     * @param heap the most bytes in the Java heap
     */
    public record Measured(double seconds, long bytes, long heap) {
        /** Reads what {@code toString} wrote in another process. */
        public static Measured of(String text) {
            String[] parts = text.strip().split(" ", 3);
            return new Measured(Double.parseDouble(parts[0]), Long.parseLong(parts[1]), Long.parseLong(parts[2]));
        }

        @Override
        public String toString() {
            return "%s %d %d".formatted(seconds, bytes, heap);
        }
    }

    /** Runs the rounds in this process, alone or as one member. Only the first member measures the time and bytes. */
    public static Measured run(Optional<Cluster> cluster, Work work) throws InterruptedException {
        resetHeapPeak();
        var ends = new double[work.rounds + 1];
        var bytes = new long[work.rounds + 1];
        Federation.Builder run = work.federation()
                .threads(1)
                .workers(1)
                .iterations(work.rounds + 1)
                .listener(new Listener() {
                    @Override
                    public void onRound(Round round) {
                        ends[(int) round.number()] = round.seconds();
                        bytes[(int) round.number()] =
                                cluster.map(Cluster::exchangedBytes).orElse(0L);
                    }
                });
        cluster.ifPresent(run::cluster);
        run.build().run();
        var each = new double[work.rounds];
        Arrays.setAll(each, i -> ends[i + 1] - ends[i]);
        return new Measured(Timing.of(each).median(), (bytes[work.rounds] - bytes[0]) / work.rounds, heapPeak());
    }

    /** Returns the most bytes that were in the Java heap of this process since {@link #resetHeapPeak}. */
    public static long heapPeak() {
        return heap().stream().mapToLong(pool -> pool.getPeakUsage().getUsed()).sum();
    }

    /** Forgets the greatest use of the Java heap. */
    public static void resetHeapPeak() {
        heap().forEach(MemoryPoolMXBean::resetPeakUsage);
    }

    private static List<MemoryPoolMXBean> heap() {
        return ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getType() == MemoryType.HEAP)
                .toList();
    }

    /** W and M, and an exchange of both in each step. */
    private record ExchangeAlone() implements Method {
        @Override
        public String name() {
            return "exchange-alone";
        }

        @Override
        public Map<String, Object> parameters() {
            return Map.of();
        }

        @Override
        public void validate(long iterations, int tau) {}

        @Override
        public Replica on(Clients clients) {
            Variable w = clients.weights();
            Variable m = clients.state("M", clients.n());
            return (t, server) -> server.average(w, m);
        }
    }

    /** Clients that are asked for nothing. */
    private record NoOracle(Layout layout, int clients) implements Problem {
        @Override
        public int innerDimension() {
            return 1;
        }

        @Override
        public Client client(int k) {
            return new Client() {
                @Override
                public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                    throw new UnsupportedOperationException("this client computes nothing");
                }

                @Override
                public void outerGradient(Sample zeta, Floats y, Floats gradient) {
                    throw new UnsupportedOperationException("this client computes nothing");
                }
            };
        }
    }
}
