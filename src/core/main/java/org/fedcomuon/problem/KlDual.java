package org.fedcomuon.problem;

/** See {@link OuterFunction#klDual}. */
record KlDual(ExponentialRisk exponential) implements OuterFunction {
    @Override
    public int dimension() {
        return 2;
    }

    @Override
    public double value(double[] y) {
        return y[1] + exponential.lambda() * (exponential.value(y[0] - y[1]) - 1);
    }

    @Override
    public void gradient(double[] y, double[] into) {
        double weight = exponential.lambda() * exponential.derivative(y[0] - y[1]);
        into[0] = weight;
        into[1] = 1 - weight;
    }
}
