package org.fedcomuon.linalg;

import java.util.Random;

/**
 * A matrix {@code U diag(s) V^T} with known singular values and a known polar factor {@code U V^T}, made in double
 * precision by Gram-Schmidt, independently of everything it is used to test.
 */
final class Spectrum {
    private final double[] matrix;
    private final double[] polar;

    private Spectrum(double[] matrix, double[] polar) {
        this.matrix = matrix;
        this.polar = polar;
    }

    double[] matrix() {
        return matrix;
    }

    double[] polar() {
        return polar;
    }

    static Spectrum of(int rows, int cols, double[] singularValues, long seed) {
        int rank = singularValues.length;
        var random = new Random(seed);
        double[][] u = orthonormal(rank, rows, random);
        double[][] v = orthonormal(rank, cols, random);
        var matrix = new double[rows * cols];
        var polar = new double[rows * cols];
        for (int k = 0; k < rank; k++) {
            for (int i = 0; i < rows; i++) {
                for (int j = 0; j < cols; j++) {
                    double outer = u[k][i] * v[k][j];
                    matrix[i * cols + j] += singularValues[k] * outer;
                    polar[i * cols + j] += outer;
                }
            }
        }
        return new Spectrum(matrix, polar);
    }

    /** From {@code largest} down to {@code largest / condition}, evenly on a logarithmic scale. */
    static double[] logarithmic(int count, double largest, double condition) {
        var values = new double[count];
        for (int i = 0; i < count; i++) {
            values[i] = largest * Math.pow(condition, count == 1 ? 0 : -(double) i / (count - 1));
        }
        return values;
    }

    private static double[][] orthonormal(int count, int length, Random random) {
        var vectors = new double[count][length];
        for (int k = 0; k < count; k++) {
            for (int i = 0; i < length; i++) {
                vectors[k][i] = random.nextGaussian();
            }
            for (int pass = 0; pass < 2; pass++) { // twice is enough
                for (int before = 0; before < k; before++) {
                    double dot = dot(vectors[k], vectors[before]);
                    for (int i = 0; i < length; i++) {
                        vectors[k][i] -= dot * vectors[before][i];
                    }
                }
                double norm = Math.sqrt(dot(vectors[k], vectors[k]));
                for (int i = 0; i < length; i++) {
                    vectors[k][i] /= norm;
                }
            }
        }
        return vectors;
    }

    private static double dot(double[] a, double[] b) {
        double sum = 0;
        for (int i = 0; i < a.length; i++) {
            sum += a[i] * b[i];
        }
        return sum;
    }

    float[] floats() {
        var result = new float[matrix.length];
        for (int i = 0; i < result.length; i++) {
            result[i] = (float) matrix[i];
        }
        return result;
    }
}
