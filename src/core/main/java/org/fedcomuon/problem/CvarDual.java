package org.fedcomuon.problem;

/** See {@link OuterFunction#cvarDual}. */
record CvarDual(double level, double smoothing) implements OuterFunction {
    CvarDual {
        if (!(level >= 0 && level < 1)) {
            throw new IllegalArgumentException("level = %s; from 0 to below 1 is possible".formatted(level));
        }
        if (!(smoothing >= 1e-6 && smoothing <= 1e6)) {
            throw new IllegalArgumentException("smoothing = %s; from 1e-6 to 1e6 is possible".formatted(smoothing));
        }
    }

    @Override
    public int dimension() {
        return 2;
    }

    @Override
    public double value(double[] y) {
        double above = y[0] - y[1];
        // Of the two forms of softplus, the one whose exponential does not overflow.
        double softplus = Math.max(above, 0) + smoothing * Math.log1p(Math.exp(-Math.abs(above) / smoothing));
        return y[1] + softplus / (1 - level);
    }

    @Override
    public void gradient(double[] y, double[] into) {
        double share = 1 / (1 + Math.exp((y[1] - y[0]) / smoothing));
        into[0] = share / (1 - level);
        into[1] = 1 - into[0];
    }
}
