package org.fedcomuon.method;

import java.util.Arrays;
import java.util.List;
import org.fedcomuon.device.Device;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.ExactSvd;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * The update of the Muon methods in double arrays, with its options as their papers have them: AdamW by corrected
 * moments, Nesterov by the gradient, decay by a product, heads one by one.
 */
final class ReferenceMuon {
    private final Muon muon;
    private final Layout layout;
    private final int n;
    private final boolean atServer;
    private double[][] gradients = {};
    private double[][] first = {};
    private double[][] second = {};
    private double[][] steps = {};

    /** Its state is the method's: of each client, or moments of the server. */
    ReferenceMuon(Muon muon, ReferenceMethod<?> method, boolean atServer) {
        this.muon = muon;
        this.layout = method.bed.layout;
        this.n = method.n;
        this.atServer = atServer;
        if (muon.nesterov() || (muon.adamW().isPresent() && !atServer)) {
            gradients = method.each("last gradient", n);
        }
        if (muon.adamW().isPresent()) {
            int size = 0;
            for (Block block : layout.blocks()) {
                size += adaptive(block) ? Math.toIntExact(block.size()) : 0;
            }
            first = atServer ? new double[][] {method.shared("AdamW m", size)} : method.each("AdamW m", size);
            second = atServer ? new double[][] {method.shared("AdamW v", size)} : method.each("AdamW v", size);
            steps = atServer ? new double[][] {method.shared("AdamW steps", 1)} : method.each("AdamW steps", 1);
        }
    }

    private boolean adaptive(Block block) {
        return muon.adamW().isPresent()
                && (block.update() == Block.Update.VECTOR
                        || named(muon.adamW().get().matrices(), block));
    }

    /** A star at the beginning or at the end, or neither. */
    private static boolean named(List<String> patterns, Block block) {
        return patterns.stream().anyMatch(pattern -> {
            String part = pattern.replace("*", "");
            boolean begins = pattern.startsWith("*");
            boolean ends = pattern.endsWith("*");
            String name = block.name();
            if (begins && ends) {
                return name.contains(part);
            }
            return begins ? name.endsWith(part) : ends ? name.startsWith(part) : name.equals(part);
        });
    }

    void observe(int k, double[] gradient) {
        if (gradients.length > 0) {
            gradients[k] = replace(gradients[k], gradient);
        }
    }

    private static double[] replace(double[] to, double[] from) {
        System.arraycopy(from, 0, to, 0, to.length);
        return to;
    }

    /** {@code keep M + fresh g} with Nesterov, M without. */
    double[] ahead(int k, double fresh, double keep, double[] m) {
        double[] along = m.clone();
        if (muon.nesterov()) {
            ReferenceMethod.combine(fresh, gradients[k], keep, along);
        }
        return along;
    }

    /** One step of client k, or of the server, along m. */
    void step(int k, double eta, double[] m, double[] w) {
        int at = 0;
        if (muon.adamW().isPresent()) {
            steps[k][0]++;
        }
        for (int position = 0; position < layout.blocks().size(); position++) {
            Block block = layout.blocks().get(position);
            int from = Math.toIntExact(layout.offset(position));
            int size = Math.toIntExact(block.size());
            double rate = eta * rate(block);
            for (int e = from; e < from + size; e++) {
                w[e] *= 1 - rate * muon.weightDecay();
            }
            if (adaptive(block)) {
                double[] gradient = atServer ? m : gradients[k];
                adam(k, rate, Arrays.copyOfRange(gradient, from, from + size), at, from, w);
                at += size;
            } else {
                double[] along = direction(block, Arrays.copyOfRange(m, from, from + size));
                for (int e = 0; e < size; e++) {
                    w[from + e] -= rate * along[e];
                }
            }
        }
    }

    private double rate(Block block) {
        double kind = adaptive(block)
                ? muon.adamW().get().rate()
                : block.update() == Block.Update.VECTOR ? muon.vectorRate() : 1;
        return kind
                * muon.blockRates().stream()
                        .filter(rate -> named(List.of(rate.blocks()), block))
                        .mapToDouble(Muon.BlockRate::rate)
                        .findFirst()
                        .orElse(1);
    }

    private void adam(int k, double rate, double[] gradient, int at, int from, double[] w) {
        Muon.AdamW adam = muon.adamW().get();
        double t = steps[k][0];
        for (int e = 0; e < gradient.length; e++) {
            double g = gradient[e];
            first[k][at + e] = adam.beta1() * first[k][at + e] + (1 - adam.beta1()) * g;
            second[k][at + e] = adam.beta2() * second[k][at + e] + (1 - adam.beta2()) * g * g;
            double mean = first[k][at + e] / (1 - Math.pow(adam.beta1(), t));
            double square = second[k][at + e] / (1 - Math.pow(adam.beta2(), t));
            w[from + e] -= rate * mean / (Math.sqrt(square) + adam.epsilon());
        }
    }

    /** polar(m) of a matrix, or of each of its heads, times its scale; of a vector what its rule makes of it. */
    private double[] direction(Block block, double[] m) {
        if (block.update() == Block.Update.VECTOR) {
            double norm = ReferenceMatrix.norm(m);
            boolean plain = muon.vectorRule() == Device.StepRule.PLAIN;
            double factor = plain ? 1 : norm == 0 ? 0 : 1 / norm;
            return Arrays.stream(m).map(value -> factor * value).toArray();
        }
        int heads = named(muon.heads().blocks(), block) ? muon.heads().count() : 1;
        int rows = block.rows() / heads;
        var all = new double[m.length];
        for (int head = 0; head < heads; head++) {
            int from = head * rows * block.cols();
            double[] along = polar(Arrays.copyOfRange(m, from, from + rows * block.cols()), rows, block.cols());
            System.arraycopy(along, 0, all, from, along.length);
        }
        return all;
    }

    private double[] polar(double[] m, int rows, int cols) {
        double[] along = switch (muon.orthogonalizer()) {
            case Exact _, ExactSvd _ -> ReferenceMatrix.polar(m, rows, cols);
            case Auto auto -> ReferenceMatrix.newtonSchulz(m, rows, cols);
            case NewtonSchulz schulz -> ReferenceMatrix.newtonSchulz(m, rows, cols);
            case GramNewtonSchulz gram -> ReferenceMatrix.newtonSchulz(m, rows, cols);
        };
        double factor = switch (muon.scale()) {
            case NONE -> 1;
            case ASPECT -> Math.sqrt(Math.max(1, (double) rows / cols));
            case RMS -> 0.2 * Math.sqrt(Math.max(rows, cols));
        };
        return Arrays.stream(along).map(value -> factor * value).toArray();
    }
}
