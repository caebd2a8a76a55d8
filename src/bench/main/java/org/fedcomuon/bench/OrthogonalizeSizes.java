package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.GramNewtonSchulz;

/**
 * What {@link OrthogonalizeBench} measures.
 *
 * @param clients that have all small matrices of LeNet, and on a GPU those of a Transformer
 * @param transformer the large matrices of a Transformer
 * @param shapes of single matrices
 * @param exact shapes whose exact factors are computed, for all clients together
 * @param peakSide of the product that is the limit of the device
 */
public record OrthogonalizeSizes(
        int clients, List<Shape> transformer, List<Shape> shapes, List<Shape> exact, int peakSide) {
    public OrthogonalizeSizes {
        transformer = List.copyOf(transformer);
        shapes = List.copyOf(shapes);
        exact = List.copyOf(exact);
    }

    /** Returns the sizes of the default run. */
    public static OrthogonalizeSizes full() {
        return new OrthogonalizeSizes(
                10,
                visionTransformer(192, 12),
                List.of(new Shape(768, 768), new Shape(768, 1024), new Shape(1024, 4096)),
                List.of(new Shape(256, 1024), new Shape(768, 768), new Shape(768, 1024)),
                1536);
    }

    /** Returns sizes that a simulated device computes in a minute. */
    public static OrthogonalizeSizes small() {
        return new OrthogonalizeSizes(
                2,
                visionTransformer(130, 1),
                List.of(new Shape(130, 130), new Shape(130, 270)),
                List.of(new Shape(130, 130)),
                64);
    }

    /** Returns query, key, value, projection, hidden and output of each layer. */
    private static List<Shape> visionTransformer(int width, int layers) {
        var all = new ArrayList<Shape>();
        for (int i = 0; i < layers; i++) {
            all.addAll(Collections.nCopies(4, new Shape(width, width)));
            all.add(new Shape(4 * width, width));
            all.add(new Shape(width, 4 * width));
        }
        return all;
    }

    /** The shape of a matrix. */
    public record Shape(int rows, int cols) {
        /**
         * Returns the flops of five steps of Newton-Schulz that symmetric products need, in the form that {@link Auto}
         * picks: the Gram form needs fewer.
         */
        double flops(Coefficients fiveSteps) {
            double side = Math.min(rows, cols);
            double length = Math.max(rows, cols);
            boolean gram = new Auto(fiveSteps).pick(rows, cols, ElementType.FLOAT32) instanceof GramNewtonSchulz;
            double cube = side * side * side;
            // Gram, runs of 2 and 3 steps: X X^T and Q X twice each, and 5 + 9 products of squares
            return gram ? 2 * 3 * side * side * length + 14 * cube : 5 * (3 * side * side * length + cube);
        }

        @Override
        public String toString() {
            return "%d x %d".formatted(rows, cols);
        }
    }
}
