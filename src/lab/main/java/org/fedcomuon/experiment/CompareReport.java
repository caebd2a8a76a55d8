package org.fedcomuon.experiment;

import java.util.List;

/**
 * A comparison of ways to orthogonalize a matrix: exactly, by its singular value decomposition, or by Newton-Schulz
 * iterations.
 *
 * @param title the title of the comparison
 * @param device the device that was measured
 * @param library the library for products and decompositions
 * @param entries one per matrix and method
 * @param curves the effect of each set of coefficients on a singular value
 */
public record CompareReport(String title, String device, String library, List<Entry> entries, List<Curve> curves) {
    public CompareReport {
        entries = List.copyOf(entries);
        curves = List.copyOf(curves);
    }

    /**
     * The result O of one method on one matrix M. Measures of O may be NaN or infinite, because an iteration can
     * diverge.
     *
     * @param rows of M
     * @param cols of M
     * @param condition largest over smallest singular value of M
     * @param method exact, newton-schulz or gram
     * @param coefficients which polynomials the iteration applies, empty for exact
     * @param path which code ran
     * @param seconds per call
     * @param orthogonalityError Frobenius norm of O O^T - I, over the root of the shorter side
     * @param alignment inner product of M and O, over the nuclear norm of M
     * @param smallestSingularValue of O
     * @param largestSingularValue of O
     */
    public record Entry(
            int rows,
            int cols,
            double condition,
            String method,
            String coefficients,
            String path,
            double seconds,
            double orthogonalityError,
            double alignment,
            double smallestSingularValue,
            double largestSingularValue) {
        public Entry {
            if (rows < 1 || cols < 1) {
                throw new IllegalArgumentException("a matrix of " + rows + " x " + cols);
            }
            if (!(condition >= 1)) {
                throw new IllegalArgumentException("a condition number of " + condition);
            }
            if (!(seconds >= 0 && seconds < Double.POSITIVE_INFINITY)) {
                throw new IllegalArgumentException("a time of " + seconds + " s");
            }
        }

        /** Returns the method, with its coefficients if it has any. */
        public String label() {
            return coefficients.isEmpty() ? method : method + " " + coefficients;
        }
    }

    /**
     * Singular values before and after all steps of an iteration.
     *
     * @param coefficients which polynomials it applies
     * @param input singular values, ascending
     * @param output the singular values after the iteration
     */
    public record Curve(String coefficients, List<Double> input, List<Double> output) {
        public Curve {
            input = List.copyOf(input);
            output = List.copyOf(output);
            if (input.size() != output.size()) {
                throw new IllegalArgumentException(input.size() + " values in, " + output.size() + " out");
            }
        }
    }
}
