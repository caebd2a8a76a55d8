package org.fedcomuon.federation;

import java.nio.file.Path;
import org.fedcomuon.method.ClientFault;

/**
 * Hears what a run does. Called by the threads that do the work, never two at once for one run: be quick, or hand over.
 * One that listens to several runs is called by several at once. An exception from a listener ends the run.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="listener"}
 */
public interface Listener {
    /** The run begins. Warnings may come before. */
    default void onStart(Start start) {}

    /** Something is allowed but doubtful: one sentence. Before the first step. */
    default void onWarning(String warning) {}

    /** A step is done; {@code step} have been done altogether. */
    default void onStep(long step) {}

    /** A round is done, with its exchange. */
    default void onRound(Round round) {}

    /** The average model has been evaluated. */
    default void onEvaluation(Evaluation evaluation) {}

    /** A client failed and was dropped from the rest of its round. */
    default void onClientFault(ClientFault fault) {}

    /** A checkpoint is on disk. */
    default void onCheckpoint(long step, Path file) {}

    /** The run has done its last step, or was stopped. Nothing comes after. */
    default void onEnd(Result result) {}

    /** The run has failed, by what {@link Federation#run} throws next. Nothing comes after. */
    default void onFailure(Throwable failure) {}
}
