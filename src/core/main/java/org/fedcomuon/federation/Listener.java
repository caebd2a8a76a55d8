package org.fedcomuon.federation;

import java.nio.file.Path;
import org.fedcomuon.method.ClientFault;

/**
 * Observes a run. Called by the threads that do the work, never by two at once for one run; it should return quickly. A
 * listener of several runs may be called by several threads at once. An exception from a listener ends the run.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="listener"}
 */
public interface Listener {
    /** The run begins. Warnings may precede it. */
    default void onStart(Start start) {}

    /** A setting is allowed but questionable; one sentence. Called before the first step. */
    default void onWarning(String warning) {}

    /** A step is done; {@code step} steps have been done in total. */
    default void onStep(long step) {}

    /** A round is done, with its exchange. */
    default void onRound(Round round) {}

    /** The average model has been evaluated. */
    default void onEvaluation(Evaluation evaluation) {}

    /** A client failed and was dropped from the rest of its round. */
    default void onClientFault(ClientFault fault) {}

    /** A checkpoint is on disk. */
    default void onCheckpoint(long step, Path file) {}

    /** The run has done its last step, or was stopped. This is the last call. */
    default void onEnd(Result result) {}

    /** The run has failed with the exception that {@link Federation#run} will throw. This is the last call. */
    default void onFailure(Throwable failure) {}
}
