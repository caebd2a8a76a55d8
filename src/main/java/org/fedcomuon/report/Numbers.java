package org.fedcomuon.report;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.Locale;

/** Numbers as people read them, the same in every locale. */
final class Numbers {
    private static final String[] TIME_UNITS = {"s", "ms", "µs", "ns"};
    static final String[] BYTE_UNITS = {"B", "kB", "MB", "GB", "TB"};
    private static final String SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

    private Numbers() {}

    /** Three digits, and a power of ten where that is shorter. */
    static String brief(double value) {
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

    static String fixed(double value, int decimals) {
        if (Double.isNaN(value)) {
            return "NaN";
        }
        if (Double.isInfinite(value)) {
            return value > 0 ? "∞" : "−∞";
        }
        return new BigDecimal(value).setScale(decimals, RoundingMode.HALF_EVEN).toPlainString();
    }

    /** All of the same width, so that a column of them compares at a glance. */
    static String scientific(double value) {
        return Double.isFinite(value) ? String.format(Locale.ROOT, "%.2e", value) : fixed(value, 0);
    }

    /** Near 1 as a plain number; a small one keeps its digits. */
    static String nearOne(double value) {
        double size = Math.abs(value);
        return value == 0 || (size >= 1e-3 && size < 1e4) ? fixed(value, 4) : scientific(value);
    }

    /** Empty where there is nothing to compare with. */
    static String ratio(double value) {
        return Double.isFinite(value) ? fixed(value, value < 10 ? 2 : 1) : "";
    }

    static String time(double seconds) {
        if (seconds == 0) {
            return "0 s";
        }
        int unit = timeUnit(seconds);
        return brief(seconds * Math.pow(1000, unit)) + " " + TIME_UNITS[unit];
    }

    /** A time that may be long, as a clock's reader says it. */
    static String duration(double seconds) {
        if (!(Math.abs(seconds) >= 99.5) || Double.isInfinite(seconds)) {
            return time(seconds);
        }
        long whole = Math.round(seconds);
        return whole < 3600
                ? "%s min %s s".formatted(whole / 60, whole % 60)
                : "%s h %s min".formatted(whole / 3600, whole % 3600 / 60);
    }

    static String percent(double share, int decimals) {
        return fixed(100 * share, decimals) + " %";
    }

    /** In powers of 1000. */
    static String bytes(double bytes) {
        int unit = byteUnit(bytes);
        return brief(bytes / Math.pow(1000, unit)) + " " + BYTE_UNITS[unit];
    }

    /** The exponent of 1000 that leaves the fewest digits. */
    static int byteUnit(double bytes) {
        int unit = 0;
        while (unit < BYTE_UNITS.length - 1 && bytes >= 999.5 * Math.pow(1000, unit)) {
            unit++;
        }
        return unit;
    }

    /** A time in the unit, and with the decimals, that give another one three digits. */
    static String timeLike(double seconds, double other) {
        int unit = timeUnit(other);
        double scale = Math.pow(1000, unit);
        int decimals = other * scale >= 100 ? 0 : other * scale >= 10 ? 1 : 2;
        return fixed(seconds * scale, decimals) + " " + TIME_UNITS[unit];
    }

    private static int timeUnit(double seconds) {
        int unit = 0;
        // 999.5 µs would round to 1000 µs
        while (unit < TIME_UNITS.length - 1 && seconds * Math.pow(1000, unit) < 0.9995) {
            unit++;
        }
        return unit;
    }
}
