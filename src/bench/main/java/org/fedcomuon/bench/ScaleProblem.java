package org.fedcomuon.bench;

import java.util.SplittableRandom;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;

/**
 * A problem with any number of clients and components of g, and oracles of almost no cost: {@code g_i(W) = <A_i, W> + k
 * / K} and {@code f(y) = |y|^2 / 2}. The time of a run is then the time of the federation and the kernels.
 */
final class ScaleProblem implements Problem {
    private final Layout layout;
    private final int clients;
    private final float[][] gradients; // A, of all clients

    ScaleProblem(int rows, int cols, int clients, int d) {
        this(Layout.of(Block.matrix("W", rows, cols)), clients, d);
    }

    ScaleProblem(Layout layout, int clients, int d) {
        this.layout = layout;
        this.clients = clients;
        var random = new SplittableRandom(d);
        gradients = new float[d][Math.toIntExact(layout.length())];
        for (float[] gradient : gradients) {
            for (int i = 0; i < gradient.length; i++) {
                gradient[i] = (float) random.nextGaussian(0, 1 / Math.sqrt(gradient.length));
            }
        }
    }

    @Override
    public Layout layout() {
        return layout;
    }

    @Override
    public int innerDimension() {
        return gradients.length;
    }

    @Override
    public int clients() {
        return clients;
    }

    @Override
    public Client client(int k) {
        double offset = (double) k / clients;
        return new Client() {
            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                Floats weights = w.values();
                for (int i = 0; i < gradients.length; i++) {
                    float[] gradient = gradients[i];
                    double sum = offset;
                    for (int j = 0; j < gradient.length; j++) {
                        sum += gradient[j] * weights.get(j);
                    }
                    value.set(i, sum);
                    jacobian.component(i).values().set(gradient);
                }
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) {
                for (long i = 0; i < y.length(); i++) {
                    gradient.set(i, y.get(i));
                }
            }
        };
    }
}
