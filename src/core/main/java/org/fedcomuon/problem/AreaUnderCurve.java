package org.fedcomuon.problem;

/** See {@link OuterFunction#areaUnderCurve}. */
record AreaUnderCurve(double margin) implements OuterFunction {
    AreaUnderCurve {
        if (!(margin > 0 && margin <= 1e6)) {
            throw new IllegalArgumentException("margin = %s; more than 0 and up to 1e6 is possible".formatted(margin));
        }
    }

    @Override
    public int dimension() {
        return 4;
    }

    @Override
    public double value(double[] y) {
        double lack = margin - y[0] + y[1];
        return (y[2] - y[0] * y[0]) + (y[3] - y[1] * y[1]) + lack * lack;
    }

    @Override
    public void gradient(double[] y, double[] into) {
        double lack = margin - y[0] + y[1];
        into[0] = -2 * y[0] - 2 * lack;
        into[1] = -2 * y[1] + 2 * lack;
        into[2] = 1;
        into[3] = 1;
    }
}
