package org.fedcomuon.linalg;

import static java.util.stream.Collectors.joining;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.device.NewtonSchulzSpec;

/**
 * A schedule of Newton-Schulz steps, by the name that reports show. None is best everywhere: {@code jordan} is the
 * paper's, never converges and leaves singular values in about [0.68, 1.13]; {@code polar-express} converges, fastest
 * from small singular values; {@code polar-express-until} has as many steps as a wanted error takes.
 *
 * @param name of the schedule
 * @param steps one tuple per step
 * @param divisor what the input is divided by besides its norm
 */
public record Coefficients(String name, List<NewtonSchulzSpec.Step> steps, double divisor) {
    /** The default number of steps. */
    public static final int DEFAULT_STEPS = 5;

    private static final String NAMED =
            "jordan, you, polar-express, polar-express-1.02, cubic, quintic, aol, cans, deepseekv4";

    /** The names of sets that {@link #parse} accepts. */
    public static final List<String> NAMES = List.of(NAMED.split(", "));

    /** All that {@link #parse} accepts, in words. */
    public static final String FORMS = NAMED
            + ", polar-express:FACTOR, polar-express-until:ERROR, polar-express-until:ERROR@LOWER_BOUND, or tuples"
            + " a,b,c;a,b,c;...";

    /**
     * The smallest singular value, of a matrix with norm 1, that {@code polar-express-until} brings to 1 unless it is
     * told another.
     */
    public static final double LOWER_BOUND = 1e-4;

    /** The least error, and the least lower bound, that a schedule is made for: doubles have little more digits. */
    private static final double LEAST = 1e-12;

    private static final String SAFE = "polar-express:";
    private static final String UNTIL = "polar-express-until:";

    private static final List<NewtonSchulzSpec.Step> JORDAN =
            List.of(new NewtonSchulzSpec.Step(3.4445, -4.7750, 2.0315));
    private static final List<NewtonSchulzSpec.Step> CUBIC = List.of(new NewtonSchulzSpec.Step(1.5, -0.5, 0));
    private static final List<NewtonSchulzSpec.Step> QUINTIC =
            List.of(new NewtonSchulzSpec.Step(15.0 / 8, -10.0 / 8, 3.0 / 8));
    private static final List<NewtonSchulzSpec.Step> YOU = List.of(
            new NewtonSchulzSpec.Step(4.0848, -6.8946, 2.9270),
            new NewtonSchulzSpec.Step(3.9505, -6.3029, 2.6377),
            new NewtonSchulzSpec.Step(3.7418, -5.5913, 2.3037),
            new NewtonSchulzSpec.Step(2.8769, -3.1427, 1.2046),
            new NewtonSchulzSpec.Step(2.8366, -3.0525, 1.2012));
    /**
     * As NVIDIA's Emerging-Optimizers have them (emerging_optimizers/orthogonalized_optimizers/muon_utils.py, "aol"),
     * after T. Boissin's flash-newton-schulz.
     */
    private static final List<NewtonSchulzSpec.Step> AOL = List.of(
            new NewtonSchulzSpec.Step(4.0098, -7.0585, 2.4635),
            new NewtonSchulzSpec.Step(3.4585, -5.5479, 2.5959),
            new NewtonSchulzSpec.Step(2.7573, -3.2939, 1.4254),
            new NewtonSchulzSpec.Step(2.7215, -3.0494, 1.3169));

    /** From the same file, "cans": Grishina, Smirnov and Rakhuba (2025), arXiv 2506.10935. */
    private static final List<NewtonSchulzSpec.Step> CANS = List.of(
            new NewtonSchulzSpec.Step(8.4703, -25.1081, 18.6293),
            new NewtonSchulzSpec.Step(4.1828, -3.1087, 0.5806),
            new NewtonSchulzSpec.Step(3.9619, -2.9541, 0.5630),
            new NewtonSchulzSpec.Step(3.2866, -2.4647, 0.5074),
            new NewtonSchulzSpec.Step(2.2737, -1.6447, 0.4162));

