package org.fedcomuon.device;

/** The coefficients of one Newton-Schulz step: {@code X = a X + b (X X^T) X + c (X X^T)^2 X}. */
public record SchulzStep(double a, double b, double c) {
    public SchulzStep {
        if (!Double.isFinite(a) || !Double.isFinite(b) || !Double.isFinite(c)) {
            throw new IllegalArgumentException("coefficients (%s, %s, %s) must be finite".formatted(a, b, c));
        }
    }
}
