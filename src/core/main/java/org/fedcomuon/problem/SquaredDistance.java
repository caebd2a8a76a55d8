package org.fedcomuon.problem;

/** See {@link OuterFunction#squaredDistance}. */
record SquaredDistance(int half) implements OuterFunction {
    SquaredDistance {
        if (half < 1 || half > Integer.MAX_VALUE / 2) {
            throw new IllegalArgumentException(
                    "half = %d; from 1 to %d is possible".formatted(half, Integer.MAX_VALUE / 2));
        }
    }

    @Override
    public int dimension() {
        return 2 * half;
    }

    @Override
    public double value(double[] y) {
        double sum = 0;
        for (int i = 0; i < half; i++) {
            double difference = y[i] - y[half + i];
            sum += difference * difference;
        }
        return sum;
    }

    @Override
    public void gradient(double[] y, double[] into) {
        for (int i = 0; i < half; i++) {
            double slope = 2 * (y[i] - y[half + i]);
            into[i] = slope;
            into[half + i] = -slope;
        }
    }
}
