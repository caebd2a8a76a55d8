package org.fedcomuon.model;

import java.util.Map;
import java.util.TreeMap;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/** Networks once more, in loops over doubles: slow, and as their definitions read. Of one example. */
final class Plainly {
    private final Map<String, double[]> p = new TreeMap<>();
    private final Map<String, Block> blocks = new TreeMap<>();

    Plainly(Layout layout, float[] w) {
        for (int i = 0; i < layout.blocks().size(); i++) {
            Block block = layout.blocks().get(i);
            var values = new double[Math.toIntExact(block.size())];
            for (int j = 0; j < values.length; j++) {
                values[j] = w[Math.toIntExact(layout.offset(i)) + j];
            }
            p.put(block.name(), values);
            blocks.put(block.name(), block);
        }
    }

    private double[] get(String name) {
        double[] values = p.get(name);
        if (values == null) {
            throw new IllegalArgumentException(name);
        }
        return values;
    }

    private int rows(String name) {
        Block block = blocks.get(name);
        if (block == null) {
            throw new IllegalArgumentException(name);
        }
        return block.rows();
    }

    double[] dense(String layer, double... x) {
        double[] weight = get(layer + ".weight");
        double[] y = get(layer + ".bias").clone();
        for (int i = 0; i < y.length; i++) {
            for (int j = 0; j < x.length; j++) {
                y[i] += weight[i * x.length + j] * x[j];
            }
        }
        return y;
    }

    static double[] relu(double... x) {
        var y = new double[x.length];
        for (int i = 0; i < x.length; i++) {
            y[i] = Math.max(0, x[i]);
        }
        return y;
    }

    /** By {@code x Phi(x)}, the normal distribution's integral taken by Simpson's rule. */
    static double[] gelu(double... x) {
        var y = new double[x.length];
        for (int i = 0; i < x.length; i++) {
            int steps = 2000;
            double h = x[i] / steps;
            double integral = 0;
            for (int s = 0; s <= steps; s++) {
                double t = s * h;
                int weight = s == 0 || s == steps ? 1 : s % 2 == 1 ? 4 : 2;
                integral += weight * Math.exp(-t * t / 2);
            }
            y[i] = x[i] * (0.5 + integral * h / 3 / Math.sqrt(2 * Math.PI));
        }
        return y;
    }

    double[] norm(String layer, double... x) {
        double mean = 0;
        for (double value : x) {
            mean += value / x.length;
        }
        double variance = 0;
        for (double value : x) {
            variance += (value - mean) * (value - mean) / x.length;
        }
        var y = new double[x.length];
        for (int i = 0; i < x.length; i++) {
            y[i] = get(layer + ".gain")[i] * (x[i] - mean) / Math.sqrt(variance + 1e-5) + get(layer + ".shift")[i];
        }
        return y;
    }

    /** Channels x side x side in and out. */
    double[] convolution(String layer, double[] x, int channels, int side, int kernel, int stride) {
        int out = rows(layer + ".weight");
        int to = (side - kernel) / stride + 1;
        double[] weight = get(layer + ".weight");
        var y = new double[out * to * to];
        for (int o = 0; o < out; o++) {
            for (int r = 0; r < to; r++) {
                for (int c = 0; c < to; c++) {
                    double sum = get(layer + ".bias")[o];
                    for (int i = 0; i < channels; i++) {
                        for (int kr = 0; kr < kernel; kr++) {
                            for (int kc = 0; kc < kernel; kc++) {
                                sum += weight[((o * channels + i) * kernel + kr) * kernel + kc]
                                        * x[(i * side + r * stride + kr) * side + c * stride + kc];
                            }
                        }
                    }
                    y[(o * to + r) * to + c] = sum;
                }
            }
        }
        return y;
    }

    /** A transformer's block on the tokens of an example, in place. */
    void block(String name, double[][] x, int heads, boolean causal, boolean gelu) {
        int tokens = x.length;
        int width = x[0].length;
        int size = width / heads;
        var seen = new double[tokens][width];
        for (int t = 0; t < tokens; t++) {
            double[] query = dense(name + ".query", norm(name + ".norm1", x[t]));
            int visible = causal ? t + 1 : tokens;
            for (int h = 0; h < heads; h++) {
                var weights = new double[visible];
                double sum = 0;
                for (int s = 0; s < visible; s++) {
                    double[] key = dense(name + ".key", norm(name + ".norm1", x[s]));
                    double score = 0;
                    for (int i = h * size; i < (h + 1) * size; i++) {
                        score += query[i] * key[i];
                    }
                    weights[s] = Math.exp(score / Math.sqrt(size));
                    sum += weights[s];
                }
                for (int s = 0; s < visible; s++) {
                    double[] value = dense(name + ".value", norm(name + ".norm1", x[s]));
                    for (int i = h * size; i < (h + 1) * size; i++) {
                        seen[t][i] += weights[s] / sum * value[i];
                    }
                }
            }
        }
        for (int t = 0; t < tokens; t++) {
            add(x[t], dense(name + ".projection", seen[t]));
            double[] hidden = dense(name + ".hidden", norm(name + ".norm2", x[t]));
            add(x[t], dense(name + ".output", gelu ? gelu(hidden) : relu(hidden)));
        }
    }

    private static void add(double[] to, double... what) {
        for (int i = 0; i < to.length; i++) {
            to[i] += what[i];
        }
    }

    double[] cnn(double[] image) {
        double[] x = relu(convolution("conv1", image, 3, 9, 3, 1)); // 7 x 7
        x = relu(convolution("conv2", x, rows("conv1.weight"), 7, 3, 2)); // 3 x 3
        x = relu(convolution("conv3", x, rows("conv2.weight"), 3, 1, 1));
        x = relu(convolution("conv4", x, rows("conv3.weight"), 3, 1, 1));
        return dense("dense3", relu(dense("dense2", relu(dense("dense1", x)))));
    }

    double[] vit(double[] image, int side, int patch, int depth, int heads) {
        double[] patches = convolution("patch", image, 3, side, patch, patch); // width x across x across
        int width = rows("patch.weight");
        int count = patches.length / width;
        var x = new double[count + 1][width];
        for (int t = 0; t <= count; t++) {
            for (int i = 0; i < width; i++) {
                x[t][i] =
                        (t == 0 ? get("class.token")[i] : patches[i * count + t - 1]) + get("positions")[t * width + i];
            }
        }
        for (int i = 1; i <= depth; i++) {
            block("block" + i, x, heads, false, true);
        }
        return dense("head", norm("norm", x[0]));
    }

    /** Tokens x vocabulary. */
    double[][] language(long[] tokens, int width, int depth, int heads) {
        var x = new double[tokens.length][width];
        for (int t = 0; t < tokens.length; t++) {
            for (int i = 0; i < width; i++) {
                double angle = t * Math.pow(10000, -(i - i % 2) / (double) width);
                x[t][i] = Math.sqrt(width) * get("embedding")[(int) tokens[t] * width + i]
                        + (i % 2 == 0 ? Math.sin(angle) : Math.cos(angle));
            }
        }
        for (int i = 1; i <= depth; i++) {
            block("block" + i, x, heads, true, false);
        }
        var logits = new double[tokens.length][];
        for (int t = 0; t < tokens.length; t++) {
            logits[t] = dense("head", norm("norm", x[t]));
        }
        return logits;
    }
}