    /**
     * From the same file, "deepseekv4", after the report of DeepSeek-V4: eight steps to come near 1, two to stay there.
     */
    private static final List<NewtonSchulzSpec.Step> DEEPSEEK_V4 = Stream.concat(
                    Collections.nCopies(8, JORDAN.getFirst()).stream(),
                    Collections.nCopies(2, new NewtonSchulzSpec.Step(2, -1.5, 0.5)).stream())
            .toList();

    /** The last one is where the schedule has converged, and is repeated. */
    private static final List<NewtonSchulzSpec.Step> POLAR_EXPRESS = List.of(
            new NewtonSchulzSpec.Step(8.28721201814563, -23.595886519098837, 17.300387312530933),
            new NewtonSchulzSpec.Step(4.107059111542203, -2.9478499167379106, 0.5448431082926601),
            new NewtonSchulzSpec.Step(3.9486908534822946, -2.908902115962949, 0.5518191394370137),
            new NewtonSchulzSpec.Step(3.3184196573706015, -2.488488024314874, 0.51004894012372),
            new NewtonSchulzSpec.Step(2.300652019954817, -1.6689039845747493, 0.4188073119525673),
            new NewtonSchulzSpec.Step(1.891301407787398, -1.2679958271945868, 0.37680408948524835),
            new NewtonSchulzSpec.Step(1.8750014808534479, -1.2500016453999487, 0.3750001645474248),
            new NewtonSchulzSpec.Step(1.875, -1.25, 0.375));

    private static final List<NewtonSchulzSpec.Step> POLAR_EXPRESS_102 = List.of(
            new NewtonSchulzSpec.Step(8.156554524902461, -22.48329292557795, 15.878769915207462),
            new NewtonSchulzSpec.Step(4.042929935166739, -2.808917465908714, 0.5000178451051316),
            new NewtonSchulzSpec.Step(3.8916678022926607, -2.772484153217685, 0.5060648178503393),
            new NewtonSchulzSpec.Step(3.285753657755655, -2.3681294933425376, 0.46449024233003106),
            new NewtonSchulzSpec.Step(2.3465413258596377, -1.7097828382687081, 0.42323551169305323));

    public Coefficients {
        steps = List.copyOf(steps);
        if (steps.isEmpty()) {
            throw new IllegalArgumentException(name + ": at least one step is needed");
        }
        if (!(divisor > 0) || Double.isInfinite(divisor)) {
            throw new IllegalArgumentException("%s: the divisor %s is not a positive number".formatted(name, divisor));
        }
    }

    /** Returns the paper's set: the same tuple every step. */
    public static Coefficients jordan(int steps) {
        return repeated("jordan", JORDAN, steps);
    }

    /** Returns the cubic iteration, which converges slowly. */
    public static Coefficients cubic(int steps) {
        return repeated("cubic", CUBIC, steps);
    }

    /** Returns the quintic iteration, which converges a little faster. */
    public static Coefficients quintic(int steps) {
        return repeated("quintic", QUINTIC, steps);
    }

    /** Returns You Jiacheng's five tuples. */
    public static Coefficients you(int steps) {
        return finite("you", YOU, steps, 1);
    }

    /**
     * Returns the optimal schedule of Polar Express, any number of steps.
     *
     * @param safety each tuple becomes {@code (a/f, b/f^3, c/f^5)}, which tolerates singular values up to f times too
     *     large; 1 for the raw schedule. The final, converged tuple stays as it is, so that long schedules still end at
     *     1.
     */
    public static Coefficients polarExpress(int steps, double safety) {
        if (!(safety >= 1 && safety < 2)) {
            throw new IllegalArgumentException(
                    "polar-express: the safety factor %s is outside [1, 2)".formatted(safety));
        }
        var safe = new ArrayList<NewtonSchulzSpec.Step>();
        for (NewtonSchulzSpec.Step step :
                repeated("polar-express", POLAR_EXPRESS, steps).steps()) {
            boolean converged = step.equals(POLAR_EXPRESS.getLast());
            safe.add(
                    converged
                            ? step
                            : new NewtonSchulzSpec.Step(
                                    step.a() / safety, step.b() / Math.pow(safety, 3), step.c() / Math.pow(safety, 5)));
        }
        return new Coefficients(safety == 1 ? "polar-express" : SAFE + safety, safe, 1);
    }

