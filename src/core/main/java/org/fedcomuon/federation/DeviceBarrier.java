package org.fedcomuon.federation;

/** A barrier for the threads of all devices. When one of them fails, the others are released with {@link Aborted}. */
final class DeviceBarrier {
    /** Another device has failed; its own exception tells why. */
    static final class Aborted extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    private final int parties;
    private int waiting;
    private long generation;
    private boolean aborted;

    DeviceBarrier(int parties) {
        this.parties = parties;
    }

    /** Waits until all have called this; what any of them wrote before is visible to all afterwards. */
    synchronized void await() {
        if (aborted) {
            throw new Aborted();
        }
        if (++waiting == parties) {
            waiting = 0;
            generation++;
            notifyAll();
            return;
        }
        long mine = generation;
        boolean interrupted = false;
        while (generation == mine && !aborted) {
            try {
                wait();
            } catch (InterruptedException e) {
                interrupted = true; // the run is stopped by Federation.stop alone
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        if (generation == mine) {
            throw new Aborted();
        }
    }

    /** Returns whether a device has failed. */
    synchronized boolean isAborted() {
        return aborted;
    }

    synchronized void abort() {
        aborted = true;
        notifyAll();
    }
}
