package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * The step along orthogonalized momentum as work for a GPU. All small matrices of all clients are one launch of a
 * kernel that uses symmetry. Large ones are products by cuBLAS, one call per client, which do not use symmetry: cuBLAS
 * has no symmetric product that also adds a matrix.
 */
final class MuonWork {
    private MuonWork() {}

    /** Returns the work of the step for this many clients and Newton-Schulz steps. */
    static WorkList step(Design design, Layout layout, int clients, int steps) {
        var large = new ArrayList<WorkList>();
        var vectors = new ArrayList<WorkList>();
        double flops = 0;
        double longest = 0;
        double elements = 0;
        double inVectors = 0;
        for (Block block : layout.blocks()) {
            if (block.update() == Block.Update.VECTOR) {
                inVectors += (double) clients * block.size();
                vectors.add(FusedWork.normalizedStep(design, (double) clients * block.size()));
            } else if (Math.min(block.rows(), block.cols()) <= NewtonSchulzSpec.longestSide()) {
                double one = small(block.rows(), block.cols(), steps);
                flops += clients * one;
                longest = Math.max(longest, one);
                elements += (double) clients * block.size();
            } else {
                large.add(large(design, block.rows(), block.cols(), clients, steps));
            }
        }
        WorkList small = elements == 0
                ? new WorkList(List.of())
                : WorkList.of(
                        KernelWork.of("fcm_k_schulz_norms", 1, 2 * elements, 4 * elements),
                        new KernelWork("fcm_k_newton_schulz", 1, flops, longest, 12 * elements, 0, 0, false, 0));
        if (design == Design.BEFORE) {
            WorkList table =
                    WorkList.of(KernelWork.tiny("table to the device", 1), KernelWork.tiny("fcm_k_schulz_order", 1));
            small = elements == 0 ? small : table.and(small).and(FusedWork.findings());
        } else if (!vectors.isEmpty()) { // one call for all of them
            vectors.clear();
            vectors.add(FusedWork.normalizedStep(design, inVectors));
        }
        if (design == Design.AFTER) { // all of M, before any block of W is stepped
            small = FusedWork.allFinite(design, (double) clients * layout.length())
                    .and(small);
        }
        return small.and(WorkList.concat(large)).and(WorkList.concat(vectors));
    }

    /** Returns the flops of a small matrix: one triangle of both symmetric products, and the product with X. */
    static double small(int rows, int cols, int steps) {
        double s = Math.min(rows, cols);
        double l = Math.max(rows, cols);
        return steps * (s * (s + 1) * (l + s) + 2 * s * s * l);
    }

    /** Returns the work for a large matrix of each client. */
    static WorkList large(Design design, int rows, int cols, int clients, int steps) {
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
