package org.fedcomuon.method;

import static java.util.stream.Collectors.joining;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.VectorStepSpec;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.MuonPlan;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;
import org.jspecify.annotations.Nullable;

/**
 * The update of the Muon methods: matrices move along their orthogonalized momentum, other blocks along their momentum
 * by a rule and a learning rate of their own.
 *
 * <p>The first four components are the paper's update. The others are what users of Muon know from elsewhere; they are
 * off in {@link #standard} and {@link #with}, and a run without them is bit-identical to one that never heard of them.
 * Each has a method that switches it on: {@snippet file="org/fedcomuon/method/MuonOptionsIT.java" region="options"}
 *
 * <p>Blocks are named by patterns, in which {@code *} stands for any characters. A pattern that matches no block of a
 * model is refused when a run begins.
 *
 * @param orthogonalizer exact or by Newton-Schulz
 * @param scale how the learning rate of a matrix depends on its shape
 * @param vectorRule how blocks that are not matrices step
 * @param vectorRate their learning rate as a multiple of the matrices'
 * @param nesterov whether the step looks ahead: along {@code beta g + (1 - beta) M}, where g is the gradient that M has
 *     last taken in, instead of along M
 * @param weightDecay decoupled: before a step {@code W *= 1 - eta weightDecay}, all blocks alike, as torch.optim.Muon
 *     and torch.optim.AdamW do; eta is the block's own learning rate, without the scale of its shape
 * @param adamW what steps by AdamW instead, if anything
 * @param blockRates learning rates of some blocks; the first that matches a block counts
 * @param heads which matrices are split before they are orthogonalized
 */
