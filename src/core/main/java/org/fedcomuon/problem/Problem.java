package org.fedcomuon.problem;

import java.util.List;
import java.util.Optional;
import java.util.function.IntFunction;
import org.fedcomuon.device.Device;

/**
 * A federated compositional problem over K clients: {@code min_W (1/K) sum_k f^k(E[g^k(W; xi)])} with g in R^d.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="problem"}
 *
 * <p>Called by the threads of all devices concurrently. Several federations may use it, one after the other or
 * concurrently, if its clients allow it.
 */
public interface Problem {
    /** Returns the layout of the model's parameters. */
    Layout layout();

    /** Returns d, the dimension of the inner function g; at least 1. */
    int innerDimension();

    /** Returns K, the number of clients; at least 1. */
    int clients();

    /**
     * Returns client {@code k}, from 0. Called once for each client of a run, on the thread of the device it is placed
     * on.
     */
    Client client(int k);

    /**
     * Returns what evaluates the inner functions of several clients in one call on {@code device}, instead of client by
     * client; empty, as it is by default, where there is nothing of the kind, or where it would be slower. Called once
     * for each device of a run, on its thread.
     *
     * @param clients those placed on the device, ascending
     */
    default Optional<JointOracle> joint(Device device, List<Integer> clients) {
        return Optional.empty();
    }

    /**
     * Returns the relative cost of a step of client {@code k}, such as the size of its batches; positive, and the same
     * for all clients by default. Federations place clients on devices by it; no result depends on it.
     */
    default double cost(int k) {
        return 1;
    }

    /**
     * Returns W0 for a seed, where the problem has one of its own: a network does not learn from zeros. Empty by
     * default, which means zeros. {@code Federation.Builder.initial} takes precedence.
     */
    default Optional<Floats> initial(long seed) {
        return Optional.empty();
    }

    /**
     * Returns what is wrong with client {@code k}, a line each; nothing by default. Federations ask before a run, and
     * refuse it with the mistakes of all clients.
     */
    default List<String> mistakes(int k) {
        return List.of();
    }

    /** Creates a problem from its parts. */
    static Problem of(Layout layout, int innerDimension, int clients, IntFunction<Client> client) {
        if (innerDimension < 1 || clients < 1) {
            throw new IllegalArgumentException(
                    "d = %d and %d clients; both are at least 1".formatted(innerDimension, clients));
        }
        return new Problem() {
            @Override
            public Layout layout() {
                return layout;
            }

            @Override
            public int innerDimension() {
                return innerDimension;
            }

            @Override
            public int clients() {
                return clients;
            }

            @Override
            public Client client(int k) {
                return client.apply(k);
            }
        };
    }

    /** Creates a problem of the usual form, d = 1: each client has a loss, and all share the risk f. */
    static Problem ofLosses(Layout layout, List<? extends Loss> losses, Risk risk) {
        List<Loss> all = List.copyOf(losses);
        return of(layout, 1, all.size(), k -> LossClient.of(all.get(k), risk));
    }
}
