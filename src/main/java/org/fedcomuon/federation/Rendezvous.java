package org.fedcomuon.federation;

/** Where the threads of all devices wait for each other. One that fails sends the others home. */
final class Rendezvous {
    /** Another device has failed; its own exception tells why. */
    static final class Aborted extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    private final int parties;
    private int waiting;
    private long meeting;
    private boolean aborted;

    Rendezvous(int parties) {
        this.parties = parties;
    }

    /** Returns when all have come; what any did before is visible to all after. */
    synchronized void await() {
        if (aborted) {
            throw new Aborted();
        }
        if (++waiting == parties) {
            waiting = 0;
            meeting++;
            notifyAll();
            return;
        }
        long mine = meeting;
        boolean interrupted = false;
        while (meeting == mine && !aborted) {
            try {
                wait();
            } catch (InterruptedException e) {
                interrupted = true; // the run is stopped by Federation.stop alone
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        if (meeting == mine) {
            throw new Aborted();
        }
    }

    synchronized void abort() {
        aborted = true;
        notifyAll();
    }
}
