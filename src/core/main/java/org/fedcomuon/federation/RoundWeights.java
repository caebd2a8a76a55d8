package org.fedcomuon.federation;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.fedcomuon.method.Clients;
import org.jspecify.annotations.Nullable;

/**
 * The weights of the clients whose values a mean is of. Every device and member computes them by itself: who takes part
 * in a round follows from the seed and the round, so all that they tell each other is who was dropped by a fault.
 *
 * <p>Weights are scaled by a power of two, which is exact, so that the greatest is in (1/2, 1]: what the sums of a mean
 * require. All devices and members have the same scale, and the same total, which is summed in client order.
 *
 * <p>Not thread-safe; confined to the device thread.
 */
final class RoundWeights {
    private final List<Double> base; // of all clients
    private final double all;
    private int @Nullable [] cohort; // ascending; null for all clients
    private final Set<Integer> dropped = new HashSet<>();
    private int shift; // of the scale, as an exponent of two
    private double total; // scaled
    private double share = 1;
    private int participants;

    /** @param base of each client, positive */
    RoundWeights(List<Double> base) {
        this.base = base;
        double sum = 0;
        for (double weight : base) {
            sum += weight;
        }
        all = sum;
    }

    /** Sets who takes part from now on, unless a fault drops them: these clients, ascending. Before, all do. */
    void begin(int[] clients) {
        cohort = clients;
    }

    /** Returns the number of clients that take part by the plan. */
    int planned() {
        return cohort == null ? base.size() : cohort.length;
    }

    private boolean isPlanned(int client) {
        return position(client) >= 0;
    }

    /** Returns the position of a client among those that take part by the plan; negative for another. */
    int position(int client) {
        return cohort == null ? client : Arrays.binarySearch(cohort, client);
    }

    /** Returns the clients of a device that were dropped, ascending. */
    List<Integer> dropped(Clients clients) {
        var here = new ArrayList<Integer>();
        for (int k = 0; k < clients.count(); k++) {
            if (!clients.takesPart(k) && isPlanned(clients.number(k))) {
                here.add(clients.number(k));
            }
        }
        return here;
    }

    /**
     * Returns the weights of a device's clients before scaling, 0 for those that do not take part.
     *
     * @param rows for which there is room on the device; those without a client have weight 0
     */
    double[] unscaled(Clients clients, int rows) {
        var weights = new double[rows];
        for (int k = 0; k < clients.count(); k++) {
            weights[k] = clients.takesPart(k) ? base.get(clients.number(k)) : 0;
        }
        return weights;
    }

    /**
     * Prepares the next mean.
     *
     * @param faulty the clients that were dropped, on each device or member
     * @throws Federation.NoClientsException when no client is left
     */
    void drop(List<List<Integer>> faulty) {
        dropped.clear();
        faulty.forEach(dropped::addAll);
        double greatest = 0;
        participants = 0;
        for (int i = 0; i < planned(); i++) {
            if (!dropped.contains(client(i))) {
                greatest = Math.max(greatest, base.get(client(i)));
                participants++;
            }
        }
        if (participants == 0) {
            throw new Federation.NoClientsException();
        }
        shift = -exponentAbove(greatest);
        total = 0;
        double sum = 0;
        for (int i = 0; i < planned(); i++) {
            if (!dropped.contains(client(i))) {
                double weight = base.get(client(i));
                total += Math.scalb(weight, shift);
                sum += weight;
            }
        }
        share = sum == all ? 1 : sum / all;
    }

    /** Returns the i-th client that takes part by the plan. */
    private int client(int i) {
        return cohort == null ? i : cohort[i];
    }

    /** Returns the smallest e with {@code value <= 2^e}. */
    private static int exponentAbove(double value) {
        int raised = value < Double.MIN_NORMAL ? 60 : 0;
        double normal = Math.scalb(value, raised);
        int exponent = Math.getExponent(normal);
        return (normal == Math.scalb(1.0, exponent) ? exponent : exponent + 1) - raised;
    }

    /** Returns the weights in the scale of the next mean. */
    double[] scaled(double[] unscaled) {
        var weights = new double[unscaled.length];
        Arrays.setAll(weights, k -> Math.scalb(unscaled[k], shift));
        return weights;
    }

    /** Returns the bound of the number of terms of a mean: faults do not change it. */
    long terms() {
        return planned();
    }

    /** Returns the sum of the scaled weights of all clients that take part. */
    double total() {
        return total;
    }

    /** Returns the share that those who take part have of the weights of all clients. */
    double share() {
        return share;
    }

    /** Returns the number of clients that take part. */
    int participants() {
        return participants;
    }
}
