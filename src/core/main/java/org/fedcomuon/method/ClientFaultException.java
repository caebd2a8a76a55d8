package org.fedcomuon.method;

import org.jspecify.annotations.Nullable;

/** A client failed and the policy is to fail with it, or no client is left in the round. */
public final class ClientFaultException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient ClientFault fault;

    ClientFaultException(ClientFault fault, @Nullable Throwable cause) {
        super(fault.toString(), cause);
        this.fault = fault;
    }

    /** Returns the client, the step and the reason. */
    public ClientFault fault() {
        return fault;
    }
}
