package org.fedcomuon.method;

import java.util.List;
import java.util.Map;

/** An algorithm with its hyper-parameters. Immutable and thread-safe: runs may share one. */
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

    /** Creates the method's state on the device of these clients. */
    Replica on(Clients clients);

    /** A method's state for the clients of one device, created by {@link Method#on}. Called by the device thread. */
    interface Replica {
        /** Sets what does not start from zero. All clients start from the same W. */
        default void initialize(Server server) {}

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
         * Replaces every client's value by the weighted mean over the clients that take part, summed in client order.
         * Clients that do not take part receive it too, as they would before they next take part.
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
}
