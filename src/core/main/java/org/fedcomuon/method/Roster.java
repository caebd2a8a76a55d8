package org.fedcomuon.method;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Which of the clients that are on a device take part. */
final class Roster {
    private boolean[] active = {};
    private List<Run> runs = List.of();

    /** Another number of clients is here, and all take part. */
    void seat(int clients) {
        active = new boolean[clients];
        Arrays.fill(active, true);
        changed();
    }

    void set(boolean[] takingPart) {
        System.arraycopy(takingPart, 0, active, 0, active.length);
        changed();
    }

    void drop(int client) {
        active[client] = false;
        changed();
    }

    private void changed() {
        var found = new ArrayList<Run>();
        for (int k = 0; k < active.length; k++) {
            if (active[k]) {
                int first = k;
                while (k < active.length && active[k]) {
                    k++;
                }
                found.add(new Run(first, k - first));
            }
        }
        runs = List.copyOf(found);
    }

    boolean isActive(int client) {
        return active[client];
    }

    List<Run> runs() {
        return runs;
    }
}
