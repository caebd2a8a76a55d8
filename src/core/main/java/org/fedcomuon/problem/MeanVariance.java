package org.fedcomuon.problem;

/** See {@link OuterFunction#meanVariance}. */
record MeanVariance(double aversion) implements OuterFunction {
    MeanVariance {
        if (!(aversion >= 0 && aversion <= 1e6)) {
            throw new IllegalArgumentException("aversion = %s; from 0 to 1e6 is possible".formatted(aversion));
        }
    }

    @Override
    public int dimension() {
        return 2;
    }

    @Override
    public double value(double[] y) {
        return -y[0] + aversion * (y[1] - y[0] * y[0]);
    }

    @Override
    public void gradient(double[] y, double[] into) {
        into[0] = -1 - 2 * aversion * y[0];
        into[1] = aversion;
    }
}
