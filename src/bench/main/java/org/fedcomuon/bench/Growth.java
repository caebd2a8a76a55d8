package org.fedcomuon.bench;

import java.util.Map;

/** The growth of one quantity with another. */
final class Growth {
    private Growth() {}

    /**
     * Returns the exponent p of the power law {@code y = c x^p} that fits best, the least-squares slope of the
     * logarithms.
     */
    static double exponent(Map<? extends Number, Double> points) {
        double n = points.size();
        double x = 0;
        double y = 0;
        double xx = 0;
        double xy = 0;
        for (var point : points.entrySet()) {
            double logX = Math.log(point.getKey().doubleValue());
            double logY = Math.log(point.getValue());
            x += logX;
            y += logY;
            xx += logX * logX;
            xy += logX * logY;
        }
        return (n * xy - x * y) / (n * xx - x * x);
    }
}
