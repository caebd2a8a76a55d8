package org.fedcomuon.experiment;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.UnaryOperator;
import org.fedcomuon.method.Compressor;
import org.fedcomuon.method.Schedule;

/**
 * A setting of a configuration. Immutable.
 *
 * @param name as in {@code --set NAME=VALUE}
 * @param range the possible values, for messages
 * @param canonical returns the value in its canonical form; throws an IllegalArgumentException when it is out of range
 * @param defaultValue the value if none is given; empty if there is none
 * @param need whether it has to be given
 * @param isPath whether it names a file, relative to the file that gives it
 */
public record Setting(
        String name, String range, UnaryOperator<String> canonical, String defaultValue, Need need, boolean isPath) {
    static final int MANY = 1_000_000_000;

    private static final int LONGEST_SHOWN = 100;

    /** What happens where a setting has neither a value nor a default. */
    public enum Need {
        /** The configuration is refused. */
        REQUIRED,
        /** The configuration is without it. */
        OPTIONAL
    }

    /** Creates a required setting. */
    public Setting(String name, String range, UnaryOperator<String> canonical) {
        this(name, range, canonical, "", Need.REQUIRED, false);
    }

    /** Returns the same setting with a default value. */
    public Setting withDefault(String value) {
        return new Setting(name, range, canonical, value, need, isPath);
    }

    /** Returns the same setting, which need not be given. */
    public Setting optional() {
        return new Setting(name, range, canonical, defaultValue, Need.OPTIONAL, isPath);
    }

    /**
     * Returns the value in its canonical form.
     *
     * @throws ConfigurationException when it is not possible
     */
    String check(String value) {
        try {
            return canonical.apply(value.strip());
        } catch (ConfigurationException e) {
            throw e; // it says more than the range does
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException("%s = %s; %s is possible".formatted(name, clipped(value), range), e);
        }
    }

    /** Shortens a value that nobody meant to be so long. */
    private static String clipped(String value) {
        int end = value.offsetByCodePoints(0, Math.min(LONGEST_SHOWN, value.codePointCount(0, value.length())));
        return end < value.length() ? value.substring(0, end) + "..." : value;
    }

    /** Returns a setting that is any text but none. */
    public static Setting text(String name) {
        return new Setting(name, "any text", value -> {
            require(!value.isEmpty());
            return value;
        });
    }

    /**
     * Returns a setting that names a file or a directory. A relative path in a YAML file begins at the directory of
     * that file, one on the command line at the working directory; the canonical form is absolute. A path may lead
     * anywhere that the user can read: it is never written to.
     */
    public static Setting path(String name) {
        return new Setting(
                name,
                "the path of a file",
                value -> {
                    require(!value.isEmpty());
                    try {
                        return Path.of(value).toAbsolutePath().normalize().toString();
                    } catch (InvalidPathException e) {
                        throw new IllegalArgumentException(e);
                    }
                },
                "",
                Need.REQUIRED,
                true);
    }

    /** Returns a setting that is one of a few words. */
    public static Setting oneOf(String name, List<String> values) {
        return new Setting(name, "one of " + String.join(", ", values), value -> {
            require(values.contains(value));
            return value;
        });
    }

    /** Returns a setting that is a whole number. */
    public static Setting integer(String name, long least, long greatest) {
        return new Setting(name, "a whole number from %d to %d".formatted(least, greatest), value -> {
            long number = Long.parseLong(value);
            require(number >= least && number <= greatest);
            return Long.toString(number);
        });
    }

    /** Returns a setting that is a whole number from 1. */
    public static Setting count(String name) {
        return integer(name, 1, MANY);
    }

    /** Returns a setting that is a number more than {@code above} and up to {@code most}. */
    public static Setting number(String name, double above, double most) {
        return new Setting(name, "a number more than %s and up to %s".formatted(above, most), value -> {
            double number = Double.parseDouble(value);
            require(number > above && number <= most);
            return Double.toString(number);
        });
    }

    /** Returns a setting that is a share: more than nothing, and less than all. */
    public static Setting share(String name) {
        return new Setting(name, "a number more than 0 and less than 1", value -> {
            double number = Double.parseDouble(value);
            require(number > 0 && number < 1);
            return Double.toString(number);
        });
    }

    /** Returns a setting that is a number from 0. */
    public static Setting notNegative(String name) {
        return new Setting(name, "a number that is not negative", value -> {
            double number = Double.parseDouble(value);
            require(number >= 0 && number < Double.POSITIVE_INFINITY);
            return Double.toString(number);
        });
    }

    /** Returns a setting that is true or false. */
    public static Setting flag(String name) {
        return oneOf(name, List.of("true", "false"));
    }

    /** Returns a setting that may change from step to step. */
    public static Setting schedule(String name) {
        return new Setting(
                name,
                "a number, power(FACTOR, EXPONENT) or cosine(FIRST, LAST)",
                value -> Schedule.parse(value).toString());
    }

    static Setting compressor(String name) {
        return new Setting(
                name,
                "none, top-k(SHARE) or low-rank(RANK)",
                value -> Compressor.parse(value).toString());
    }

    private static void require(boolean holds) {
        if (!holds) {
            throw new IllegalArgumentException("out of range");
        }
    }
}
