package org.fedcomuon.method;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.fedcomuon.problem.Sample;

/**
 * A method in double arrays and loops, written from its pseudo-code to be compared with. State variables have the names
 * that {@link Clients#state} has; a shared one has one row.
 */
abstract class ReferenceMethod<M extends Method> {
    final M method;
    final Testbed bed;
    final int n;
    final int d;
    final int clients;
    final double[][] w;
    final long[] innerDraws;
    final long[] outerDraws;
    private final long seed;
    private final double[] weights;
    private final boolean[] active;
    private final Map<String, double[][]> state = new LinkedHashMap<>();

    ReferenceMethod(M method, Testbed bed, long seed, double[] weights) {
        this.method = method;
        this.bed = bed;
        this.n = bed.n;
        this.d = bed.d;
        this.clients = bed.clients;
        this.seed = seed;
        this.weights = weights;
        innerDraws = new long[clients];
        outerDraws = new long[clients];
        active = new boolean[clients];
        Arrays.fill(active, true);
        w = each("W", n);
        for (double[] start : w) {
            System.arraycopy(bed.start(), 0, start, 0, n);
        }
    }

    void initialize() {}

    abstract void step(Method.Step t);

    final double[][] each(String name, int length) {
        var rows = new double[clients][length];
        state.put(name, rows);
        return rows;
    }

    final double[] shared(String name, int length) {
        var row = new double[length];
        state.put(name, new double[][] {row});
        return row;
    }

    final Map<String, double[][]> state() {
        return state;
    }

    final void admit(boolean[] takingPart) {
        System.arraycopy(takingPart, 0, active, 0, clients);
    }

    final boolean active(int k) {
        return active[k];
    }

    final Sample xi(int k) {
        return new Sample(seed, k, Sample.Stream.INNER, innerDraws[k]++);
    }

    final Sample zeta(int k) {
        return new Sample(seed, k, Sample.Stream.OUTER, outerDraws[k]++);
    }

    /** What a single-level method descends along: the gradient of a sample's g if d = 1, of its f(g) otherwise. */
    final double[] gradient(int k, double[] at) {
        var xi = xi(k);
        double[][] jacobian = bed.jacobian(k, xi, at);
        return d == 1 ? jacobian[0] : compose(jacobian, bed.outerGradient(k, zeta(k), bed.inner(k, xi, at)));
    }

    /** A loss and its gradient. */
    static final class Loss {
        final double value;
        final double[] gradient;

        Loss(double value, double[] gradient) {
            this.value = value;
            this.gradient = gradient;
        }
    }

    /** What a method compares clients by: a sample's g if d = 1, its f(g) otherwise. */
    final Loss loss(int k, double[] at) {
        var xi = xi(k);
        double[] g = bed.inner(k, xi, at);
        double[][] jacobian = bed.jacobian(k, xi, at);
        if (d == 1) {
            return new Loss(g[0], jacobian[0]);
        }
        var zeta = zeta(k);
        return new Loss(bed.outer(k, zeta, g), compose(jacobian, bed.outerGradient(k, zeta, g)));
    }

    static boolean sync(Method.Step t) {
        return (t.t() + 1) % t.tau() == 0;
    }

    /** The weighted mean over the clients that take part. */
    final double[] mean(double[][] x) {
        var sum = new double[x[0].length];
        double total = 0;
        for (int k = 0; k < clients; k++) {
            if (active[k]) {
                total += weights[k];
                for (int e = 0; e < sum.length; e++) {
                    sum[e] += weights[k] * x[k][e];
                }
            }
        }
        for (int e = 0; e < sum.length; e++) {
            sum[e] /= total;
        }
        return sum;
    }

    /** Everybody receives the mean over those that take part. */
    final void average(double[][] x) {
        send(mean(x), x);
    }

    static void send(double[] value, double[][] x) {
        for (double[] row : x) {
            System.arraycopy(value, 0, row, 0, value.length);
        }
    }

    /** The weight of those that take part, of all. */
    final double share() {
        double some = 0;
        double all = 0;
        for (int k = 0; k < clients; k++) {
            some += active[k] ? weights[k] : 0;
            all += weights[k];
        }
        return some / all;
    }

    /** {@code H (v kron I) = sum_i v_i H_i}. */
    final double[] compose(double[][] h, double[] v) {
        var m = new double[n];
        for (int i = 0; i < d; i++) {
            for (int e = 0; e < n; e++) {
                m[e] += v[i] * h[i][e];
            }
        }
        return m;
    }

    /** {@code y = a x + b y}. */
    static void combine(double a, double[] x, double b, double[] y) {
        for (int e = 0; e < y.length; e++) {
            y[e] = a * x[e] + b * y[e];
        }
    }
}