public record Muon(
        Orthogonalizer orthogonalizer,
        ScaleRule scale,
        Device.StepRule vectorRule,
        double vectorRate,
        boolean nesterov,
        double weightDecay,
        Optional<AdamW> adamW,
        List<BlockRate> blockRates,
        Heads heads) {
    public Muon {
        if (!(vectorRate >= 0 && vectorRate < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("vectorRate = %s; a number >= 0 is needed".formatted(vectorRate));
        }
        Method.Ranges.atLeastZero("weightDecay", weightDecay);
        blockRates = List.copyOf(blockRates);
    }

    /** Creates the paper's update. */
    public Muon(Orthogonalizer orthogonalizer, ScaleRule scale, Device.StepRule vectorRule, double vectorRate) {
        this(orthogonalizer, scale, vectorRule, vectorRate, false, 0, Optional.empty(), List.of(), Heads.none());
    }

    /** Returns the paper's update: five Newton-Schulz steps, no scale, normalized vectors at the same rate. */
    public static Muon standard() {
        return with(new Auto(Coefficients.jordan(5)));
    }

    /** Returns the paper's update with another orthogonalizer. */
    public static Muon with(Orthogonalizer orthogonalizer) {
        return new Muon(orthogonalizer, ScaleRule.NONE, Device.StepRule.NORMALIZED, 1);
    }

    /** Returns the same with or without Nesterov's look ahead. */
    public Muon withNesterov(boolean value) {
        return new Muon(orthogonalizer, scale, vectorRule, vectorRate, value, weightDecay, adamW, blockRates, heads);
    }

    /** Returns the same with a decoupled weight decay; 0 for none. */
    public Muon withWeightDecay(double value) {
        return new Muon(orthogonalizer, scale, vectorRule, vectorRate, nesterov, value, adamW, blockRates, heads);
    }

    /** Returns the same with AdamW for vectors, and for the matrices that it names. */
    public Muon withAdamW(AdamW value) {
        return new Muon(
                orthogonalizer,
                scale,
                vectorRule,
                vectorRate,
                nesterov,
                weightDecay,
                Optional.of(value),
                blockRates,
                heads);
    }

    /** Returns the same with learning rates for some blocks. */
    public Muon withBlockRates(List<BlockRate> values) {
        return new Muon(orthogonalizer, scale, vectorRule, vectorRate, nesterov, weightDecay, adamW, values, heads);
    }

    /** Returns the same with matrices split by attention heads. */
    public Muon withHeads(Heads value) {
        return new Muon(orthogonalizer, scale, vectorRule, vectorRate, nesterov, weightDecay, adamW, blockRates, value);
    }

    /**
     * AdamW with bias correction (Loshchilov and Hutter, 2019), for all blocks that are not matrices and for the
     * matrices that {@code matrices} names: orthogonalizing an embedding or a head is known to hurt. Its input is the
     * gradient itself, not the momentum of the method, which would be averaged twice. The weight decay is that of
     * {@link Muon}.
     *
     * @param rate its learning rate as a multiple of the method's
     * @param beta1 how much of the first moment is kept
     * @param beta2 how much of the second moment is kept
     * @param epsilon added to the root of the second moment
     * @param matrices patterns of the names of matrices that step by it as well; none for vectors alone
     */
    public record AdamW(double rate, double beta1, double beta2, double epsilon, List<String> matrices) {
        /** Patterns of the names that embeddings and heads of language models and classifiers have. */
        public static final List<String> ENDS = List.of("embedding*", "*.embedding*", "head.*", "*.head.*");

        public AdamW {
            Method.Ranges.atLeastZero("adamW.rate", rate);
            Method.Ranges.fraction("adamW.beta1", beta1);
            Method.Ranges.fraction("adamW.beta2", beta2);
            Method.Ranges.positiveFinite("adamW.epsilon", epsilon);
            matrices = List.copyOf(matrices);
        }

        /** Returns AdamW for vectors alone, with betas 0.9 and 0.95 and epsilon 1e-8. */
        public static AdamW ofVectors(double rate) {
            return new AdamW(rate, 0.9, 0.95, 1e-8, List.of());
        }

        /** Returns the same for matrices whose names match a pattern as well. */
        public AdamW and(List<String> patterns) {
            return new AdamW(rate, beta1, beta2, epsilon, patterns);
        }

        @Override
        public String toString() {
            return "rate %s, betas %s and %s, epsilon %s, vectors%s"
                    .formatted(
                            rate,
                            beta1,
                            beta2,
                            epsilon,
                            matrices.stream().map(" and "::concat).collect(joining()));
        }
    }

    /**
     * The learning rate of some blocks.
     *
     * @param blocks a pattern of their names
     * @param rate as a multiple of what they would have otherwise
     */
    public record BlockRate(String blocks, double rate) {
        public BlockRate {
            if (blocks.isBlank()) {
                throw new IllegalArgumentException("a rate of blocks has no pattern of their names");
            }
            Method.Ranges.atLeastZero("the rate of " + blocks, rate);
        }

        /**
         * Reads what {@code toString} writes: {@code PATTERN=RATE}.
         *
         * @throws IllegalArgumentException when it is not that
         */
        public static BlockRate parse(String text) {
            int at = text.lastIndexOf('=');
            try {
                if (at > 0) {
                    return new BlockRate(
                            text.substring(0, at).strip(),
                            Double.parseDouble(text.substring(at + 1).strip()));
                }
            } catch (NumberFormatException e) {
                // thrown below
            }
            throw new IllegalArgumentException(
                    "'%s' is no rate of blocks; PATTERN=RATE is needed, such as *.query.*=0.5".formatted(text));
        }

        @Override
        public String toString() {
            return blocks + "=" + rate;
        }
    }

    /**
     * Matrices that are {@code count} matrices of equally many rows, one below the other, each of which is
     * orthogonalized by itself, with the scale of its own shape: the projections of attention, where every head has its
     * own rows.
     *
     * @param count at least 1; 1 splits nothing
     * @param blocks patterns of the names of the matrices
     */
    public record Heads(int count, List<String> blocks) {
        /** Patterns of the names that the projections of attention have. */
        public static final List<String> PROJECTIONS = List.of("*query.weight", "*key.weight", "*value.weight");

        public Heads {
            if (count < 1) {
                throw new IllegalArgumentException("splitHeads = %d; at least 1 is needed".formatted(count));
            }
            blocks = List.copyOf(blocks);
        }

        /** Returns what splits nothing. */
        public static Heads none() {
            return new Heads(1, List.of());
        }

        /** Returns the split of {@link #PROJECTIONS}, the queries, keys and values. */
        public static Heads of(int count) {
            return new Heads(count, count == 1 ? List.of() : PROJECTIONS);
        }
    }

    /** Returns the parameters of a method that are its update's. What is off is not among them. */
    public Map<String, Object> parameters() {
        var all = Method.Parameters.of(
                "orthogonalizer",
                orthogonalizer.name(),
                "scale",
                scale,
                "vectorRule",
                vectorRule,
                "vectorRate",
                vectorRate);
        if (nesterov) {
            all.and("nesterov", true);
        }
        if (weightDecay > 0) {
            all.and("weightDecay", weightDecay);
        }
        adamW.ifPresent(adam -> all.and("adamW", adam));
        if (!blockRates.isEmpty()) {
            all.and("blockRates", blockRates.stream().map(BlockRate::toString).collect(joining(";")));
        }
        if (heads.count > 1) {
            all.and("heads", heads.count + " of " + String.join(" and ", heads.blocks));
        }
        return all;
    }

    /**
     * Refuses a weight decay that would turn weights round; for {@link Method#validate}.
     *
     * @throws IllegalArgumentException naming the values
     */
    public void validate(Schedule eta, long iterations) {
        double rate = Math.max(1, Math.max(vectorRate, adamW.map(AdamW::rate).orElse(0.0)));
        double most = blockRates.stream().mapToDouble(BlockRate::rate).reduce(1, Math::max);
        if (weightDecay > 0) {
            new Method.Ranges(iterations).fraction("eta * weightDecay", eta, weightDecay * rate * most);
        }
    }

    /**
     * Returns the matrices that are orthogonalized, those of the heads one by one, with the block's own learning rate
     * as their scale.
     *
     * @throws IllegalArgumentException when a pattern matches no block, or heads do not divide the rows of one
     */
    public List<NewtonSchulzSpec.Block> matrices(Layout layout) {
        return new Partition(this, layout).matrices;
    }

    /**
     * Returns the number of elements that are allocated for each client beside those of the method, for the gradient,
     * the look ahead and the moments: by {@link #atServer} or by {@link #on}.
     */
    public long clientElements(Layout layout, boolean atServer) {
        long kept = nesterov || (adamW.isPresent() && !atServer) ? layout.length() : 0;
        return kept + (nesterov ? layout.length() : 0) + (atServer ? 0 : moments(layout));
    }

    /** Returns the number of elements that are allocated once for a device, alike. */
    public long serverElements(Layout layout, boolean atServer) {
        return atServer ? moments(layout) : 0;
    }

    private long moments(Layout layout) {
        return adamW.isEmpty() ? 0 : 2 * new Partition(this, layout).adaptive + 1;
    }

    /** Allocates what steps need on the device of these clients: workspace, and state where an option has some. */
    public Mover on(Clients clients) {
        return new Mover(this, clients, false);
    }

    /**
     * The same for a method whose server steps, along a shared momentum: AdamW's moments are the server's then, and its
     * input is that momentum, because a server knows no gradient.
     */
    public Mover atServer(Clients clients) {
        return new Mover(this, clients, true);
    }

    private static boolean matches(List<String> patterns, Block block) {
        return patterns.stream().anyMatch(pattern -> matches(pattern, block));
    }

    private static boolean matches(String pattern, Block block) {
        String regex =
                Arrays.stream(pattern.split("\\*", -1)).map(Pattern::quote).collect(joining(".*"));
        return block.name().matches(regex);
    }

    /** How the blocks of a layout step. */
    private static final class Partition {
        final List<NewtonSchulzSpec.Block> matrices = new ArrayList<>();
        final List<VectorStepSpec.Block> vectors = new ArrayList<>();
        final boolean[] byAdamW;
        final double[] rates; // of each block, without the scale of its shape
        final long adaptive; // elements that step by AdamW

        Partition(Muon muon, Layout layout) {
            List<String> ends = muon.adamW.map(AdamW::matrices).orElse(List.of());
            requireOne("adamW", ends, layout);
            requireOne("heads", muon.heads.blocks, layout);
            muon.blockRates.forEach(rate -> requireOne("blockRates", List.of(rate.blocks), layout));
            int count = layout.blocks().size();
            byAdamW = new boolean[count];
            rates = new double[count];
            long elements = 0;
            for (int i = 0; i < count; i++) {
                Block block = layout.blocks().get(i);
                boolean matrix = block.update() == Block.Update.ORTHOGONAL;
                byAdamW[i] = muon.adamW.isPresent() && (!matrix || matches(ends, block));
                double own = muon.blockRates.stream()
                        .filter(rate -> matches(rate.blocks, block))
                        .map(BlockRate::rate)
                        .findFirst()
                        .orElse(1.0);
                if (byAdamW[i]) {
                    rates[i] = own * muon.adamW.get().rate;
                    elements += block.size();
                } else {
                    rates[i] = matrix ? own : own * muon.vectorRate;
                }
                if (matrix && !byAdamW[i]) {
                    addMatrices(i, block, layout.offset(i), matches(muon.heads.blocks, block) ? muon.heads.count : 1);
                } else if (!matrix && !byAdamW[i]) {
                    vectors.add(new VectorStepSpec.Block(block.size(), layout.offset(i), layout.offset(i), rates[i]));
                }
            }
            adaptive = elements;
        }

        private void addMatrices(int position, Block block, long offset, int parts) {
            if (block.rows() % parts != 0) {
                throw new IllegalArgumentException("splitHeads = %d does not divide the %d rows of block '%s'"
                        .formatted(parts, block.rows(), block.name()));
            }
            long rows = block.rows() / parts;
            for (int part = 0; part < parts; part++) {
                long from = offset + part * rows * block.cols();
                matrices.add(new NewtonSchulzSpec.Block(rows, block.cols(), from, from, from, rates[position]));
            }
        }

        private static void requireOne(String what, List<String> patterns, Layout layout) {
            if (!patterns.isEmpty() && layout.blocks().stream().noneMatch(block -> matches(patterns, block))) {
                throw new IllegalArgumentException("%s: no block is called %s; these are: %s"
                        .formatted(
                                what,
                                String.join(" or ", patterns),
                                layout.blocks().stream().map(Block::name).collect(joining(", "))));
            }
        }
    }

    /**
     * {@code W -= eta polar(M)}, block by block, on the device of some clients.
     *
     * <p>The gradient that Nesterov's look ahead and AdamW need, and AdamW's moments, are state of a client: they are
     * in checkpoints, and no exchange averages them. The last gradient is that at the client's own W; moments follow
     * the noise of its own samples; and exchanging them would cost up to three more models each way and round. W and M
     * are averaged as ever, so that clients agree where they begin a round.
     *
     * <p>Not thread-safe; confined to the device thread. {@link Clients#close} frees its memory.
     */
    public static final class Mover {
        private final Muon muon;
        private final Clients clients;
        private final boolean atServer;
        private final Partition partition;
        private final MuonPlan plan;
        private final VectorStepSpec.Plan vectors;
        private final @Nullable Variable gradient;
        private final @Nullable Variable next;
        private final @Nullable Adaptive adaptive;
        private final @Nullable Buffer ones;

        private Mover(Muon muon, Clients clients, boolean atServer) {
            this.muon = muon;
            this.clients = clients;
            this.atServer = atServer;
            partition = new Partition(muon, clients.layout());
            plan = clients.own(MuonPlan.of(
                    muon.orthogonalizer,
                    clients.device(),
                    clients.capacity(),
                    List.copyOf(partition.matrices),
                    muon.scale));
            vectors = clients.own(
                    clients.device().plan(new VectorStepSpec(partition.vectors, muon.vectorRule), clients.capacity()));
            boolean keeps = muon.nesterov || (muon.adamW.isPresent() && !atServer);
            gradient = keeps ? clients.privateState("last gradient", clients.n()) : null;
            next = muon.nesterov ? clients.scratch("M ahead", clients.n()) : null;
            adaptive = muon.adamW.isPresent() ? new Adaptive(muon.adamW.get(), partition, clients, atServer) : null;
            if (muon.weightDecay > 0) {
                ones = clients.allocate("ones", ElementType.FLOAT64, clients.capacity());
                ones.fill(1);
            } else {
                ones = null;
            }
        }

        /**
         * Keeps the gradient that M has just taken in, for {@link #ahead} and AdamW. Does nothing where neither is on,
         * so that a method calls it wherever M takes in a gradient.
         */
        public void observe(Variable ofM) {
            if (gradient != null) {
                gradient.set(ofM);
            }
        }

        /** Returns whether {@link #observe} keeps anything, so that a client that is new needs a gradient. */
        public boolean observes() {
            return gradient != null;
        }

        /** Keeps the gradient {@code H (v kron I)} alike. */
        public void observe(Variable h, Variable v) {
            if (gradient != null) {
                gradient.compose(1, h, v);
            }
        }

        /**
         * Returns what to step along for a momentum {@code M = (1 - beta) M + beta g}: M itself, or with Nesterov's
         * look ahead {@code (1 - beta) M + beta g} once more with the last g, valid until the next call.
         */
        public Variable ahead(double beta, Variable m) {
            if (next == null || gradient == null) {
                return m;
            }
            next.set(m);
            next.ema(beta, gradient);
            return next;
        }

        /** Returns the same for a momentum {@code M = keep M + g}. */
        public Variable aheadOfSum(double keep, Variable m) {
            if (next == null || gradient == null) {
                return m;
            }
            next.set(m);
            next.accumulate(keep, gradient);
            return next;
        }

        /**
         * {@code W -= eta polar(M)}. Right after both were averaged it is the same for all clients, and computed once.
         *
         * @param m the momentum, or what {@link #ahead} made of it
         */
        public void step(double eta, Variable m, Variable w) {
            clients.timed(Clients.Phase.ORTHOGONALIZE, () -> {
                if (w.isShared()) {
                    move(eta, m, w, new Run(0, 1));
                } else if (adaptive == null
                        && m.isCommon()
                        && w.isCommon()
                        && !clients.runs().isEmpty()) {
                    int first = clients.runs().getFirst().first();
                    move(eta, m, w, new Run(first, 1));
                    w.spread(first);
                } else {
                    w.becomeDifferent();
                    for (Run run : clients.runs()) {
                        move(eta, m, w, run);
                    }
                }
            });
        }

        private void move(double eta, Variable m, Variable w, Run run) {
            try {
                // All of M, before any block of W is stepped.
                clients.device().requireFinite(m.of(run));
                if (ones != null) {
                    decay(eta, ones, w, run);
                }
                plan.step(m.of(run), eta, w.of(run));
                vectors.step(m.of(run), eta, w.of(run));
                if (adaptive != null) {
                    adaptive.step(eta, atServer || gradient == null ? m : gradient, w, run);
                }
            } catch (DeviceException.NotFinite e) {
                throw clients.named(e);
            }
        }

        /** {@code W *= 1 - rate weightDecay}: the projection of something of norm 1 onto a smaller ball. */
        private void decay(double eta, Buffer norms, Variable w, Run run) {
            Layout layout = clients.layout();
            for (int i = 0; i < layout.blocks().size(); i++) {
                double keep = 1 - eta * partition.rates[i] * muon.weightDecay;
                clients.device()
                        .project(
                                keep,
                                norms.batch(run.count(), 1),
                                w.of(run)
                                        .slice(
                                                layout.offset(i),
                                                layout.blocks().get(i).size()));
            }
        }
    }

    /** AdamW on the blocks that step by it, with moments of these alone. */
    private static final class Adaptive {
        private final AdamW adam;
        private final Partition partition;
        private final Clients clients;
        private final Variable first;
        private final Variable second;
        private final Variable steps;
        private final Variable one;
        /** A copy of the variable, read when clients have come, whose state may be a checkpoint's. */
        private double @Nullable [] counts;

        private int seatings;

        Adaptive(AdamW adam, Partition partition, Clients clients, boolean shared) {
            this.adam = adam;
            this.partition = partition;
            this.clients = clients;
            first = variable("AdamW m", partition.adaptive, shared);
            second = variable("AdamW v", partition.adaptive, shared);
            steps = variable("AdamW steps", 1, shared);
            one = clients.sharedScratch("1", 1);
            one.fill(1);
        }

        private Variable variable(String name, long length, boolean shared) {
            return shared ? clients.sharedState(name, length) : clients.privateState(name, length);
        }

        /**
         * Steps clients that have made equally many steps together: those that have sat out rounds are behind, and
         * their moments are corrected for the steps that they have made.
         */
        void step(double eta, Variable gradient, Variable w, Run run) {
            if (counts == null || seatings != clients.seatings()) {
                seatings = clients.seatings();
                counts = steps.buffer()
                        .toDoubles(0, Math.toIntExact(steps.buffer().length()));
            }
            clients.device().vectorStep(-1, one.of(run), steps.of(run));
            int end = run.first() + run.count();
            for (int from = run.first(); from < end; ) {
                double done = counts[from];
                int to = from;
                while (to < end && counts[to] == done) {
                    counts[to++] = done + 1;
                }
                step(eta, done + 1, gradient, w, new Run(from, to - from));
                from = to;
            }
        }

        private void step(double eta, double t, Variable gradient, Variable w, Run run) {
            double bias1 = 1 - Math.pow(adam.beta1, t);
            double bias2 = Math.sqrt(1 - Math.pow(adam.beta2, t));
            Layout layout = clients.layout();
            long at = 0;
            for (int i = 0; i < layout.blocks().size(); i++) {
                if (!partition.byAdamW[i]) {
                    continue;
                }
                long from = layout.offset(i);
                long size = layout.blocks().get(i).size();
                // W -= eta (m / bias1) / (sqrt(v) / bias2 + epsilon)
                clients.device()
                        .adaptiveStep(
                                Device.AdaptiveRule.ADAM,
                                adam.beta1,
                                adam.beta2,
                                adam.epsilon * bias2,
                                -eta * partition.rates[i] * bias2 / bias1,
                                gradient.of(run).slice(from, size),
                                first.of(run).slice(at, size),
                                second.of(run).slice(at, size),
                                w.of(run).slice(from, size));
                // A second moment beyond the range of floats would silently stop its element.
                clients.device()
                        .requireFinite(
                                second.of(run).slice(at, size), gradient.of(run).slice(from, size));
                at += size;
            }
        }
    }
}