    /**
     * Returns the schedule of Polar Express that is made for a range of singular values, with as many steps as it
     * takes: 9 from 1e-4, 10 from 1e-5, and 12 from 1e-6, to an error of 1e-6. It tolerates singular values that are
     * too large by one in a hundred, as rounding makes them.
     *
     * <p>In exact arithmetic every singular value from {@code lowerBound} to 1 ends within {@code error} of 1. With
     * floats, singular values of the result end some 1e-6 from 1 at best, and rounding turns small directions, which no
     * further step takes back: the result is off by about 3e-8 times the condition number in its worst direction.
     *
     * @param error the largest distance of a singular value from 1 at the end, from 1e-12 to 0.5
     * @param lowerBound the smallest singular value to bring there, of the matrix divided by its Frobenius norm, from
     *     1e-12 to less than 1; smaller ones end below 1
     */
    public static Coefficients polarExpressUntil(double error, double lowerBound) {
        if (!(error >= LEAST && error <= 0.5)) {
            throw new IllegalArgumentException(
                    "polar-express-until: an error of %s; from 1e-12 to 0.5 is possible".formatted(error));
        }
        if (!(lowerBound >= LEAST && lowerBound < 1)) {
            throw new IllegalArgumentException(
                    "polar-express-until: a lower bound of %s; from 1e-12 to less than 1 is possible"
                            .formatted(lowerBound));
        }
        return new Coefficients(
                UNTIL + brief(error) + "@" + brief(lowerBound),
                PolarExpress.steps(lowerBound, error, PolarExpress.MARGIN),
                1);
    }

    /** Returns the shortest text that is the same number, such as {@code 1e-6}. */
    private static String brief(double value) {
        return Double.toString(value).replace(".0E", "E").replace('E', 'e');
    }

    /** Returns Polar Express computed for a margin of 1.02: five tuples, and the input is divided by 1.02 as well. */
    public static Coefficients polarExpress102(int steps) {
        return finite("polar-express-1.02", POLAR_EXPRESS_102, steps, 1.02);
    }

    /**
     * Returns the four tuples that are called AOL, and the input is divided by 1.2 as well. They were fitted to
     * matrices whose rows are rescaled first, by the root of the row sums of {@code |M M^T|}. That rescaling changes
     * the singular vectors, so that what comes out is the factor of another matrix than M; as in NVIDIA's
     * Emerging-Optimizers, M is divided by its norm here like for every other set. The first tuple is negative beyond
     * 0.8837, however: without the divisor a matrix with a dominant singular value, such as every matrix of one row,
     * would step uphill.
     */
    public static Coefficients aol(int steps) {
        return finite("aol", AOL, steps, 1.2);
    }

    /**
     * Returns the five tuples of CANS, Chebyshev polynomials of the interval that the singular values are in by then.
     */
    public static Coefficients cans(int steps) {
        return finite("cans", CANS, steps, 1);
    }

    /**
     * Returns the ten steps of DeepSeek-V4: eight of {@link #jordan}, then two of {@code 2 s - 1.5 s^3 + 0.5 s^5},
     * which has slope 0 at 1 and removes the noise that the others leave.
     */
    public static Coefficients deepSeekV4() {
        return new Coefficients("deepseekv4", DEEPSEEK_V4, 1);
    }

    /** Returns a user's own schedule. */
    public static Coefficients custom(List<NewtonSchulzSpec.Step> steps) {
        return new Coefficients("custom", steps, 1);
    }

