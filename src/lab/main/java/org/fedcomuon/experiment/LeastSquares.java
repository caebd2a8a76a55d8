package org.fedcomuon.experiment;

import java.util.List;

/** Small systems of linear equations in double precision. */
final class LeastSquares {
    private LeastSquares() {}

    /**
     * Returns the w that minimises the sum over all k of {@code |A_k w - b_k|^2}, by the normal equations.
     *
     * @throws ConfigurationException when there are several
     */
    static double[] solve(List<double[][]> a, List<double[]> b) {
        int n = a.getFirst()[0].length;
        var system = new double[n][n + 1];
        for (int k = 0; k < a.size(); k++) {
            for (int row = 0; row < a.get(k).length; row++) {
                double[] slope = a.get(k)[row];
                for (int i = 0; i < n; i++) {
                    for (int j = 0; j < n; j++) {
                        system[i][j] += slope[i] * slope[j];
                    }
                    system[i][n] += slope[i] * b.get(k)[row];
                }
            }
        }
        for (int i = 0; i < n; i++) {
            int pivot = i;
            for (int j = i + 1; j < n; j++) {
                pivot = Math.abs(system[j][i]) > Math.abs(system[pivot][i]) ? j : pivot;
            }
            double[] swapped = system[i];
            system[i] = system[pivot];
            system[pivot] = swapped;
            if (Math.abs(system[i][i]) < 1e-12) {
                throw new ConfigurationException(
                        "the features do not determine the values: there are several solutions");
            }
            for (int j = i + 1; j < n; j++) {
                double factor = system[j][i] / system[i][i];
                for (int column = i; column <= n; column++) {
                    system[j][column] -= factor * system[i][column];
                }
            }
        }
        var w = new double[n];
        for (int i = n - 1; i >= 0; i--) {
            double sum = system[i][n];
            for (int j = i + 1; j < n; j++) {
                sum -= system[i][j] * w[j];
            }
            w[i] = sum / system[i][i];
        }
        return w;
    }
}
