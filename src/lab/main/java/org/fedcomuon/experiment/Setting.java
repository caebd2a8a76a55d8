package org.fedcomuon.experiment;

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
 * @param defaultValue the value if none is given; empty if one is required
 */
record Setting(String name, String range, UnaryOperator<String> canonical, String defaultValue) {
    static final int MANY = 1_000_000_000;

    /** Creates a required setting. */
    Setting(String name, String range, UnaryOperator<String> canonical) {
        this(name, range, canonical, "");
    }

    /** Returns the same setting with a default value. */
    Setting withDefault(String value) {
        return new Setting(name, range, canonical, value);
    }

    /**
     * Returns the value in its canonical form.
     *
     * @throws ConfigurationException when it is not possible
     */
    String check(String value) {
        try {
            return canonical.apply(value.strip());
        } catch (IllegalArgumentException e) {
            throw new ConfigurationException("%s = %s; %s is possible".formatted(name, value, range), e);
        }
    }

    static Setting text(String name) {
        return new Setting(name, "any text", value -> value);
    }

    static Setting oneOf(String name, List<String> values) {
        return new Setting(name, "one of " + String.join(", ", values), value -> {
            require(values.contains(value));
            return value;
        });
    }

    static Setting integer(String name, long least, long greatest) {
        return new Setting(name, "a whole number from %d to %d".formatted(least, greatest), value -> {
            long number = Long.parseLong(value);
            require(number >= least && number <= greatest);
            return Long.toString(number);
        });
    }

    /** Returns a setting that is a whole number from 1. */
    static Setting count(String name) {
        return integer(name, 1, MANY);
    }

    /** Returns a setting that is a number more than {@code above} and up to {@code most}. */
    static Setting number(String name, double above, double most) {
        return new Setting(name, "a number more than %s and up to %s".formatted(above, most), value -> {
            double number = Double.parseDouble(value);
            require(number > above && number <= most);
            return Double.toString(number);
        });
    }

    static Setting notNegative(String name) {
        return new Setting(name, "a number that is not negative", value -> {
            double number = Double.parseDouble(value);
            require(number >= 0 && number < Double.POSITIVE_INFINITY);
            return Double.toString(number);
        });
    }

    static Setting flag(String name) {
        return oneOf(name, List.of("true", "false"));
    }

    static Setting schedule(String name) {
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
