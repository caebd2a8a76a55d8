package org.fedcomuon.method;

/**
 * Where a run stands: local step t of T, from 0.
 *
 * @param t how many steps have been done before this one
 * @param tau local steps a round
 * @param iterations T
 */
public record Step(long t, int tau, long iterations) {
    public Step {
        if (t < 0 || tau < 1 || iterations < 0) {
            throw new IllegalArgumentException("step %d of %d with tau = %d".formatted(t, iterations, tau));
        }
    }

    /** Whether the clients synchronise in this step: {@code mod(t + 1, tau) = 0}. */
    public boolean isSync() {
        return (t + 1) % tau == 0;
    }

    /** The sum of a schedule over the steps of this round: how far plain steps of its size would have led. */
    public double sumOverRound(Schedule schedule) {
        double sum = 0;
        for (long i = round() * tau; i < (round() + 1) * tau; i++) {
            sum += schedule.at(new Step(i, tau, iterations));
        }
        return sum;
    }

    /** The round this step is in, from 0. */
    public long round() {
        return t / tau;
    }

    /** Whether this step is the first of its round. */
    public boolean startsRound() {
        return t % tau == 0;
    }
}
