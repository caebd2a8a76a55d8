package org.fedcomuon.federation;

import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.fedcomuon.method.ClientFault;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Notifies a run's listeners, log and flight recording, measures its time and holds its stop flag. Thread-safe. */
final class RunMonitor {
    private static final Logger LOG = LoggerFactory.getLogger(Federation.class);

    private final String name;
    private final List<Listener> listeners;
    private final Optional<RunLock> lock;
    private final long start = System.nanoTime();
    private RoundEvent round = new RoundEvent();
    private long faults;
    private volatile boolean stopping;

    RunMonitor(String name, List<Listener> listeners, long faults, Optional<RunLock> lock) {
        this.name = name;
        this.listeners = listeners;
        this.faults = faults;
        this.lock = lock;
        lock.ifPresent(held -> held.onLoss(this::stop)); // what is to be written next throws
    }

    /** Called before files are written, by listeners or otherwise. */
    void requireLock() {
        lock.ifPresent(RunLock::requireHeld);
    }

    synchronized void tell(Consumer<Listener> what) {
        listeners.forEach(what);
    }

    void started(Start begun) {
        LOG.info(
                "{}: {} from step {} of {}, {} clients on {}",
                name,
                begun.method(),
                begun.step(),
                begun.iterations(),
                begun.clients(),
                begun.devices());
        requireLock();
        tell(listener -> listener.onStart(begun));
        round.begin();
    }

    void warn(String warning) {
        LOG.warn("{}: {}", name, warning);
        tell(listener -> listener.onWarning(warning));
    }

    void round(Round done) {
        round.commit(name, done);
        round = new RoundEvent();
        round.begin();
        LOG.debug("{}: round {}, step {}, mean loss {}", name, done.number(), done.step(), done.meanLoss());
        tell(listener -> listener.onRound(done));
    }

    void evaluation(EvaluationEvent event, Evaluation done) {
        event.commit(name, done);
        if (!done.metrics().isEmpty()) { // an evaluator may keep what it finds to itself
            LOG.info("{}: step {}: {}", name, done.step(), done.metrics());
        }
        requireLock();
        tell(listener -> listener.onEvaluation(done));
    }

    void checkpoint(CheckpointEvent event, long step, Path file) {
        event.commit(name, step, file);
        LOG.debug("{}: step {} is in {}", name, step, file);
        tell(listener -> listener.onCheckpoint(step, file));
    }

    void fault(ClientFault fault) {
        synchronized (this) {
            faults++;
        }
        new ClientFaultEvent().commit(name, fault);
        LOG.warn("{}: {}; it is left out for the rest of the round", name, fault);
        tell(listener -> listener.onClientFault(fault));
    }

    void ended(Result result) {
        LOG.info("{}: {} after step {}", name, result.stopped() ? "stopped" : "done", result.step());
        requireLock();
        tell(listener -> listener.onEnd(result));
    }

    void failed(Throwable failure) {
        LOG.error("{}: failed: {}", name, failure.toString()); // the caller is thrown the exception itself
        tell(listener -> {
            try {
                listener.onFailure(failure);
            } catch (RuntimeException e) {
                failure.addSuppressed(e); // which would hide it
            }
        });
    }

    synchronized long faults() {
        return faults;
    }

    double seconds() {
        return (System.nanoTime() - start) * 1e-9;
    }

    void stop() {
        stopping = true;
    }

    boolean isStopping() {
        return stopping;
    }
}
