package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Function;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.BoolOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/** A function of parameters in double precision, where finite differences tell right from wrong. */
record DoublePrecision(Layout layout, Function<Parameters, Tensor> function) {
    static Examples of(Examples examples) {
        return examples.inputs().is_floating_point()
                ? new Examples(examples.inputs().to(torch.ScalarType.Double), examples.labels())
                : examples; // tokens are numbers of words
    }

    Parameters parameters(double[] w) {
        Tensor flat = Tensor.create(w);
        var blocks = new ArrayList<Tensor>();
        for (int i = 0; i < layout.blocks().size(); i++) {
            Block block = layout.blocks().get(i);
            blocks.add(flat.narrow(0, layout.offset(i), block.size())
                    .view(block.shape().stream().mapToLong(side -> side).toArray())
                    .clone());
        }
        return new Parameters(layout, blocks);
    }

    double value(double[] w) {
        Torch.claim();
        try (var _ = new PointerScope()) {
            return function.apply(parameters(w)).item_double();
        }
    }

    double[] gradient(double[] w) {
        Torch.claim();
        try (var _ = new PointerScope()) {
            Parameters at = parameters(w).requireGradient();
            return flat(torch.grad(
                    new TensorVector(function.apply(at)),
                    at.vector(),
                    new TensorVector(),
                    new BoolOptional(),
                    false,
                    false));
        }
    }

    private double[] flat(TensorVector blocks) {
        var all = new double[Math.toIntExact(layout.length())];
        int at = 0;
        for (int i = 0; i < blocks.size(); i++) {
            Tensor block = blocks.get(i).contiguous();
            var values = new double[Math.toIntExact(block.numel())];
            block.data_ptr_double().get(values);
            System.arraycopy(values, 0, all, at, values.length);
            at += values.length;
        }
        return all;
    }

    /** {@code (gradient(w + h v) - gradient(w - h v)) / 2h}. */
    double[] curve(double[] w, double[] v) {
        double h = 1e-5;
        double[] above = gradient(moved(w, h, v));
        double[] below = gradient(moved(w, -h, v));
        for (int i = 0; i < above.length; i++) {
            above[i] = (above[i] - below[i]) / (2 * h);
        }
        return above;
    }

    /** The block, if any, whose part of {@code gradient} is not what finite differences of the value give. */
    List<String> blocksWithWrong(double[] gradient, double[] w) {
        var wrong = new ArrayList<String>();
        double h = 1e-5;
        for (int i = 0; i < layout.blocks().size(); i++) {
            double[] along = direction(i);
            double difference = (value(moved(w, h, along)) - value(moved(w, -h, along))) / (2 * h);
            double slope = dot(gradient, along);
            if (!(Math.abs(slope - difference) <= 1e-5 * Math.abs(difference) + 1e-9)) {
                wrong.add("%s: %s, but differences give %s"
                        .formatted(layout.blocks().get(i).name(), slope, difference));
            }
        }
        return wrong;
    }

    /** Of unit length, within one block. */
    private double[] direction(int block) {
        var random = new SplittableRandom(block);
        var along = new double[Math.toIntExact(layout.length())];
        int from = Math.toIntExact(layout.offset(block));
        double squares = 0;
        for (int i = from; i < from + layout.blocks().get(block).size(); i++) {
            along[i] = random.nextGaussian();
            squares += along[i] * along[i];
        }
        for (int i = 0; i < along.length; i++) {
            along[i] /= Math.sqrt(squares);
        }
        return along;
    }

    static double[] direction(Layout layout, long seed) {
        return new SplittableRandom(seed)
                .doubles(layout.length(), -1, 1)
                .map(x -> x / Math.sqrt(layout.length() / 3.0))
                .toArray();
    }

    static double[] moved(double[] w, double step, double[] along) {
        var to = new double[w.length];
        for (int i = 0; i < w.length; i++) {
            to[i] = w[i] + step * along[i];
        }
        return to;
    }

    static double dot(double[] a, double[] b) {
        double sum = 0;
        for (int i = 0; i < a.length; i++) {
            sum += a[i] * b[i];
        }
        return sum;
    }

    static double[] widened(float[] w) {
        var wide = new double[w.length];
        for (int i = 0; i < w.length; i++) {
            wide[i] = w[i];
        }
        return wide;
    }

    static float[] narrowed(double[] w) {
        var narrow = new float[w.length];
        for (int i = 0; i < w.length; i++) {
            narrow[i] = (float) w[i];
        }
        return narrow;
    }

    /** {@code ||a - b|| / ||b||}. */
    static double distance(double[] a, double[] b) {
        double[] difference = moved(a, -1, b);
        return Math.sqrt(dot(difference, difference) / dot(b, b));
    }
}
