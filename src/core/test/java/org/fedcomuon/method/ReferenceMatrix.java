package org.fedcomuon.method;

import java.util.Arrays;

/** Small matrices in double precision, row-major, by loops: what the fast paths are compared with. */
final class ReferenceMatrix {
    private ReferenceMatrix() {}

    /** {@code sum_j s_j u_j v_j^T}, singular values falling. */
    static final class Svd {
        final double[][] u;
        final double[] s;
        final double[][] v;

        private Svd(double[][] u, double[] s, double[][] v) {
            this.u = u;
            this.s = s;
            this.v = v;
        }

        /** {@code sum_{j < rank} weights_j u_j v_j^T}. */
        private double[] sum(int rank, double[] weights, int rows, int cols) {
            var x = new double[rows * cols];
            for (int j = 0; j < rank; j++) {
                for (int r = 0; r < rows; r++) {
                    for (int c = 0; c < cols; c++) {
                        x[r * cols + c] += weights[j] * u[j][r] * v[j][c];
                    }
                }
            }
            return x;
        }
    }

    /** One-sided Jacobi: columns are rotated in pairs until all are orthogonal. */
    static Svd svd(double[] m, int rows, int cols) {
        if (rows < cols) {
            Svd turned = svd(transpose(m, rows, cols), cols, rows);
            return new Svd(turned.v, turned.s, turned.u);
        }
        var a = new double[cols][rows]; // columns of M V
        var v = new double[cols][cols]; // columns of V
        for (int j = 0; j < cols; j++) {
            v[j][j] = 1;
            for (int r = 0; r < rows; r++) {
                a[j][r] = m[r * cols + j];
            }
        }
        double nothing = 1e-30 * dot(m, m); // squares of columns that are rounding
        boolean rotated = true;
        for (int sweep = 0; rotated; sweep++) {
            if (sweep > 60) {
                throw new AssertionError("no convergence");
            }
            rotated = false;
            for (int p = 0; p < cols; p++) {
                for (int q = p + 1; q < cols; q++) {
                    double pq = dot(a[p], a[q]);
                    double pp = dot(a[p], a[p]);
                    double qq = dot(a[q], a[q]);
                    if (pp > nothing && qq > nothing && Math.abs(pq) > 1e-15 * Math.sqrt(pp * qq)) {
                        rotated = true;
                        double zeta = (qq - pp) / (2 * pq);
                        double tangent = Math.copySign(1, zeta) / (Math.abs(zeta) + Math.hypot(1, zeta));
                        double cosine = 1 / Math.hypot(1, tangent);
                        rotate(a[p], a[q], cosine, cosine * tangent);
                        rotate(v[p], v[q], cosine, cosine * tangent);
                    }
                }
            }
        }
        var s = new double[cols];
        for (int j = 0; j < cols; j++) {
            s[j] = norm(a[j]);
            for (int r = 0; r < rows && s[j] > 0; r++) {
                a[j][r] /= s[j];
            }
        }
        for (int j = 0; j < cols; j++) {
            for (int i = j + 1; i < cols; i++) {
                if (s[i] > s[j]) {
                    double size = s[i];
                    s[i] = s[j];
                    s[j] = size;
                    swap(a, i, j);
                    swap(v, i, j);
                }
            }
        }
        return new Svd(a, s, v);
    }

    private static void rotate(double[] x, double[] y, double cosine, double sine) {
        for (int i = 0; i < x.length; i++) {
            double old = x[i];
            x[i] = cosine * old - sine * y[i];
            y[i] = sine * old + cosine * y[i];
        }
    }

    private static void swap(double[][] x, int i, int j) {
        double[] row = x[i];
        x[i] = x[j];
        x[j] = row;
    }

    /** {@code U V^T} of the compact decomposition: what belongs to a singular value of zero is left out. */
    static double[] polar(double[] m, int rows, int cols) {
        Svd svd = svd(m, rows, cols);
        int rank = 0;
        while (rank < svd.s.length && svd.s[rank] > 1e-10 * svd.s[0]) {
            rank++;
        }
        var ones = new double[rank];
        Arrays.fill(ones, 1);
        return svd.sum(rank, ones, rows, cols);
    }

    /** The nearest matrix of this rank. */
    static double[] lowRank(double[] m, int rows, int cols, int rank) {
        Svd svd = svd(m, rows, cols);
        return svd.sum(rank, svd.s, rows, cols);
    }

    /** Five steps of {@code X = a X + b (X X^T) X + c (X X^T)^2 X} from {@code M / ||M||}. */
    static double[] newtonSchulz(double[] m, int rows, int cols) {
        double size = norm(m);
        double[] x = m.clone();
        for (int i = 0; i < x.length && size > 0; i++) {
            x[i] /= size;
        }
        for (int step = 0; step < 5; step++) {
            double[] gram = multiply(x, transpose(x, rows, cols), rows, cols, rows);
            double[] first = multiply(gram, x, rows, rows, cols);
            double[] second = multiply(gram, first, rows, rows, cols);
            for (int i = 0; i < x.length; i++) {
                x[i] = 3.4445 * x[i] - 4.7750 * first[i] + 2.0315 * second[i];
            }
        }
        return x;
    }

    static double[] multiply(double[] x, double[] y, int rows, int inner, int cols) {
        var product = new double[rows * cols];
        for (int r = 0; r < rows; r++) {
            for (int i = 0; i < inner; i++) {
                double factor = x[r * inner + i];
                for (int c = 0; c < cols; c++) {
                    product[r * cols + c] += factor * y[i * cols + c];
                }
            }
        }
        return product;
    }

    static double[] transpose(double[] m, int rows, int cols) {
        var turned = new double[m.length];
        for (int r = 0; r < rows; r++) {
            for (int c = 0; c < cols; c++) {
                turned[c * rows + r] = m[r * cols + c];
            }
        }
        return turned;
    }

    static double dot(double[] x, double[] y) {
        double sum = 0;
        for (int i = 0; i < x.length; i++) {
            sum += x[i] * y[i];
        }
        return sum;
    }

    static double norm(double[] x) {
        return Math.sqrt(dot(x, x));
    }

    static double distance(double[] x, double[] y) {
        var difference = new double[x.length];
        for (int i = 0; i < x.length; i++) {
            difference[i] = x[i] - y[i];
        }
        return norm(difference);
    }
}
