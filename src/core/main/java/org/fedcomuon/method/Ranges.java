package org.fedcomuon.method;

import java.util.List;

/** The ranges of the papers' hyper-parameters, and the message for a value outside. */
final class Ranges {
    private final long iterations;

    Ranges(long iterations) {
        this.iterations = iterations;
    }

    /** Requires a learning rate: more than 0. */
    Ranges rate(String name, Schedule schedule) {
        return require(name, schedule, schedule.least(iterations) > 0, "more than 0 and finite");
    }

    /** Requires a fraction in [0, 1), the papers' range of moving-average parameters. */
    Ranges fraction(String name, Schedule schedule) {
        return require(
                name,
                schedule,
                schedule.least(iterations) >= 0 && schedule.greatest(iterations) < 1,
                "at least 0 and less than 1");
    }

    /** Requires a rate times a factor to be a fraction in [0, 1). */
    Ranges fraction(String name, Schedule rate, double factor) {
        return require(name, rate, rate.greatest(iterations) * factor < 1, "less than 1 times 1/%s".formatted(factor));
    }

    private Ranges require(String name, Schedule schedule, boolean holds, String range) {
        if (!holds || !Double.isFinite(schedule.least(iterations)) || !Double.isFinite(schedule.greatest(iterations))) {
            throw new IllegalArgumentException("%s = %s; it is to be %s".formatted(name, schedule, range));
        }
        return this;
    }

    /** Returns a warning where alpha tau is more than 1, which Theorem 1 excludes. */
    static List<String> alphaTimesTau(Schedule alpha, long iterations, int tau) {
        double product = alpha.greatest(iterations) * tau;
        return product <= 1
                ? List.of()
                : List.of("alpha * tau = %s; the analysis holds up to 1".formatted((float) product));
    }

    static double fraction(String name, double value) {
        if (!(value >= 0 && value < 1)) {
            throw new IllegalArgumentException(
                    "%s = %s; it is to be at least 0 and less than 1".formatted(name, value));
        }
        return value;
    }

    static double positive(String name, double value) {
        if (!(value > 0)) {
            throw new IllegalArgumentException("%s = %s; it is to be more than 0".formatted(name, value));
        }
        return value;
    }

    static double positiveFinite(String name, double value) {
        if (!(value > 0 && value < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("%s = %s; it is to be more than 0 and finite".formatted(name, value));
        }
        return value;
    }

    static double atLeastZero(String name, double value) {
        if (!(value >= 0 && value < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("%s = %s; it is to be at least 0 and finite".formatted(name, value));
        }
        return value;
    }
}
