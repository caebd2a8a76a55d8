package org.fedcomuon.linalg;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.device.NewtonSchulzSpec;

/**
 * Computes schedules of Polar Express: each step takes the odd polynomial of degree five that is nearest to 1 on the
 * interval in which the steps before have left the singular values, in the largest distance. By a theorem of Amsel,
 * Persson, Musco and Gower (arXiv 2505.16932) no other polynomials of this degree come as near in as many steps.
 *
 * <p>Two deviations keep rounding small. The polynomials are made for at least {@link #CUSHION} of the interval, and
 * scaled for the whole: those for all of a long interval map its middle close to zero, where digits are lost. And while
 * the polynomials are steep, they are made for an interval that is longer by a margin: behind its end they run away,
 * and rounding puts singular values there.
 */
final class PolarExpress {
    /** The shortest interval, as a share of its upper end; the value with which the published table was made. */
    static final double CUSHION = 0.02407327424182761;

    /** The relative length that is added to the interval of steep polynomials. */
    static final double MARGIN = 0.01;

    /** From here on the polynomials are flat at the upper end of their interval. */
    private static final double FLAT_FROM = 0.5;

    /** A shorter interval has the polynomial of its limit, up to rounding. */
    private static final double POINT = 5e-6;

    private static final NewtonSchulzSpec.Step LIMIT = new NewtonSchulzSpec.Step(15.0 / 8, -10.0 / 8, 3.0 / 8);

    /** Far more than any of the intervals takes. */
    private static final int MOST_STEPS = 100;

    private static final int MOST_EXCHANGES = 100;

    /** Distances of two exchanges that differ by rounding only. */
    private static final double SETTLED = 1e-14;

    private PolarExpress() {}

    /**
     * Returns the steps that bring every singular value from {@code lowest} to 1 within {@code error} of 1.
     *
     * @param margin of the interval; 0 for the polynomials of the theorem
     */
    static List<NewtonSchulzSpec.Step> steps(double lowest, double error, double margin) {
        var steps = new ArrayList<NewtonSchulzSpec.Step>();
        double low = lowest;
        while (steps.isEmpty() || 1 - low > error) {
            if (steps.size() == MOST_STEPS) {
                throw new IllegalStateException(
                        "no error of %s from %s in %d steps".formatted(error, lowest, MOST_STEPS));
            }
            double high = steps.isEmpty() ? 1 : 2 - low;
            double end = low < FLAT_FROM ? high * (1 + margin) : high;
            NewtonSchulzSpec.Step nearest = nearest(Math.max(low, CUSHION * end), end);
            // The cushion leaves what is below it too low: the middle of the whole comes back to 1.
            double middle = (value(nearest, low) + value(nearest, end)) / 2;
            var step = new NewtonSchulzSpec.Step(nearest.a() / middle, nearest.b() / middle, nearest.c() / middle);
            low = value(step, low);
            steps.add(step);
        }
        return List.copyOf(steps);
    }

    private static double value(NewtonSchulzSpec.Step step, double s) {
        double square = s * s;
        return s * (step.a() + square * (step.b() + square * step.c()));
    }

    /**
     * Returns the polynomial with the least largest distance from 1 on an interval, by Remez' exchange: it is as far
     * from 1 at both ends and at its two extrema, below and above by turns.
     */
    private static NewtonSchulzSpec.Step nearest(double low, double high) {
        if (high - low <= POINT * high) {
            return new NewtonSchulzSpec.Step(
                    LIMIT.a() / high, LIMIT.b() / Math.pow(high, 3), LIMIT.c() / Math.pow(high, 5));
        }
        var at = new double[] {low, (3 * low + high) / 4, (low + 3 * high) / 4, high};
        double before = Double.MAX_VALUE;
        for (int exchange = 0; exchange < MOST_EXCHANGES; exchange++) {
            double distance = distance(at);
            NewtonSchulzSpec.Step step = through(at, distance);
            if (Math.abs(distance - before) <= SETTLED) {
                return step;
            }
            before = distance;
            // The extrema are where a + 3 b s^2 + 5 c s^4 = 0.
            double root = Math.sqrt(9 * step.b() * step.b() - 20 * step.a() * step.c());
            at[1] = Math.sqrt((-3 * step.b() - root) / (10 * step.c()));
            at[2] = Math.sqrt((-3 * step.b() + root) / (10 * step.c()));
        }
        throw new IllegalStateException("no nearest polynomial on [%s, %s]".formatted(low, high));
    }

    /**
     * Returns the distance E such that a polynomial is 1 - E, 1 + E, 1 - E and 1 + E at four places s. The polynomial
     * over s is a parabola in s^2, whose third divided difference is 0.
     */
    private static double distance(double[] at) {
        double ones = 0;
        double signs = 0;
        for (int i = 0; i < at.length; i++) {
            double weight = 1 / at[i];
            for (int j = 0; j < at.length; j++) {
                weight /= i == j ? 1 : (at[i] - at[j]) * (at[i] + at[j]);
            }
            ones += weight;
            signs += i % 2 == 0 ? -weight : weight;
        }
        return -ones / signs;
    }

    /** Returns the polynomial of {@link #distance}, by Newton's interpolation of the parabola. */
    private static NewtonSchulzSpec.Step through(double[] at, double distance) {
        double[] squares = {at[0] * at[0], at[1] * at[1], at[2] * at[2]};
        double first = (1 - distance) / at[0];
        double second = (1 + distance) / at[1];
        double third = (1 - distance) / at[2];
        double slope = (second - first) / (squares[1] - squares[0]);
        double next = (third - second) / (squares[2] - squares[1]);
        double c = (next - slope) / (squares[2] - squares[0]);
        double b = slope - c * (squares[0] + squares[1]);
        double a = first - squares[0] * (slope - c * squares[1]);
        return new NewtonSchulzSpec.Step(a, b, c);
    }
}
