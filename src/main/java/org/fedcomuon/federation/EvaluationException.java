package org.fedcomuon.federation;

/** An {@link Evaluator} threw a checked exception. */
public final class EvaluationException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    EvaluationException(long step, Exception cause) {
        super("the evaluation at step %d failed: %s".formatted(step, cause), cause);
    }
}
