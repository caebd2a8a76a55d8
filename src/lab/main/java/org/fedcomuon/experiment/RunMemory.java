package org.fedcomuon.experiment;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.LongStream;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.MuonPlan;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.method.Muon;
import org.fedcomuon.model.Gradients;
import org.fedcomuon.model.MemoryEstimate;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Layout;

/**
 * An estimate of the memory of a run in bytes, made before large allocations, so that a run that cannot fit is refused
 * with a figure instead of being killed later.
 *
 * @param variables of the method; exact
 * @param directions workspace of the orthogonalizer; exact, except for allocations of kernels
 * @param evaluations activations of as many clients as there are workers, or of all of them where {@code gradients}
 *     computes them together; see {@link MemoryEstimate}. What is computed in the memory of a GPU is not needed here
 * @param judgements activations of as many batches, and in meta learning of steps of adaptation, as are judged in
 *     parallel; no client trains meanwhile
 * @param data as tensors
 * @param rest W0, averages for evaluation, the JVM and libtorch themselves
 * @param complete whether the activations of the network are known; if not, the figures are lower bounds
 */
record RunMemory(
        long variables, long directions, long evaluations, long judgements, long data, long rest, boolean complete) {
    /** The JVM, its heap and the code of libtorch; measured with CIFAR-10, whose pixels are in the heap as well. */
    private static final long PROGRAM = 800L << 20;

    /** Copies of the model besides the variables: W0, the average that is evaluated, and the one that is written. */
    private static final int COPIES = 3;

    /** Of the number of clients that chance gives a member: more are as rare as one round in a thousand. */
    private static final int DEVIATIONS = 3;

    /**
     * Returns how many clients of a round a member has: its share, or where chance decides who takes part, hardly ever
     * more than this.
     *
     * @param clients of the federation
     * @param cohort how many of them take part in a round
     */
    static int share(int clients, int cohort, int members) {
        int all = Math.ceilDiv(clients, members);
        if (cohort == clients) {
            return all;
        }
        double mean = (double) cohort / members;
        return Math.min(Math.min(all, cohort), (int) Math.ceil(mean + DEVIATIONS * Math.sqrt(mean)));
    }

    /**
     * Returns the estimate for a process.
     *
     * @param clients of the process that take part in a round
     * @param d the dimension of the inner function
     * @param workers that evaluate, each a client at a time
     * @param devices among which the clients are divided
     * @param data bytes of tensors
     */
    static RunMemory of(Configuration c, Network network, int clients, int d, int workers, int devices, long data) {
        long model = network.parameters() * Float.BYTES;
        MethodChoice choice = c.chosen(MethodChoice.ALL);
        ObjectiveChoice objective = c.chosen(Objectives.ALL);
        long each = choice.adaptationBytes()
                .map(bytes -> bytes.applyAsLong(c, network))
                .orElseGet(() -> objective.evaluationBytes(c, network));
        boolean byMuon = c.method().parameters().containsKey("orthogonalizer");
        long parts = Math.min(devices, clients);
        // A method that evaluates g at two points has a Jacobian of each, and one that it tracks.
        long jacobians = (d - 1L) * (2L * choice.gradients() - 1);
        long variables = (clients * (choice.perClient() + jacobians) + parts * choice.shared()) * model;
        if (byMuon) {
            Muon muon = c.muon();
            variables += Float.BYTES
                    * (clients * muon.clientElements(network.layout(), choice.stepsAtServer())
                            + parts * muon.serverElements(network.layout(), choice.stepsAtServer()));
        }
        boolean together = c.gradients() == Gradients.TOGETHER && network.takesSeveralClients();
        return new RunMemory(
                variables,
                byMuon ? directions(c.muon(), network.layout(), clients, workers) : 0,
                (together ? clients : Math.min(Math.max(workers, devices), clients)) * each,
                workers * objective.judgementBytes(c, network),
                data,
                PROGRAM + COPIES * model,
                MemoryEstimate.judgement(network).complete());
    }

    /**
     * Returns the memory of the plans. Newton-Schulz is one call, in which small matrices need room for a few of them,
     * and the others take turns; the exact factor has a plan for each shape, and a workspace for each thread.
     */
    static long directions(Muon muon, Layout layout, int clients, int threads) {
        Map<List<Long>, Long> floats = new HashMap<>();
        for (NewtonSchulzSpec.Block block : muon.matrices(layout)) {
            floats.computeIfAbsent(List.of(block.rows(), block.cols()), _ -> {
                int together = MuonPlan.together(clients, block.rows(), block.cols());
                return workspace(
                        muon.orthogonalizer(),
                        Math.toIntExact(block.rows()),
                        Math.toIntExact(block.cols()),
                        together,
                        threads);
            });
        }
        LongStream each = floats.values().stream().mapToLong(Long::longValue);
        return Float.BYTES
                * switch (muon.orthogonalizer()) {
                    case Exact _, ExactSvd _ -> each.sum();
                    default -> each.max().orElse(0);
                };
    }

    private static long workspace(Orthogonalizer orthogonalizer, int rows, int cols, int clients, int threads) {
        long size = (long) rows * cols;
        long side = Math.min(rows, cols);
        return switch (orthogonalizer) {
            case Exact _ ->
                clients * size
                        + (long) Double.BYTES / Float.BYTES * Math.min(threads, clients) * 2 * (size + 2 * side * side);
            case ExactSvd _ -> 2L * clients * size + side * (rows + cols + 1);
            case GramNewtonSchulz _ -> clients * (2 * size + 5 * side * side);
            case NewtonSchulz _ -> side <= NewtonSchulzSpec.longestSide() ? 0 : clients * (2 * size + 2 * side * side);
            case Auto auto -> workspace(auto.pick(rows, cols, ElementType.FLOAT32), rows, cols, clients, threads);
        };
    }

    /** Returns the sum. */
    long bytes() {
        return variables + directions + Math.max(evaluations, judgements) + data + rest;
    }

    @Override
    public String toString() {
        return """
                %s %s of memory: %s for the method's variables, %s to orthogonalize, %s for gradients \
                (or %s to judge), %s data, %s else%s""".formatted(
                        complete ? "about" : "at least",
                        gibibytes(bytes()),
                        gibibytes(variables),
                        gibibytes(directions),
                        gibibytes(evaluations),
                        gibibytes(judgements),
                        gibibytes(data),
                        gibibytes(rest),
                        complete ? "" : "; the activations of the model are not known");
    }

    static String gibibytes(long bytes) {
        return String.format(Locale.ROOT, "%.1f GiB", bytes / (double) (1L << 30));
    }

    /**
     * Returns the memory available to this process: what Linux reports as available, within the limit of the control
     * group. Empty where the system does not report it.
     */
    static OptionalLong available() {
        long least = Long.MAX_VALUE;
        try {
            for (String line : Files.readAllLines(Path.of("/proc/meminfo"))) {
                if (line.startsWith("MemAvailable:")) {
                    least = Long.parseLong(line.replaceAll("\\D", "")) * 1024;
                }
            }
            Path limit = Path.of("/sys/fs/cgroup/memory.max");
            if (Files.exists(limit)) {
                String text = Files.readString(limit).strip();
                if (!text.equals("max")) {
                    long used = Long.parseLong(Files.readString(limit.resolveSibling("memory.current"))
                            .strip());
                    least = Math.min(least, Math.max(0, Long.parseLong(text) - used));
                }
            }
        } catch (IOException | NumberFormatException e) {
            // Another system, or a Linux with other files: then no run is refused.
        }
        return least == Long.MAX_VALUE ? OptionalLong.empty() : OptionalLong.of(least);
    }
}
