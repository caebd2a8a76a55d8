package org.fedcomuon.device;

import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;

/** How a parameter that is not a matrix moves along its momentum m. */
public enum StepRule {
    /** {@code w -= eta m}. */
    PLAIN(FedComuonNative.FCM_STEP_PLAIN()),
    /** {@code w -= eta m / ||m||}, the vector's counterpart of an orthogonalized step; zero m is no step. */
    NORMALIZED(FedComuonNative.FCM_STEP_NORMALIZED());

    private final int code;

    StepRule(int code) {
        this.code = code;
    }

    int code() {
        return code;
    }
}
