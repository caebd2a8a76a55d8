package org.fedcomuon.model;

/**
 * How the gradients of the clients of a device are computed. Both ways agree up to rounding. Together, the bits of a
 * client may depend on how many clients share its device; per client they do not.
 */
public enum Gradients {
    /** Together on a GPU that libtorch computes on, per client elsewhere: the faster way. */
    AUTO,
    /**
     * By one backward pass for all clients of a device, with as many operations of libtorch as for one client. A
     * network that does not {@linkplain Network#takesSeveralClients take several clients} is differentiated per client,
     * which is logged once.
     */
    TOGETHER,
    /** By one backward pass for each client: on worker threads on the CPU, one after the other on a GPU. */
    PER_CLIENT
}
