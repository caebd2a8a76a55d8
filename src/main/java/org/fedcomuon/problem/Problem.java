package org.fedcomuon.problem;

import java.util.List;
import java.util.function.IntFunction;

/**
 * A federated compositional problem over K clients: {@code min_W (1/K) sum_k f^k(E[g^k(W; xi)])} with g in R^d.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="problem"}
 *
 * <p>Called by the threads of all devices at once. May be used by several federations, one after the other or at once,
 * if its clients allow it.
 */
public interface Problem {
    /** The parameters. */
    Layout layout();

    /** d, at least 1. */
    int innerDimension();

    /** K, at least 1. */
    int clients();

    /** Client {@code k}, from 0. Called once for each client of a run, on the thread of the device it is placed on. */
    Client client(int k);

    /**
     * What a step of client {@code k} costs beside the others', such as how many examples its batches have; positive,
     * and the same for all by default. Federations place clients on devices by it; no result depends on it.
     */
    default double cost(int k) {
        return 1;
    }

    /** A problem made of its parts. */
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

    /** The usual form, d = 1: each client has a loss, and all share the risk f. */
    static Problem ofLosses(Layout layout, List<? extends Loss> losses, Risk risk) {
        List<Loss> all = List.copyOf(losses);
        return of(layout, 1, all.size(), k -> LossClient.of(all.get(k), risk));
    }
}
