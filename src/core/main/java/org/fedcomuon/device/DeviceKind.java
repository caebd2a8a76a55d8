package org.fedcomuon.device;

import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;

/** The kind of a device. */
enum DeviceKind {
    CPU("cpu", FedComuonNative.FCM_CPU()),
    CUDA("cuda", FedComuonNative.FCM_CUDA()),
    /** CUDA's kernels, executed on the CPU: for tests. */
    CUDASIM("cudasim", FedComuonNative.FCM_CUDASIM());

    private final String prefix;
    private final int code;

    DeviceKind(String prefix, int code) {
        this.prefix = prefix;
        this.code = code;
    }

    /** Returns what its names begin with. */
    String prefix() {
        return prefix;
    }

    int code() {
        return code;
    }

    static DeviceKind of(int code) {
        for (DeviceKind kind : values()) {
            if (kind.code == code) {
                return kind;
            }
        }
        throw new IllegalArgumentException("no device kind " + code);
    }

    static DeviceKind of(String prefix) {
        for (DeviceKind kind : values()) {
            if (kind.prefix.equals(prefix)) {
                return kind;
            }
        }
        throw new IllegalArgumentException("no device kind " + prefix);
    }
}
