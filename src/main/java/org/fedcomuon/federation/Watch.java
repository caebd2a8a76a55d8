package org.fedcomuon.federation;

import java.lang.System.Logger.Level;
import java.util.List;
import java.util.function.Consumer;
import org.fedcomuon.method.ClientFault;

/** The outside of a run: its listeners, its clock, and the wish that it stop. Of all threads. */
final class Watch {
    private static final System.Logger LOG = System.getLogger(Federation.class.getName());

    private final List<Listener> listeners;
    private final long start = System.nanoTime();
    private long faults;
    private volatile boolean stopping;

    Watch(List<Listener> listeners, long faults) {
        this.listeners = listeners;
        this.faults = faults;
    }

    synchronized void tell(Consumer<Listener> what) {
        listeners.forEach(what);
    }

    void warn(String warning) {
        LOG.log(Level.WARNING, warning);
        tell(listener -> listener.onWarning(warning));
    }

    void fault(ClientFault fault) {
        synchronized (this) {
            faults++;
        }
        LOG.log(Level.WARNING, "{0}; it is left out for the rest of the round", fault);
        tell(listener -> listener.onClientFault(fault));
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
