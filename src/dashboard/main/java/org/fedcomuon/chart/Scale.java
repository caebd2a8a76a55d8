package org.fedcomuon.chart;

import java.util.ArrayList;
import java.util.List;
import java.util.function.DoubleFunction;

/**
 * Maps values to places on an axis.
 *
 * @param logarithmic whether equal steps are equal factors
 * @param start of the axis: a value, or the decimal logarithm of one
 * @param end of the axis, likewise
 * @param ticks labelled values
 */
public record Scale(boolean logarithmic, double start, double end, List<Tick> ticks) {
    /** A value with a label. */
    public record Tick(double value, String label) {}

    private static final double LOGARITHMIC_FROM = 30;
    private static final int MOST_TICKS = 7;
    /** Keeps the outermost marks off the frame. */
    private static final double MARGIN = 0.04;
    /** With larger values the length of an axis could overflow. */
    private static final double LARGEST = 1e300;
    /** With a smaller range a step of an axis could be lost in rounding. */
    private static final double SMALLEST = 1e-300;

    /** False for NaN, infinities, and values so large that they may as well be infinite. */
    public static boolean drawable(double value) {
        return Math.abs(value) <= LARGEST;
    }

    /** Whether the values differ so much that a linear axis would not show the small ones. */
    public static boolean isWide(List<Double> values) {
        List<Double> drawn = values.stream().filter(Scale::drawable).toList();
        double least = drawn.stream().reduce(Math::min).orElse(1.0);
        double most = drawn.stream().reduce(Math::max).orElse(1.0);
        return least > 0 && most / least >= LOGARITHMIC_FROM;
    }

    /** Between round numbers, 0 included. */
    public static Scale linear(List<Double> values) {
        double least = values.stream().filter(Scale::drawable).reduce(0.0, Math::min);
        double most = values.stream().filter(Scale::drawable).reduce(0.0, Math::max);
        return round(least, most - least < SMALLEST ? least + 1 : most, Numbers::brief);
    }

    /** Between round numbers, not necessarily with 0: for values whose differences matter. */
    public static Scale close(List<Double> values) {
        List<Double> drawn = values.stream().filter(Scale::drawable).toList();
        double least = drawn.stream().reduce(Math::min).orElse(0.0);
        double most = drawn.stream().reduce(Math::max).orElse(0.0);
        double size = Math.max(Math.abs(least), Math.abs(most));
        // in a narrower range one would see mostly rounding; larger or smaller labels would be too long
        if (most - least < 0.02 * size || size < 1e-2 || size >= 1e4) {
            return linear(values);
        }
        int decimals = Math.max(0, (int) -Math.floor(Math.log10(roundStep((most - least) / MOST_TICKS)) + 1e-9));
        return round(least, most, value -> Numbers.fixed(value, decimals));
    }

    private static Scale round(double least, double most, DoubleFunction<String> label) {
        double step = roundStep((most - least) / MOST_TICKS);
        double first = Math.floor(least / step);
        double last = Math.ceil(most / step);
        var ticks = new ArrayList<Tick>();
        for (double i = first; i <= last; i++) {
            ticks.add(new Tick(i * step, label.apply(i * step)));
        }
        return new Scale(false, first * step, last * step, ticks);
    }

    /** The next 1, 2 or 5 times a power of ten. */
    private static double roundStep(double least) {
        double power = Math.pow(10, Math.floor(Math.log10(least)));
        double mantissa = least / power;
        return power * (mantissa <= 1 ? 1 : mantissa <= 2 ? 2 : mantissa <= 5 ? 5 : 10);
    }

    /** At least a decade, because a shorter axis may contain no round number. */
    public static Scale logarithmic(List<Double> values, DoubleFunction<String> label) {
        Scale bare = logarithmic(values, 1);
        return new Scale(true, bare.start, bare.end, decimalTicks(bare.start, bare.end, label));
    }

    /** With ticks of the caller's choice. */
    public static Scale logarithmic(List<Double> values, List<Tick> ticks) {
        Scale bare = logarithmic(values, 0.1);
        return new Scale(true, bare.start, bare.end, List.copyOf(ticks));
    }

    private static Scale logarithmic(List<Double> values, double leastDecades) {
        List<Double> logarithms = values.stream()
                .filter(value -> drawable(value) && value > 0)
                .map(Math::log10)
                .toList();
        double least = logarithms.stream().reduce(Math::min).orElse(0.0);
        double most = logarithms.stream().reduce(Math::max).orElse(0.0);
        if (values.stream().anyMatch(value -> value <= 0)) {
            least--; // separates values without a logarithm from the others
        }
        double more = Math.max(MARGIN * (most - least), (leastDecades - (most - least)) / 2);
        return new Scale(true, least - more, most + more, List.of());
    }

    private static List<Tick> decimalTicks(double start, double end, DoubleFunction<String> label) {
        int first = (int) Math.ceil(start);
        int last = (int) Math.floor(end);
        int decades = last - first + 1;
        int every = (decades + MOST_TICKS - 1) / MOST_TICKS;
        int[] mantissas = decades < 3 ? new int[] {1, 2, 5} : new int[] {1};
        var ticks = new ArrayList<Tick>();
        for (int exponent = first - 1; exponent <= last; exponent++) {
            for (int mantissa : mantissas) {
                // parsed, because a computed power may differ from the number in the label
                double value = Double.parseDouble(mantissa + "e" + exponent);
                double at = Math.log10(value);
                if (Math.floorMod(exponent, every) == 0 && at >= start && at <= end) {
                    ticks.add(new Tick(value, label.apply(value)));
                }
            }
        }
        return ticks;
    }

    /** 0 at the start of the axis, 1 at its end. Values without a logarithm lie at the start of a logarithmic axis. */
    public double place(double value) {
        if (clamps(value)) {
            return 0;
        }
        return ((logarithmic ? Math.log10(value) : value) - start) / (end - start);
    }

    /** Whether a value is drawn at the start of the axis instead of its own place. */
    public boolean clamps(double value) {
        return logarithmic && value <= 0;
    }
}
