package org.fedcomuon.cluster;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The message of a member in an exchange, which is all that ever leaves it: never examples, and of a client's state
 * only what its method exchanges.
 *
 * <p>Immutable, except for the rows, which must not change until {@link Cluster#exchange} returns.
 *
 * @param status of the member
 * @param clients whose values follow, by number, ascending
 * @param weights of each of them in the means, 0 for one that does not take part
 * @param values that are to be averaged; none if the members only wait for each other
 */
public record Contribution(
        Cluster.MemberStatus status, List<Integer> clients, List<Double> weights, List<Values> values) {
    /**
     * A variable's values, a row of floats for each client.
     *
     * <p>Immutable, except for the rows.
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

    /** Returns the number of elements of a row. */
    public long length(int value) {
        return values.get(value).rows().byteSize() / Float.BYTES / clients.size();
    }
}
