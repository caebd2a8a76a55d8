package org.fedcomuon.cluster;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * What a member brings to a meeting, and all that leaves it: never examples, and of a client's state only what its
 * method exchanges.
 *
 * <p>Immutable, but for the rows, which stay as they are until {@link Cluster#meet} returns.
 *
 * @param facts about how it is getting on
 * @param clients whose values follow, by number, ascending
 * @param weights of each of them in the means, 0 for one that does not take part
 * @param values that are to be averaged; none if the members only wait for each other
 */
public record Contribution(Facts facts, List<Integer> clients, List<Double> weights, List<Values> values) {
    /**
     * A variable's values, a row of floats for each client.
     *
     * <p>Immutable, but for the rows.
     *
     * @param name of the variable
     * @param rows of all clients here, one after the other
     */
    public record Values(String name, MemorySegment rows) {}

    /** Checks that there are as many rows and weights as clients. */
    public Contribution {
        clients = List.copyOf(clients);
        weights = List.copyOf(weights);
        values = List.copyOf(values);
        if (clients.isEmpty() || weights.size() != clients.size()) {
            throw new IllegalArgumentException("%d weights for %d clients; one for each, and at least one"
                    .formatted(weights.size(), clients.size()));
        }
        for (Values value : values) {
            if (value.rows().byteSize() % ((long) Float.BYTES * clients.size()) != 0) {
                throw new IllegalArgumentException(
                        "%s has %d bytes, which are not the same number of floats for each of %d clients"
                                .formatted(value.name(), value.rows().byteSize(), clients.size()));
            }
        }
    }

    /** Elements of a row. */
    public long length(int value) {
        return values.get(value).rows().byteSize() / Float.BYTES / clients.size();
    }
}
