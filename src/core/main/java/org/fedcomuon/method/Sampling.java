package org.fedcomuon.method;

import java.util.List;
import org.fedcomuon.problem.Sample;

/**
 * Which sample each client of a device draws next. A sample is named by the seed, the client's number among all and a
 * counter per client and stream, so it does not depend on where a client is placed. Checkpoints hold the counters.
 *
 * <p>Distinct clients may draw on distinct threads.
 */
final class Sampling {
    private final long seed;
    private final long[] innerDraws;
    private final long[] outerDraws;
    private List<Integer> numbers = List.of();

    /** @param capacity the largest number of clients at a time */
    Sampling(long seed, int capacity) {
        this.seed = seed;
        innerDraws = new long[capacity];
        outerDraws = new long[capacity];
    }

    /** Sets which clients are here. Their counters are set by who calls this. */
    void seat(List<Integer> clients) {
        numbers = clients;
    }

    /** Returns the counters themselves. */
    long[] innerDraws() {
        return innerDraws;
    }

    /** Returns the counters themselves. */
    long[] outerDraws() {
        return outerDraws;
    }

    /** Returns the next xi of client {@code k}. */
    Sample inner(int k) {
        return new Sample(seed, numbers.get(k), Sample.Stream.INNER, innerDraws[k]++);
    }

    /** Returns the next zeta of client {@code k}. */
    Sample outer(int k) {
        return new Sample(seed, numbers.get(k), Sample.Stream.OUTER, outerDraws[k]++);
    }
}
