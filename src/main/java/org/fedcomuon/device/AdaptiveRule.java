package org.fedcomuon.device;

import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;

/** How the server of FedOpt (Reddi et al., 2021) keeps the second moment v of the clients' mean change. */
public enum AdaptiveRule {
    /** {@code v = beta2 v + (1-beta2) delta^2}. */
    ADAM(FedComuonNative.FCM_ADAM()),
    /** {@code v = v - (1-beta2) delta^2 sign(v - delta^2)}: moves by no more than the square of the change itself. */
    YOGI(FedComuonNative.FCM_YOGI());

    private final int code;

    AdaptiveRule(int code) {
        this.code = code;
    }

    int code() {
        return code;
    }
}
