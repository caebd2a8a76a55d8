package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntToDoubleFunction;
import java.util.stream.IntStream;

/**
 * Which clients are on which device, or with which member of a cluster, in a round. Where all clients take part in
 * every round they stay where they are. Otherwise only those of the round are anywhere: the devices of a process divide
 * them by cost, and a member of a cluster has those of a round whose number has its own as the remainder, because what
 * they keep while they sit out is on its host.
 *
 * <p>Immutable and thread-safe.
 */
final class Seating {
    /** As many clients of rounds are looked at, to find out how many are in one place at a time. */
    private static final long MOST_LOOKED_AT = 10_000_000;

    private final Participation participation;
    private final IntToDoubleFunction cost;
    private final double[] speeds;
    private final boolean members;
    private final List<List<Integer>> fixed; // by place; empty where clients sit out rounds
    private final int[] capacities;

    /**
     * @param cost what a step of a client costs, positive
     * @param speeds how fast each place is, positive
     * @param members whether the places are hosts, between which a client cannot move
     * @param rounds of the run
     */
    Seating(Participation participation, IntToDoubleFunction cost, double[] speeds, boolean members, long rounds) {
        this.participation = participation;
        this.cost = cost;
        this.speeds = speeds.clone();
        this.members = members;
        fixed = participation.isPartial() ? List.of() : placed(0);
        capacities = capacities(rounds);
    }

    private int[] capacities(long rounds) {
        var most = new int[speeds.length];
        int count = participation.count();
        if (!fixed.isEmpty()) {
            Arrays.setAll(most, place -> fixed.get(place).size());
        } else if (!members && isUniform()) {
            Arrays.fill(most, Math.ceilDiv(count, speeds.length));
        } else if (rounds * count <= MOST_LOOKED_AT) {
            for (long round = 0; round < rounds; round++) {
                List<List<Integer>> clients = placed(round);
                for (int place = 0; place < most.length; place++) {
                    most[place] = Math.max(most[place], clients.get(place).size());
                }
            }
        } else {
            Arrays.fill(most, count);
        }
        for (int place = 0; place < most.length; place++) {
            most[place] = Math.max(1, most[place]);
        }
        return most;
    }

    private boolean isUniform() {
        return Arrays.stream(speeds).allMatch(speed -> speed == speeds[0])
                && IntStream.range(0, participation.clients())
                        .allMatch(client -> cost.applyAsDouble(client) == cost.applyAsDouble(0));
    }

    /** Returns whether clients never sit out, and stay where they are. */
    boolean isFixed() {
        return !fixed.isEmpty();
    }

    /** Returns the clients of each place in a round, ascending. */
    List<List<Integer>> clients(long round) {
        return isFixed() ? fixed : placed(round);
    }

    /** Returns whether a client may ever be in a place. */
    boolean isFor(int client, int place) {
        return isFixed() ? fixed.get(place).contains(client) : !members || client % speeds.length == place;
    }

    /** Returns the largest number of clients that are in a place at a time, at least 1. */
    int capacity(int place) {
        return capacities[place];
    }

    private List<List<Integer>> placed(long round) {
        int[] cohort = participation.cohort(round);
        if (members && participation.isPartial()) {
            var clients = new ArrayList<List<Integer>>();
            for (int place = 0; place < speeds.length; place++) {
                int remainder = place;
                clients.add(Arrays.stream(cohort)
                        .filter(client -> client % speeds.length == remainder)
                        .boxed()
                        .toList());
            }
            return clients;
        }
        double[] costs = Arrays.stream(cohort).mapToDouble(cost).toArray();
        return Placement.of(costs, speeds).clients().stream()
                .map(positions ->
                        positions.stream().map(position -> cohort[position]).toList())
                .toList();
    }
}
