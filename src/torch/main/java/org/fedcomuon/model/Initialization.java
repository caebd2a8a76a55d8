package org.fedcomuon.model;

import java.util.SplittableRandom;
import java.util.function.DoubleSupplier;
import java.util.random.RandomGenerator;
import java.util.regex.Pattern;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;

/**
 * Initial weights: uniform within {@code 1/sqrt(fan-in)} for dense and convolution layers, and the usual distributions
 * for other blocks.
 *
 * <p>Thread-safe.
 */
public final class Initialization {
    /** The standard deviation of a class token and of learned positions. */
    private static final double SMALL = 0.02;

    /** What a name has after that of the kind of layer. */
    private static final Pattern NUMBERED = Pattern.compile("\\d*(\\.weight)?$");

    private Initialization() {}

    /**
     * Returns W0. The names of the blocks determine how they are initialized: a {@code .gain} is one and a
     * {@code .shift} zero; {@code embedding} is normal with a variance of one over its width, {@code positions} and
     * {@code class.token} with a deviation of 0.02, also with a number and {@code .weight} after it, such as
     * {@code embedding1.weight}. All others are uniform; a bias takes the fan-in of the weight before it.
     *
     * @param seed determines W0
     */
    public static Floats uniform(Layout layout, long seed) {
        var random = new SplittableRandom(seed);
        Floats w = Floats.zeros(layout.length());
        long at = 0;
        int fanIn = 1;
        for (Block block : layout.blocks()) {
            if (block.shape().size() > 1) {
                fanIn = block.cols();
            }
            double bound = 1 / Math.sqrt(fanIn);
            DoubleSupplier draw = draw(block.name(), bound, random);
            for (long i = 0; i < block.size(); i++) {
                w.set(at++, draw.getAsDouble());
            }
        }
        return w;
    }

    private static DoubleSupplier draw(String name, double bound, RandomGenerator random) {
        if (name.endsWith(".gain")) {
            return () -> 1;
        }
        if (name.endsWith(".shift")) {
            return () -> 0;
        }
        return switch (NUMBERED.matcher(name).replaceFirst("")) {
            case "embedding" -> () -> bound * random.nextGaussian();
            case "positions", "class.token" -> () -> SMALL * random.nextGaussian();
            default -> () -> random.nextDouble(-bound, bound);
        };
    }
}
