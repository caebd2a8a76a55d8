package org.fedcomuon.cli;

import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.federation.Start;
import org.fedcomuon.method.ClientFault;

/** Several listeners where one is asked for. */
record Audience(List<Listener> listeners) implements Listener {
    Audience {
        listeners = List.copyOf(listeners);
    }

    private void tell(Consumer<Listener> what) {
        listeners.forEach(what);
    }

    @Override
    public void onStart(Start start) {
        tell(listener -> listener.onStart(start));
    }

    @Override
    public void onWarning(String warning) {
        tell(listener -> listener.onWarning(warning));
    }

    @Override
    public void onStep(long step) {
        tell(listener -> listener.onStep(step));
    }

    @Override
    public void onRound(Round round) {
        tell(listener -> listener.onRound(round));
    }

    @Override
    public void onEvaluation(Evaluation evaluation) {
        tell(listener -> listener.onEvaluation(evaluation));
    }

    @Override
    public void onClientFault(ClientFault fault) {
        tell(listener -> listener.onClientFault(fault));
    }

    @Override
    public void onCheckpoint(long step, Path file) {
        tell(listener -> listener.onCheckpoint(step, file));
    }

    @Override
    public void onEnd(Result result) {
        tell(listener -> listener.onEnd(result));
    }

    @Override
    public void onFailure(Throwable failure) {
        tell(listener -> listener.onFailure(failure));
    }
}
