package org.fedcomuon.method;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An algorithm with its hyper-parameters. Immutable and thread-safe: runs may share one.
 *
 * <p>Those of this package are records; a method of your own, in any package, is written the same way: a record of its
 * parameters, and a {@link Replica} that creates its {@link Variable}s in its constructor and has the step. The steps
 * of Muon are {@link Muon#on}. {@link FedMuon} is the shortest model.
 *
 * <p>For example: {@snippet file="org/fedcomuon/outside/OutsideMethodIT.java" region="method"}
 */
public interface Method {
    /** Returns the name by which commands, files and reports refer to it. */
    String name();

    /**
     * Returns every hyper-parameter by name, in a fixed order. Files contain its {@code toString}, and a checkpoint
     * must agree with it to be resumed.
     */
    Map<String, Object> parameters();

    /**
     * Refuses values that are out of range for a run of this length.
     *
     * @throws IllegalArgumentException naming the parameter, its value and its range
     */
    void validate(long iterations, int tau);

    /** Returns one sentence for each value that is allowed but not covered by the theory. */
    default List<String> warnings(long iterations, int tau) {
        return List.of();
    }

    /**
     * Returns whether the method is single-level: it knows no tracker of g and descends along {@link Clients#gradient}.
     * It then minimises the plain loss where d = 1, and where d > 1 takes a biased gradient, which a run warns of.
     */
    default boolean isSingleLevel() {
        return false;
    }

    /** Creates the method's state on the device of these clients. */
    Replica on(Clients clients);

    /** A method's state for the clients of one device, created by {@link Method#on}. Called by the device thread. */
    interface Replica {
        /** Sets what does not start from zero, for the clients of the first round. All start from the same W. */
        default void initialize(Server server) {}

        /**
         * Sets the {@linkplain Clients#privateState private state} of clients that take part for the first time in a
         * later round, where it does not start from zero. Only they take part in this call. Their W, and all other
         * state that is not private, is the server's.
         */
        default void join() {}

        /** Does one local step, with an exchange at its end if {@link Step#isSync}. */
        void step(Step t, Server server);
    }

    /**
     * Where a run stands: local step t of T, from 0.
     *
     * @param t the number of steps before this one
     * @param tau local steps per round
     * @param iterations T
     */
    record Step(long t, int tau, long iterations) {
        public Step {
            if (t < 0 || tau < 1 || iterations < 0) {
                throw new IllegalArgumentException("step %d of %d with tau = %d".formatted(t, iterations, tau));
            }
        }

        /** Returns whether the clients synchronise in this step: {@code mod(t + 1, tau) = 0}. */
        public boolean isSync() {
            return (t + 1) % tau == 0;
        }

        /** Returns the sum of a schedule over the steps of this round. */
        public double sumOverRound(Schedule schedule) {
            double sum = 0;
            for (long i = round() * tau; i < (round() + 1) * tau; i++) {
                sum += schedule.at(new Step(i, tau, iterations));
            }
            return sum;
        }

        /** Returns the round this step is in, from 0. */
        public long round() {
            return t / tau;
        }

        /** Returns whether this step is the first of its round. */
        public boolean startsRound() {
            return t % tau == 0;
        }
    }

    /**
     * Averages over the clients of all devices. Every device makes the same calls in the same order; each call is one
     * round trip between the clients and the server, and is counted as such.
     *
     * <p>Not thread-safe; confined to the device thread: each device has its own view of the server.
     */
    interface Server {
        /**
         * Replaces every client's value by the weighted mean over the clients that take part, which is exact up to
         * rounding. Clients that do not take part receive it too, as they would before they next take part.
         */
        void average(Variable... variables);

        /**
         * Does the same for values that are sent compressed.
         *
         * @param up bytes that a client sends
         * @param down bytes that a client receives
         */
        void average(long up, long down, Variable... variables);

        /** Returns the share of the clients that take part, by weight; 1 when all do. */
        double share();
    }

    /**
     * Hyper-parameters by name, in the order they were given, for {@link Method#parameters}. For example
     * {@code Parameters.of("eta", eta, "beta", beta).and(muon.parameters())}. Not thread-safe.
     */
    final class Parameters extends LinkedHashMap<String, Object> {
        private static final long serialVersionUID = 1L;

        private Parameters() {}

        /** Returns these parameters: names and values in turns. */
        public static Parameters of(Object... namesAndValues) {
            var all = new Parameters();
            for (int i = 0; i < namesAndValues.length; i += 2) {
                all.and(namesAndValues[i].toString(), namesAndValues[i + 1]);
            }
            return all;
        }

        /** Adds a parameter. */
        public Parameters and(String name, Object value) {
            put(name, value);
            return this;
        }

        /** Adds the parameters of a part, such as {@link Muon#parameters}. */
        public Parameters and(Map<String, Object> others) {
            putAll(others);
            return this;
        }
    }

    /**
     * The ranges of the papers' hyper-parameters, and the message for a value outside, for {@link Method#validate}. For
     * example {@code new Ranges(iterations).rate("eta", eta).fraction("beta", beta)}. Immutable.
     */
    final class Ranges {
        private final long iterations;

        /** @param iterations of the run that schedules are checked for */
        public Ranges(long iterations) {
            this.iterations = iterations;
        }

        /** Requires a learning rate: more than 0. */
        public Ranges rate(String name, Schedule schedule) {
            return require(name, schedule, schedule.least(iterations) > 0, "more than 0 and finite");
        }

        /** Requires a fraction in [0, 1), the papers' range of moving-average parameters. */
        public Ranges fraction(String name, Schedule schedule) {
            return require(
                    name,
                    schedule,
                    schedule.least(iterations) >= 0 && schedule.greatest(iterations) < 1,
                    "at least 0 and less than 1");
        }

        /** Requires a rate times a factor to be less than 1. */
        public Ranges fraction(String name, Schedule rate, double factor) {
            return require(
                    name, rate, rate.greatest(iterations) * factor < 1, "less than 1 times 1/%s".formatted(factor));
        }

        private Ranges require(String name, Schedule schedule, boolean holds, String range) {
            if (!holds
                    || !Double.isFinite(schedule.least(iterations))
                    || !Double.isFinite(schedule.greatest(iterations))) {
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
            return require(name, value, value >= 0 && value < 1, "at least 0 and less than 1");
        }

        static double positive(String name, double value) {
            return require(name, value, value > 0, "more than 0");
        }

        static double positiveFinite(String name, double value) {
            return require(name, value, value > 0 && value < Double.POSITIVE_INFINITY, "more than 0 and finite");
        }

        static double atLeastZero(String name, double value) {
            return require(name, value, value >= 0 && value < Double.POSITIVE_INFINITY, "at least 0 and finite");
        }

        private static double require(String name, double value, boolean holds, String range) {
            if (!holds) {
                throw new IllegalArgumentException("%s = %s; it is to be %s".formatted(name, value, range));
            }
            return value;
        }
    }
}
