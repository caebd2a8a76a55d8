package org.fedcomuon.model;

import java.util.SplittableRandom;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/** Where training starts: uniform within {@code 1/sqrt(fan-in)}, as is usual for dense and convolution layers. */
public final class Initialization {
    private Initialization() {}

    /**
     * W0. A bias takes the fan-in of the weight before it; what ends in {@code .gain} is one.
     *
     * @param seed the same seed, the same W0
     */
    public static float[] uniform(Layout layout, long seed) {
        var random = new SplittableRandom(seed);
        var w = new float[Math.toIntExact(layout.length())];
        int at = 0;
        int fanIn = 1;
        for (Block block : layout.blocks()) {
            if (block.shape().size() > 1) {
                fanIn = block.cols();
            }
            double bound = 1 / Math.sqrt(fanIn);
            boolean gain = block.name().endsWith(".gain");
            for (long i = 0; i < block.size(); i++) {
                w[at++] = gain ? 1 : (float) random.nextDouble(-bound, bound);
            }
        }
        return w;
    }
}
