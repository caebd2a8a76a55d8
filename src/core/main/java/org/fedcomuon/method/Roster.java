package org.fedcomuon.method;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Which clients of a device take part in the current round. */
final class Roster {
    private final boolean[] active;
    private List<Run> runs;

    Roster(int clients) {
        active = new boolean[clients];
        Arrays.fill(active, true);
        runs = List.of(new Run(0, clients));
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
