package org.fedcomuon.experiment;

import java.util.Collection;
import java.util.Comparator;

/** Messages for unknown names, with the name that may have been meant. */
final class Nearest {
    private Nearest() {}

    /** Returns a message that names what was not found, and the nearest known name, or else all known names. */
    static String unknown(String what, String name, Collection<String> known) {
        String nearest = known.stream()
                .min(Comparator.comparingInt(other -> distance(name, other)))
                .orElseThrow();
        String hint = distance(name, nearest) <= Math.max(2, name.length() / 3)
                ? "did you mean '%s'?".formatted(nearest)
                : "these are: %s".formatted(String.join(", ", known));
        return "no %s is called '%s'; %s".formatted(what, name, hint);
    }

    /** Returns the Levenshtein distance: the number of letters to insert, delete or replace. */
    private static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            row[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(replaced, 1 + Math.min(row[j], row[j - 1]));
            }
        }
        return row[b.length()];
    }
}