    /**
     * Returns a set by name: one of {@link #NAMES}, {@code polar-express:F} with a safety factor F,
     * {@code polar-express-until:E@L} as {@link #polarExpressUntil} describes it, where {@code @L} may be left out for
     * {@link #LOWER_BOUND}, or tuples written out as {@code a,b,c;a,b,c;...}.
     *
     * @param steps the number of steps; empty for the default: five, four of {@code aol}, ten of {@code deepseekv4}, as
     *     many as {@code polar-express-until} takes, or the number of tuples that are written out
     * @throws IllegalArgumentException when the text is none of these; the message lists the valid forms
     */
    public static Coefficients parse(String text, Optional<Integer> steps) {
        int count = steps.orElse(DEFAULT_STEPS);
        if (text.startsWith(SAFE)) {
            return polarExpress(count, number(text, text.substring(SAFE.length())));
        }
        if (text.startsWith(UNTIL)) {
            String[] parts = text.substring(UNTIL.length()).split("@", 2);
            return whole(
                    polarExpressUntil(number(text, parts[0]), parts.length == 1 ? LOWER_BOUND : number(text, parts[1])),
                    steps,
                    "an error takes as many as it takes");
        }
        return switch (text) {
            case "jordan" -> jordan(count);
            case "you" -> you(count);
            case "polar-express" -> polarExpress(count, 1);
            case "polar-express-1.02" -> polarExpress102(count);
            case "cubic" -> cubic(count);
            case "quintic" -> quintic(count);
            case "aol" -> aol(steps.orElse(AOL.size()));
            case "cans" -> cans(count);
            case "deepseekv4" -> whole(deepSeekV4(), steps, "its last two are what it is for");
            default -> {
                List<NewtonSchulzSpec.Step> tuples = tuples(text);
                yield steps.isPresent() ? finite("custom", tuples, count, 1) : custom(tuples);
            }
        };
    }

    private static List<NewtonSchulzSpec.Step> tuples(String text) {
        if (!text.contains(",")) {
            throw new IllegalArgumentException("no coefficients are called '%s'; known are %s".formatted(text, FORMS));
        }
        var steps = new ArrayList<NewtonSchulzSpec.Step>();
        for (String tuple : text.split(";", -1)) {
            String[] parts = tuple.split(",", -1);
            if (parts.length != 3) {
                throw new IllegalArgumentException(
                        "coefficients '%s': '%s' is not a tuple a,b,c".formatted(text, tuple));
            }
            steps.add(
                    new NewtonSchulzSpec.Step(number(text, parts[0]), number(text, parts[1]), number(text, parts[2])));
        }
        return steps;
    }

    private static double number(String text, String part) {
        try {
            double value = Double.parseDouble(part);
            if (Double.isFinite(value)) {
                return value;
            }
        } catch (NumberFormatException e) {
            // thrown below
        }
        throw new IllegalArgumentException("coefficients '%s': '%s' is not a number".formatted(text, part));
    }

    /** Returns the first {@code steps} tuples, repeating the last one of the list. */
    private static Coefficients repeated(String name, List<NewtonSchulzSpec.Step> tuples, int steps) {
        requirePositive(name, steps);
        var list = new ArrayList<NewtonSchulzSpec.Step>();
        for (int i = 0; i < steps; i++) {
            list.add(tuples.get(Math.min(i, tuples.size() - 1)));
        }
        return new Coefficients(name, list, 1);
    }

    /** Returns a schedule that was made for its length and means nothing beyond it. */
    private static Coefficients finite(String name, List<NewtonSchulzSpec.Step> tuples, int steps, double divisor) {
        requirePositive(name, steps);
        if (steps > tuples.size()) {
            throw new IllegalArgumentException("%s has %d steps, not %d".formatted(name, tuples.size(), steps));
        }
        return new Coefficients(name, tuples.subList(0, steps), divisor);
    }

    /** Returns a schedule that is not to be cut. */
    private static Coefficients whole(Coefficients set, Optional<Integer> steps, String why) {
        if (steps.isPresent() && steps.get() != set.steps().size()) {
            throw new IllegalArgumentException("%s has %d steps, not %d: %s"
                    .formatted(set.name(), set.steps().size(), steps.get(), why));
        }
        return set;
    }

    private static void requirePositive(String name, int steps) {
        if (steps < 1 || steps > 1000) {
            throw new IllegalArgumentException("%s: %d steps; 1 to 1000 are possible".formatted(name, steps));
        }
    }

    /** Returns what one singular value is mapped to, by the scalar iteration; for curves and tests. */
    public double map(double singularValue) {
        double s = singularValue / divisor;
        for (NewtonSchulzSpec.Step step : steps) {
            double square = s * s;
            s *= step.a() + square * (step.b() + square * step.c());
        }
        return s;
    }

    @Override
    public String toString() {
        return name.equals("custom")
                ? steps.stream().map(s -> s.a() + "," + s.b() + "," + s.c()).collect(joining(";"))
                : "%s x %d".formatted(name, steps.size());
    }
}
