package org.fedcomuon.cluster;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * What all members take from a meeting.
 *
 * <p>Immutable, but for the means.
 *
 * @param facts of every member, in their order
 * @param weights of every client
 * @param means of the values, in the order in which they were brought; valid until the next meeting
 */
public record Answer(List<Facts> facts, List<Double> weights, List<MemorySegment> means) {
    /** Copies the lists, not what is in the means. */
    public Answer {
        facts = List.copyOf(facts);
        weights = List.copyOf(weights);
        means = List.copyOf(means);
    }
}
