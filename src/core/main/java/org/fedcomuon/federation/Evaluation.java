package org.fedcomuon.federation;

import java.io.Serializable;
import java.util.List;
import java.util.Map;

/**
 * Metrics of the average model. Serializable, so that processes of the same version can send it.
 *
 * <p>Immutable.
 *
 * @param step steps done since the beginning
 * @param round rounds done since the beginning
 * @param metrics by name, in the evaluator's order
 * @param clients the metrics of each client, in the order of the clients; empty if the evaluator does not know them
 * @param communicatedBytes as in {@link Round}
 * @param seconds of this run so far, evaluations included
 * @param stepSeconds in steps, of the slowest device
 * @param gradientSeconds as in {@link Round}
 * @param orthogonalizeSeconds as in {@link Round}
 * @param exchangeSeconds as in {@link Round}
 * @param evaluateSeconds in the evaluator, this evaluation included
 */
public record Evaluation(
        long step,
        long round,
        Map<String, Double> metrics,
        List<Map<String, Double>> clients,
        long communicatedBytes,
        double seconds,
        double stepSeconds,
        double gradientSeconds,
        double orthogonalizeSeconds,
        double exchangeSeconds,
        double evaluateSeconds)
        implements Serializable {
    /** Copies. */
    public Evaluation {
        metrics = Evaluator.Scores.copy(metrics);
        clients = clients.stream().map(Evaluator.Scores::copy).toList();
    }

    /** An {@link Evaluator} threw a checked exception. */
    public static final class FailedException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        FailedException(long step, Exception cause) {
            super("the evaluation at step %d failed: %s".formatted(step, cause), cause);
        }
    }
}
