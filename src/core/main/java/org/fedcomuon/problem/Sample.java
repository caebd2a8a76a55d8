package org.fedcomuon.problem;

import java.util.SplittableRandom;
import java.util.random.RandomGenerator;

/**
 * Identifies what a client draws: not the data themselves but a position in the client's own random stream. An oracle
 * turns it into a mini-batch, noise or a dropout mask, always the same for the same sample; so a second evaluation on
 * the same sample sees the same data, and a run that is resumed or placed on other devices draws the same samples.
 *
 * @param seed of the run
 * @param client whose it is, from 0
 * @param stream what it is for
 * @param draw how many this client has drawn from this stream before
 */
public record Sample(long seed, int client, Stream stream, long draw) {
    /** Samples of different streams are independent. */
    public enum Stream {
        /** xi: samples of g. */
        INNER(0),
        /** zeta: samples of f. */
        OUTER(1);

        private final int code;

        Stream(int code) {
            this.code = code;
        }
    }

    /** Returns a new generator for this sample; every call returns one with the same numbers. */
    public RandomGenerator random() {
        return new SplittableRandom(mix(mix(mix(mix(seed) ^ client) ^ stream.code) ^ draw));
    }

    /** Returns a generator for what spans samples, such as the order of an epoch: the same for every draw. */
    public RandomGenerator random(long epoch) {
        return new SplittableRandom(mix(mix(mix(mix(~seed) ^ client) ^ stream.code) ^ epoch));
    }

    /**
     * Applies Stafford's variant 13 of the finalizer of MurmurHash3, so that neighbours differ in half of their bits.
     */
    private static long mix(long x) {
        long z = x + 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
