package org.fedcomuon.experiment;

import java.util.List;

/**
 * Measurements of how the average gradient norm falls with the length of the run.
 *
 * @param clients K of the test-bed
 * @param curves one for each method and orthogonalizer
 */
public record RatesReport(int clients, List<Curve> curves) {
    public RatesReport {
        curves = List.copyOf(curves);
    }

    /**
     * One method with one orthogonalizer.
     *
     * @param theory the exponent that the theory gives
     * @param least the least slope that agrees with it
     * @param greatest the greatest slope that agrees with it
     */
    public record Curve(
            String method, String orthogonalizer, double theory, double least, double greatest, List<Run> runs) {
        public Curve {
            runs = List.copyOf(runs);
        }

        /** Returns the slope of the least-squares line through log T and the log of the mean over seeds. */
        public double slope() {
            double meanX = runs.stream().mapToDouble(Curve::x).average().orElse(Double.NaN);
            double meanY = runs.stream().mapToDouble(Curve::y).average().orElse(Double.NaN);
            double covariance = 0;
            double variance = 0;
            for (Run run : runs) {
                covariance += (x(run) - meanX) * (y(run) - meanY);
                variance += (x(run) - meanX) * (x(run) - meanX);
            }
            return covariance / variance;
        }

        /** Returns whether the slope agrees with the theory. */
        public boolean agrees() {
            return slope() >= least && slope() <= greatest;
        }

        private static double x(Run run) {
            return Math.log((double) run.iterations());
        }

        private static double y(Run run) {
            return Math.log(run.mean());
        }
    }

    /**
     * One length of run.
     *
     * @param iterations T
     * @param norms one per seed: the mean over all steps of the gradient norm at the average W
     */
    public record Run(long iterations, List<Double> norms) {
        public Run {
            norms = List.copyOf(norms);
        }

        /** Returns the mean over the seeds. */
        public double mean() {
            return norms.stream().mapToDouble(Double::doubleValue).average().orElse(Double.NaN);
        }
    }
}
