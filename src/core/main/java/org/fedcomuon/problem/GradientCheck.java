package org.fedcomuon.problem;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * Looks for mistakes in the oracles of a problem, before a run is spent on them: a Jacobian that is not the derivative
 * of g, a gradient of f that is not that of its value where {@link Client#outerValue} knows it, results that are not
 * written or are added to what was there, results that are not the same for the same sample, and memory that is not the
 * oracle's to write.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="check"}
 *
 * <p>Derivatives are compared with central differences along the gradient of each block, along random directions and
 * along single elements. A relative mistake of more than one percent is found where rounding of single precision and
 * kinks, as a ReLU has them, allow it; the tolerance grows where they do not. A factor of 1.05 in a block of LeNet, for
 * example, is found on one sample or another. Of models with more than a hundred parameters single elements are only
 * sampled, so a mistake in a few of them, or one that is small compared with the others, may be missed.
 *
 * <p>A client is evaluated about a hundred times per block and sample. Immutable, but a check calls the clients of its
 * problem, as a run would: one at a time on the calling thread.
 */
public final class GradientCheck {
    private static final double TOLERANCE = 0.01;

    /** What single elements of large models may be off by, relative to the usual size of an element. */
    private static final double UNSEEN = 0.25;

    /** Evaluations that rounding errors are measured by. */
    private static final int NOISES = 8;

    /** How much two ways of computing the same may differ, relative to it. */
    private static final double TWICE = 1e-3;

    /** What results are overwritten with, the second time. */
    private static final float BEFORE = 12345.678f;

    /** Models up to this size are checked element by element. */
    private static final int SMALL_MODEL = 128;

    /** Elements that are looked at to say where a mistake in a block is. */
    private static final int CANDIDATES = 64;

    /** Gradients that are directions by themselves; of more components, sums are. */
    private static final int OWN_DIRECTIONS = 8;

    private static final String GRADIENT = "along its gradient";

    private final Problem problem;
    private final Optional<Floats> w;
    private final int samples;
    private final long seed;

    /** What is wrong, in one line. */
    static final class Mistake extends Exception {
        private static final long serialVersionUID = 1L;

        Mistake(String message) {
            super(message);
        }

        Mistake(String message, Exception cause) {
            super(message, cause);
        }
    }

    private GradientCheck(Problem problem, Optional<Floats> w, int samples, long seed) {
        this.problem = problem;
        this.w = w;
        this.samples = samples;
        this.seed = seed;
    }

    /** Returns a check of all clients of a problem on two samples each, at random parameters. */
    public static GradientCheck of(Problem problem) {
        return new GradientCheck(problem, Optional.empty(), 2, 1);
    }

    /** Returns the same check at these parameters instead of random ones, such as W0. */
    public GradientCheck at(Floats parameters) {
        if (parameters.length() != problem.layout().length()) {
            throw new IllegalArgumentException("%d values for a layout of %d"
                    .formatted(parameters.length(), problem.layout().length()));
        }
        return new GradientCheck(problem, Optional.of(parameters), samples, seed);
    }

    /** Returns the same check on this many samples of each client. */
    public GradientCheck samples(int count) {
        if (count < 1) {
            throw new IllegalArgumentException("%d samples; at least 1 is needed".formatted(count));
        }
        return new GradientCheck(problem, w, count, seed);
    }

    /** Returns the same check with another seed, of the samples, the directions and the random parameters. */
    public GradientCheck seed(long value) {
        return new GradientCheck(problem, w, samples, value);
    }

    /**
     * Requires that no mistake is found.
     *
     * @throws IllegalArgumentException with the first mistake
     */
    public void require() {
        try {
            check();
        } catch (Mistake e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /**
     * Returns the first mistake in one line, with client, component, block and index, what is written and what it
     * should be; empty if none is found.
     */
    public Optional<String> mistake() {
        try {
            check();
            return Optional.empty();
        } catch (Mistake e) {
            return Optional.of(String.valueOf(e.getMessage()));
        }
    }

    private void check() throws Mistake {
        float[] at = w.map(Floats::toArray).orElseGet(this::randomParameters);
        for (int k = 0; k < problem.clients(); k++) {
            var probe = new OracleProbe(k, problem.client(k), problem.layout(), problem.innerDimension());
            for (int draw = 0; draw < samples; draw++) {
                new OfSample(k, probe, draw, at).check();
            }
        }
    }

    /** As networks start: what is added up is of the size of one. */
    private float[] randomParameters() {
        var random = new SplittableRandom(seed);
        Layout layout = problem.layout();
        var values = new float[Math.toIntExact(layout.length())];
        int at = 0;
        for (Block block : layout.blocks()) {
            double deviation = block.shape().size() > 1 ? 1 / Math.sqrt(block.cols()) : 0.3;
            for (long i = 0; i < block.size(); i++) {
                values[at++] = (float) (deviation * random.nextGaussian());
            }
        }
        return values;
    }

    /** Values of g. */
    private static final class Rounded {
        private final double[] values;

        /** The standard deviations of their rounding errors. */
        private final double[] noise;

        Rounded(double[] values, double[] noise) {
            this.values = values;
            this.noise = noise;
        }
    }

    /** The check of one client on one sample. */
    private final class OfSample {
        private final int client;
        private final OracleProbe probe;
        private final Sample xi;
        private final Sample zeta;
        private final float[] at;
        private final SplittableRandom random;
        private final int d = problem.innerDimension();
        private final Layout layout = problem.layout();

        OfSample(int client, OracleProbe probe, int draw, float[] at) {
            this.client = client;
            this.probe = probe;
            this.at = at;
            xi = new Sample(seed, client, Sample.Stream.INNER, draw);
            zeta = new Sample(seed, client, Sample.Stream.OUTER, draw);
            random = new SplittableRandom(seed * 31 + draw);
        }

        void check() throws Mistake {
            OracleProbe.Inner g = probe.inner(xi, at, Float.NaN);
            requireSame(g, probe.inner(xi, at, BEFORE), "the second time");
            Rounded middle = rounded();
            for (int b = 0; b < layout.blocks().size(); b++) {
                for (Direction direction : directions(b, g)) {
                    compare(g, direction, middle);
                }
            }
            requireSame(g, probe.inner(xi, at, Float.NaN), "after evaluations elsewhere");
            checkTwo(g);
            checkOuter(g.value());
        }

        /** At two points at once it is the same as at each by itself, but for rounding: work may be shared. */
        private void checkTwo(OracleProbe.Inner g) throws Mistake {
            float[] elsewhere = at.clone();
            for (int e = 0; e < at.length; e++) {
                elsewhere[e] *= 0.9f;
            }
            OracleProbe.Inner old = probe.inner(xi, elsewhere, Float.NaN);
            List<OracleProbe.Inner> both = probe.innerAtTwo(xi, at, elsewhere, Float.NaN);
            requireClose("the first", g, both.getFirst());
            requireClose("the second", old, both.getLast());
        }

        private void requireClose(String which, OracleProbe.Inner alone, OracleProbe.Inner together) throws Mistake {
            for (int i = 0; i < d; i++) {
                float[] expected = alone.jacobian()[i];
                float[] actual = together.jacobian()[i];
                double difference = 0;
                for (int e = 0; e < at.length; e++) {
                    difference += Math.pow((double) actual[e] - expected[e], 2);
                }
                double off = Math.abs((double) together.value()[i] - alone.value()[i]);
                if (!(off <= TWICE * (1 + Math.abs(alone.value()[i]))
                        && Math.sqrt(difference) <= TWICE * (1 + norm(expected, 0, at.length)))) {
                    throw new Mistake(
                            "client %d: innerAtTwo has another result for %s of its points than inner, in component %d"
                                    .formatted(client, which, i));
                }
            }
        }

        private void requireSame(OracleProbe.Inner first, OracleProbe.Inner second, String when) throws Mistake {
            for (int i = 0; i < d; i++) {
                requireSame("g_%d".formatted(i), first.value()[i], second.value()[i], when);
                for (int e = 0; e < at.length; e++) {
                    float one = first.jacobian()[i][e];
                    float two = second.jacobian()[i][e];
                    if (!(one == two && Float.isFinite(one))) {
                        requireSame(element(i, e), one, two, when);
                    }
                }
            }
        }

        /** Both are results of the same arguments, the first in memory full of NaN. */
        private void requireSame(String what, float first, float second, String when) throws Mistake {
            if (Float.isFinite(first) && first == second) {
                return;
            }
            String problem;
            if (Float.isNaN(first) && second == BEFORE) {
                problem = "is not written";
            } else if (Float.isNaN(first) && Float.isFinite(second)) {
                problem = "depends on what its memory had in it; it is to be set, not added to";
            } else if (!Float.isFinite(first)) {
                problem = "is %s; a finite number is needed".formatted(first);
            } else {
                problem = "is %s, and %s %s for the same sample; the same arguments must give the same bits"
                        .formatted(first, when, second);
            }
            throw new Mistake(
                    "client %d: %s %s (draw %d of the seed %d)".formatted(client, what, problem, xi.draw(), seed));
        }

        /** Returns the name of an element of the Jacobian. */
        private String element(int component, int e) {
            Block block = layout.blockAt(e);
            long index = e - layout.offset(layout.position(block.name()));
            return "component %d of the Jacobian, block '%s', index %d".formatted(component, block.name(), index);
        }

        private List<Direction> directions(int block, OracleProbe.Inner g) {
            int from = Math.toIntExact(layout.offset(block));
            int size = Math.toIntExact(layout.blocks().get(block).size());
            var all = new ArrayList<Direction>();
            for (int i = 0; i < Math.min(d, OWN_DIRECTIONS); i++) {
                var along = new double[size];
                for (int c = 0; c < d; c++) {
                    double weight = d > OWN_DIRECTIONS ? random.nextInt(2) * 2 - 1 : c == i ? 1 : 0;
                    double norm = norm(g.jacobian()[c], from, size);
                    for (int e = 0; weight != 0 && norm > 0 && e < size; e++) {
                        along[e] += weight * g.jacobian()[c][from + e] / norm;
                    }
                }
                Direction.of(block, from, along, GRADIENT).ifPresent(all::add);
            }
            // Twice, since a gradient that is zero by mistake shows here only.
            for (int i = 0; i < 2; i++) {
                var along = new double[size];
                for (int e = 0; e < size; e++) {
                    along[e] = random.nextGaussian();
                }
                Direction.of(block, from, along, "along a random direction").ifPresent(all::add);
            }
            if (layout.length() <= SMALL_MODEL) {
                IntStream.range(0, size)
                        .mapToObj(e -> Direction.element(block, from, e))
                        .forEach(all::add);
            } else {
                all.add(Direction.element(block, from, largest(g.jacobian()[random.nextInt(d)], from, size)));
                all.add(Direction.element(block, from, random.nextInt(size)));
            }
            return all;
        }

        private void compare(OracleProbe.Inner g, Direction direction, Rounded middle) throws Mistake {
            DifferenceQuotient quotient = quotient(g, middle, direction);
            for (int i = 0; i < d; i++) {
                double analytic = direction.dot(g.jacobian()[i]);
                double noise = middle.noise[i];
                double unseen = unseen(direction, g.jacobian()[i]);
                DifferenceQuotient.Estimate numeric = quotient.of(i, analytic, noise);
                if (isWrong(analytic, numeric, unseen)) {
                    throw where(g, middle, i, direction, analytic, numeric.slope());
                }
            }
        }

        /**
         * Returns what is not seen in a direction. In a large model a slope that is not along the gradient is so small
         * that it needs large steps, on which kinks count for more than can be told.
         */
        private double unseen(Direction direction, float[] gradient) {
            int length = Math.toIntExact(layout.blocks().get(direction.block).size());
            return direction.isGradient() || layout.length() <= SMALL_MODEL
                    ? 0
                    : UNSEEN * norm(gradient, direction.from, length) / Math.sqrt(length);
        }

        /**
         * Returns g and its rounding errors, by parameters that differ in their last bits: too little for g itself to
         * change.
         */
        private Rounded rounded() throws Mistake {
            var values = new double[NOISES][d];
            for (double[] row : values) {
                float[] near = at.clone();
                for (int e = 0; e < near.length; e++) {
                    near[e] = random.nextBoolean() ? Math.nextUp(near[e]) : Math.nextDown(near[e]);
                }
                float[] here = probe.values(xi, near);
                for (int i = 0; i < d; i++) {
                    row[i] = here[i];
                }
            }
            var means = new double[d];
            var noise = new double[d];
            for (int i = 0; i < d; i++) {
                int component = i;
                double mean = Arrays.stream(values)
                        .mapToDouble(row -> row[component])
                        .average()
                        .orElseThrow();
                double squares = Arrays.stream(values)
                        .mapToDouble(row -> (row[component] - mean) * (row[component] - mean))
                        .sum();
                means[i] = mean;
                // At least that of values that are exact but for their last bit. So few values tell it only roughly.
                noise[i] = Math.max(1.5 * Math.sqrt(squares / (NOISES - 1)), Math.ulp((float) mean) / Math.sqrt(12));
            }
            return new Rounded(means, noise);
        }

        private DifferenceQuotient quotient(OracleProbe.Inner g, Rounded middle, Direction direction) {
            return new DifferenceQuotient(direction.length() * size(direction), h -> {
                float[] above = direction.moved(at, h);
                float[] below = direction.moved(at, -h);
                float[] up = probe.values(xi, above);
                float[] down = probe.values(xi, below);
                var differences = new DifferenceQuotient.Differences(d);
                for (int i = 0; i < d; i++) {
                    // Parameters are rounded, so a step is not quite along the direction.
                    double asideUp = direction.aside(g.jacobian()[i], at, above, h);
                    double asideDown = direction.aside(g.jacobian()[i], at, below, -h);
                    differences.set(i, up[i] - asideUp, middle.values[i], down[i] - asideDown, h);
                }
                return differences;
            });
        }

        /** Returns the largest step of an element of a block: some of the size that its elements have. */
        private double size(Direction direction) {
            int length = Math.toIntExact(layout.blocks().get(direction.block).size());
            double size = norm(at, Math.toIntExact(layout.offset(direction.block)), length) / Math.sqrt(length);
            return size > 0 ? 0.25 * size : 0.03;
        }

        /** Returns the mistake, with the element that shows it best if single elements do. */
        private Mistake where(
                OracleProbe.Inner g,
                Rounded middle,
                int component,
                Direction direction,
                double analytic,
                double numeric)
                throws Mistake {
            double worst = 0;
            String shown = "component %d of the Jacobian, block '%s', %s: the slope is %s, but differences of g give %s"
                    .formatted(
                            component,
                            layout.blocks().get(direction.block).name(),
                            direction.name,
                            (float) analytic,
                            (float) numeric);
            for (int e : candidates(g.jacobian()[component], direction)) {
                Direction single = Direction.element(direction.block, direction.from, e);
                float written = g.jacobian()[component][direction.from + e];
                DifferenceQuotient.Estimate estimate =
                        quotient(g, middle, single).of(component, written, middle.noise[component]);
                double off = Math.abs(written - estimate.slope());
                if (isWrong(written, estimate, 0) && off > worst) {
                    worst = off;
                    shown = "%s is %s, but differences of g give %s"
                            .formatted(element(component, direction.from + e), written, (float) estimate.slope());
                }
            }
            return new Mistake("client %d: %s (draw %d of the seed %d)".formatted(client, shown, xi.draw(), seed));
        }

        private int[] candidates(float[] gradient, Direction direction) {
            if (direction.isElement()) {
                return new int[] {direction.start};
            }
            int size = Math.toIntExact(layout.blocks().get(direction.block).size());
            if (size <= CANDIDATES) {
                return IntStream.range(0, size).toArray();
            }
            int from = direction.from;
            IntStream steepest = IntStream.range(0, size)
                    .boxed()
                    .sorted((a, b) -> Float.compare(Math.abs(gradient[from + b]), Math.abs(gradient[from + a])))
                    .mapToInt(e -> e)
                    .limit(CANDIDATES / 2);
            return IntStream.concat(steepest, random.ints(CANDIDATES / 2, 0, size))
                    .distinct()
                    .toArray();
        }

        private void checkOuter(float[] y) throws Mistake {
            float[] first = probe.outerGradient(zeta, y, Float.NaN);
            float[] second = probe.outerGradient(zeta, y, BEFORE);
            for (int i = 0; i < d; i++) {
                requireSame("component %d of the gradient of f".formatted(i), first[i], second[i], "the second time");
            }
            if (probe.outerValue(zeta, y).isEmpty()) {
                return;
            }
            for (int i = 0; i < d; i++) {
                DifferenceQuotient.Estimate numeric = outerDerivative(y, i, first[i]);
                if (isWrong(first[i], numeric, 0)) {
                    throw new Mistake(
                            "client %d: component %d of the gradient of f is %s, but differences of f give %s, at y = %s"
                                    .formatted(client, i, first[i], (float) numeric.slope(), Arrays.toString(y)));
                }
            }
        }

        private DifferenceQuotient.Estimate outerDerivative(float[] y, int i, double expected) throws Mistake {
            var quotient = new DifferenceQuotient(0.25 * Math.max(Math.abs(y[i]), 0.1), h -> {
                float[] above = y.clone();
                float[] below = y.clone();
                above[i] = (float) (y[i] + h);
                below[i] = (float) (y[i] - h);
                var differences = new DifferenceQuotient.Differences(1);
                differences.set(
                        0, outerValue(above), outerValue(y), outerValue(below), ((double) above[i] - below[i]) / 2);
                return differences;
            });
            return quotient.of(0, expected, Math.ulp(outerValue(y)));
        }

        private double outerValue(float... y) throws Mistake {
            return probe.outerValue(zeta, y)
                    .orElseThrow(() -> new Mistake(
                            "client %d: outerValue is known at one y and not at another".formatted(client)));
        }
    }

    private static boolean isWrong(double analytic, DifferenceQuotient.Estimate numeric, double unseen) {
        double size = Math.max(Math.abs(analytic), Math.abs(numeric.slope()));
        return Math.abs(analytic - numeric.slope()) > TOLERANCE * size + numeric.error() + unseen;
    }

    private static double norm(float[] values, int from, int size) {
        double sum = 0;
        for (int e = from; e < from + size; e++) {
            sum += (double) values[e] * values[e];
        }
        return Math.sqrt(sum);
    }

    private static int largest(float[] values, int from, int size) {
        int best = 0;
        for (int e = 1; e < size; e++) {
            if (Math.abs(values[from + e]) > Math.abs(values[from + best])) {
                best = e;
            }
        }
        return best;
    }

    /** A direction of unit length within a block. */
    private static final class Direction {
        private final int block;

        /** The first element of the block. */
        private final int from;

        /** The first element that it moves, counted from {@link #from}. */
        private final int start;

        /** The elements from there on. */
        private final double[] along;

        /** In messages. */
        private final String name;

        Direction(int block, int from, int start, double[] along, String name) {
            this.block = block;
            this.from = from;
            this.start = start;
            this.along = along;
            this.name = name;
        }

        /** Returns it with unit length; empty if it is zero. */
        static Optional<Direction> of(int block, int from, double[] along, String name) {
            double sum = 0;
            for (double each : along) {
                sum += each * each;
            }
            double length = Math.sqrt(sum);
            if (!(length > 0 && length < Double.POSITIVE_INFINITY)) {
                return Optional.empty();
            }
            for (int i = 0; i < along.length; i++) {
                along[i] /= length;
            }
            return Optional.of(new Direction(block, from, 0, along, name));
        }

        static Direction element(int block, int from, int element) {
            return new Direction(block, from, element, new double[] {1}, "at index " + element);
        }

        boolean isGradient() {
            return name.equals(GRADIENT);
        }

        boolean isElement() {
            return along.length == 1;
        }

        /** Returns the length of a step that moves every element by about one. */
        double length() {
            return Math.sqrt(along.length);
        }

        float[] moved(float[] w, double h) {
            float[] to = w.clone();
            for (int e = 0; e < along.length; e++) {
                to[from + start + e] = (float) (w[from + start + e] + h * along[e]);
            }
            return to;
        }

        double dot(float[] gradient) {
            double sum = 0;
            for (int e = 0; e < along.length; e++) {
                sum += along[e] * gradient[from + start + e];
            }
            return sum;
        }

        /** Returns what the gradient says about the part of a step that is not along this direction. */
        double aside(float[] gradient, float[] at, float[] to, double h) {
            double sum = 0;
            for (int e = 0; e < along.length; e++) {
                int i = from + start + e;
                sum += gradient[i] * ((double) to[i] - at[i] - h * along[e]);
            }
            return sum;
        }
    }
}
