package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Which clients each device has, so that all are done at about the same time: the costliest client first, each to the
 * device that would be done with it first. At worst that takes a third longer than the best placement there is, with
 * devices of equal speed; and the best is not found by anything quick. Where a client runs never changes a result.
 *
 * @param clients by device, each with at least one, ascending
 */
record Placement(List<List<Integer>> clients) {
    Placement {
        clients = clients.stream().map(List::copyOf).toList();
    }

    /**
     * Returns the placement of these clients on these devices. Of equal clients the lower number goes first, and of
     * equal devices it goes to the first: the same costs and speeds give the same placement.
     *
     * @param costs what a step of each client costs, positive
     * @param speeds how fast each device is, positive; no more devices than clients
     */
    static Placement of(double[] costs, double[] speeds) {
        int devices = speeds.length;
        List<Integer> costliestFirst = IntStream.range(0, costs.length)
                .boxed()
                .sorted(Comparator.comparingDouble(client -> -costs[client])) // stable
                .toList();
        List<List<Integer>> placed = new ArrayList<>();
        for (int device = 0; device < devices; device++) {
            placed.add(new ArrayList<>());
        }
        var load = new double[devices];
        int idle = devices;
        int left = costs.length;
        for (int client : costliestFirst) {
            int best = -1;
            for (int device = 0; device < devices; device++) {
                boolean mayTake = left > idle || placed.get(device).isEmpty(); // no device stays without a client
                if (mayTake
                        && (best < 0
                                || doneAt(load, device, costs[client], speeds)
                                        < doneAt(load, best, costs[client], speeds))) {
                    best = device;
                }
            }
            idle -= placed.get(best).isEmpty() ? 1 : 0;
            left--;
            load[best] += costs[client];
            placed.get(best).add(client);
        }
        placed.forEach(Collections::sort);
        return new Placement(placed);
    }

    private static double doneAt(double[] load, int device, double more, double[] speeds) {
        return (load[device] + more) / speeds[device];
    }
}
