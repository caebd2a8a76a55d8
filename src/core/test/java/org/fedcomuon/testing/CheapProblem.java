package org.fedcomuon.testing;

import java.util.Collections;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;

/** A problem whose gradients cost little, for tests that count what devices are given. */
public final class CheapProblem {
    private CheapProblem() {}

    /** Returns one with any parameters, for so many clients that are all the same. */
    public static Problem of(Layout layout, int clients) {
        Loss loss = (xi, w, gradient) -> {
            Floats values = gradient.values();
            for (long i = 0; i < values.length(); i++) {
                values.set(i, w.values().get(i) + 0.1 * Math.cos((double) i));
            }
            return 1;
        };
        return Problem.ofLosses(layout, Collections.nCopies(clients, loss), Risk.mean());
    }
}
