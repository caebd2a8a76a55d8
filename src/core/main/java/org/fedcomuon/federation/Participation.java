package org.fedcomuon.federation;

import java.util.Arrays;
import java.util.SplittableRandom;

/** Who takes part in a round: a share of the clients, drawn without replacement from the seed and the round alone. */
record Participation(double share, int clients, long seed) {
    int count() {
        return (int) Math.max(1, Math.round(share * clients));
    }

    boolean[] of(long round) {
        var takesPart = new boolean[clients];
        int count = count();
        if (count == clients) {
            Arrays.fill(takesPart, true);
            return takesPart;
        }
        var random = new SplittableRandom(seed * 0x9E3779B97F4A7C15L + round);
        int[] order = new int[clients];
        Arrays.setAll(order, k -> k);
        for (int i = 0; i < count; i++) {
            int j = i + random.nextInt(clients - i);
            int chosen = order[j];
            order[j] = order[i];
            takesPart[chosen] = true;
        }
        return takesPart;
    }
}
