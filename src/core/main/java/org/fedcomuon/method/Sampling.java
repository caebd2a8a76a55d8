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
    private final List<Integer> numbers;
    private final long[] innerDraws;
    private final long[] outerDraws;

    Sampling(long seed, List<Integer> numbers) {
        this.seed = seed;
        this.numbers = numbers;
        innerDraws = new long[numbers.size()];
        outerDraws = new long[numbers.size()];
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
