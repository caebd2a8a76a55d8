package org.fedcomuon.chart;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.List;
import java.util.Locale;

/** Formats numbers for readers, the same in every locale. */
public final class Numbers {
    private static final List<String> TIME_UNITS = List.of("s", "ms", "µs", "ns");
    public static final List<String> BYTE_UNITS = List.of("B", "kB", "MB", "GB", "TB");
    private static final String SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

    private Numbers() {}

    /** Three digits, and a power of ten where that is shorter. */
    public static String brief(double value) {
        if (!Double.isFinite(value) || value == 0) {
            return fixed(value, 0);
        }
        BigDecimal rounded = new BigDecimal(value).round(new MathContext(3)).stripTrailingZeros();
        int exponent = rounded.precision() - rounded.scale() - 1;
        if (exponent >= -2 && exponent <= 3) {
            return rounded.toPlainString();
        }
        String mantissa = rounded.scaleByPowerOfTen(-exponent).toPlainString();
        return (mantissa.equals("1") ? "" : mantissa + "·") + "10" + superscript(exponent);
    }

    private static String superscript(int exponent) {
        var text = new StringBuilder(exponent < 0 ? "⁻" : "");
        Integer.toString(Math.abs(exponent)).chars().forEach(digit -> text.append(SUPERSCRIPTS.charAt(digit - '0')));
        return text.toString();
    }

    public static String fixed(double value, int decimals) {
        if (Double.isNaN(value)) {
            return "NaN";
        }
        if (Double.isInfinite(value)) {
            return value > 0 ? "∞" : "−∞";
        }
        return new BigDecimal(value).setScale(decimals, RoundingMode.HALF_EVEN).toPlainString();
    }

    /** In scientific notation, all of the same width. */
    public static String scientific(double value) {
        return Double.isFinite(value) ? String.format(Locale.ROOT, "%.2e", value) : fixed(value, 0);
    }

    /** A plain number near 1, and scientific notation elsewhere. */
    public static String nearOne(double value) {
        double size = Math.abs(value);
        return value == 0 || (size >= 1e-3 && size < 1e4) ? fixed(value, 4) : scientific(value);
    }

    /** Empty if there is nothing to compare with. */
    public static String ratio(double value) {
        return Double.isFinite(value) ? fixed(value, value < 10 ? 2 : 1) : "";
    }

    public static String time(double seconds) {
        if (seconds == 0) {
            return "0 s";
        }
        int unit = timeUnit(seconds);
        return brief(seconds * Math.pow(1000, unit)) + " " + TIME_UNITS.get(unit);
    }

    /** A time, in minutes and hours if it is long. */
    public static String duration(double seconds) {
        if (!(Math.abs(seconds) >= 99.5) || Double.isInfinite(seconds)) {
            return time(seconds);
        }
        long whole = Math.round(seconds);
        return whole < 3600
                ? "%s min %s s".formatted(whole / 60, whole % 60)
                : "%s h %s min".formatted(whole / 3600, whole % 3600 / 60);
    }

    public static String percent(double share, int decimals) {
        return fixed(100 * share, decimals) + " %";
    }

    /** A number of bytes with a decimal unit. */
    public static String bytes(double bytes) {
        int unit = byteUnit(bytes);
        return brief(bytes / Math.pow(1000, unit)) + " " + BYTE_UNITS.get(unit);
    }

    /** The exponent of 1000 that leaves the fewest digits. */
    public static int byteUnit(double bytes) {
        int unit = 0;
        while (unit < BYTE_UNITS.size() - 1 && bytes >= 999.5 * Math.pow(1000, unit)) {
            unit++;
        }
        return unit;
    }

    /** A time in the unit and with the decimals that give {@code other} three digits. */
    public static String timeLike(double seconds, double other) {
        int unit = timeUnit(other);
        double scale = Math.pow(1000, unit);
        int decimals = other * scale >= 100 ? 0 : other * scale >= 10 ? 1 : 2;
        return fixed(seconds * scale, decimals) + " " + TIME_UNITS.get(unit);
    }

    private static int timeUnit(double seconds) {
        int unit = 0;
        // 999.5 µs would round to 1000 µs
        while (unit < TIME_UNITS.size() - 1 && seconds * Math.pow(1000, unit) < 0.9995) {
            unit++;
        }
        return unit;
    }
}
