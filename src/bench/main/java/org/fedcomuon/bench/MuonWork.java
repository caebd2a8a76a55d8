package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.GramNewtonSchulz;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * The step along orthogonalized momentum as work for a GPU. All small matrices of all clients are one launch of a
 * kernel that uses symmetry. Large ones are {@link GroupedWork}; before, they were products by cuBLAS, one call per
 * client, which do not use symmetry: cuBLAS has no symmetric product that also adds a matrix.
 */
final class MuonWork {
    private MuonWork() {}

    /**
     * Newton-Schulz as an experiment sets it. By cuBLAS, all of it was plain and in fp32.
     *
     * @param steps their number
     * @param auto whether large matrices at least twice as long as wide are in Gram form
     * @param precision of the products
     * @param memory of the device in bytes, which bounds the room for large matrices
     */
    record Iteration(int steps, boolean auto, Precision precision, double memory) {
        /** Returns one in fp32 on a GPU of the paper. */
        static Iteration of(int steps, boolean auto) {
            return new Iteration(steps, auto, Precision.FP32, Gpu.RTX_4090.memory());
        }

        /** Returns the same in another precision. */
        Iteration in(Precision other) {
            return new Iteration(steps, auto, other, memory);
        }

        /** Returns the same on a device with so much memory. */
        Iteration on(double bytes) {
            return new Iteration(steps, auto, precision, bytes);
        }

        boolean isGram(Block block) {
            return auto
                    && new Auto(Coefficients.jordan(steps)).pick(block.rows(), block.cols(), ElementType.FLOAT32)
                            instanceof GramNewtonSchulz;
        }

        /** Returns after which steps the Gram form restarts. */
        List<Integer> restarts() {
            return new GramNewtonSchulz(Coefficients.jordan(steps)).restarts();
        }
    }

    /** Returns the work of the step for this many clients. */
    static WorkList step(Design design, Layout layout, int clients, Iteration iteration) {
        var large = new ArrayList<Block>();
        var vectors = new ArrayList<WorkList>();
        double flops = 0;
        double longest = 0;
        double elements = 0;
        double inVectors = 0;
        for (Block block : layout.blocks()) {
            if (block.update() == Block.Update.VECTOR) {
                inVectors += (double) clients * block.size();
                vectors.add(FusedWork.normalizedStep(design, (double) clients * block.size()));
            } else if (isSmall(block)) {
                double one = small(block.rows(), block.cols(), iteration.steps());
                flops += clients * one;
                longest = Math.max(longest, one);
                elements += (double) clients * block.size();
            } else {
                large.add(block);
            }
        }
        double inLarge =
                (double) clients * large.stream().mapToLong(Block::size).sum();
        double withNorms = design == Design.GROUPED ? elements + inLarge : elements;
        WorkList norms = withNorms == 0
                ? new WorkList(List.of())
                : WorkList.of(KernelWork.of("fcm_k_schulz_norms", 1, 2 * withNorms, 4 * withNorms));
        WorkList small = elements == 0
                ? norms
                : norms.and(WorkList.of(smallMatrices(
                        design == Design.GROUPED ? iteration.precision() : Precision.FP32, flops, longest, elements)));
        if (design == Design.WITH_WAITS) {
            WorkList table =
                    WorkList.of(KernelWork.tiny("table to the device", 1), KernelWork.tiny("fcm_k_schulz_order", 1));
            small = elements == 0 ? small : table.and(small).and(FusedWork.findings());
        } else {
            if (!vectors.isEmpty()) { // one call for all of them
                vectors.clear();
                vectors.add(FusedWork.normalizedStep(design, inVectors));
            }
            // All of M, before any block of W is stepped.
            small = FusedWork.allFinite(design, (double) clients * layout.length())
                    .and(small);
        }
        WorkList products = design == Design.GROUPED
                ? GroupedWork.of(large, clients, iteration)
                : WorkList.concat(large.stream()
                        .map(block -> byCublas(design, block.rows(), block.cols(), clients, iteration.steps()))
                        .toList());
        return small.and(products).and(WorkList.concat(vectors));
    }

    private static KernelWork smallMatrices(Precision precision, double flops, double longest, double elements) {
        String kernel = precision == Precision.FP32 ? "fcm_k_newton_schulz" : "fcm_k_newton_schulz_" + precision;
        return new KernelWork(kernel, 1, flops, longest, 12 * elements, 0, 0, false, precision, 0);
    }

    private static boolean isSmall(Block block) {
        return Math.min(block.rows(), block.cols()) <= NewtonSchulzSpec.longestSide();
    }

    /** Returns the flops of a small matrix: one triangle of both symmetric products, and the product with X. */
    static double small(int rows, int cols, int steps) {
        double s = Math.min(rows, cols);
        double l = Math.max(rows, cols);
        return steps * (s * (s + 1) * (l + s) + 2 * s * s * l);
    }

    /** Returns the work for a large matrix of each client by cuBLAS. */
    static WorkList byCublas(Design design, int rows, int cols, int clients, int steps) {
        double s = Math.min(rows, cols);
        double l = Math.max(rows, cols);
        double n = s * l * clients;
        WorkList step = products("X X^T", clients, 2 * s * s * l, 4 * (s * l + s * s))
                .and(FusedWork.rearrange(s * s * clients))
                .and(products("b A + c A A", clients, 2 * s * s * s, 4 * 3 * s * s))
                .and(FusedWork.rearrange(n))
                .and(products("a X + B X", clients, 2 * s * s * l, 4 * (s * s + 3 * s * l)));
        WorkList all = FusedWork.normalize(design, n);
        for (int i = 0; i < steps; i++) {
            all = all.and(step);
        }
        return all.and(FusedWork.allFinite(design, n)).and(FusedWork.plainStep(n));
    }

    private static WorkList products(String name, int clients, double flops, double bytes) {
        return WorkList.of(KernelWork.product("cuBLAS " + name, 1, flops, bytes).times(clients));
    }
}
