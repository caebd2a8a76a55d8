package org.fedcomuon.internal;

/**
 * STREAM's triad, the yardstick of memory bandwidth. Every device implements it for benchmarks; it is no part of the
 * API of devices.
 */
public interface StreamTriad {
    /**
     * Computes {@code a = b + s c} on {@code n} floats each.
     *
     * @param b an address in the device's memory, as are {@code c} and {@code a}
     * @param nonTemporal whether a CPU writes past its caches
     */
    void triad(long n, float s, long b, long c, long a, boolean nonTemporal);
}
