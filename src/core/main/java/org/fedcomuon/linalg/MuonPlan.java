package org.fedcomuon.linalg;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;
import org.jspecify.annotations.Nullable;

/**
 * An {@link Orthogonalizer} prepared for all matrices of a model, of mixed shapes and for a maximal number of clients.
 * Newton-Schulz by our kernels is one call for all matrices of all clients. By other ways, matrices are done shape by
 * shape, and the largest, such as word embeddings, for some clients at a time, so that the workspace stays small. Not
 * thread-safe; confined to the device thread.
 */
public final class MuonPlan implements AutoCloseable {
    /** Elements of a shape that are worked on at once: enough to fill any device, 64 MB of each buffer. */
    private static final long AT_ONCE = 1L << 24;

    private record Single(NewtonSchulzSpec.Block where, Orthogonalizer.Plan plan, int atATime) {}

    /** What all matrices that share a call have in common. */
    private record Iteration(Coefficients coefficients, List<Integer> restarts, Precision precision) {}

    private final Device device;
    private final int clients;
    private NewtonSchulzSpec.@Nullable Plan together;
    private final List<Single> singles = new ArrayList<>();
    private final Map<List<Long>, Orthogonalizer.Plan> plans =
            new LinkedHashMap<>(); // one per shape: blocks take turns in its workspace

    private MuonPlan(
            Orthogonalizer orthogonalizer,
            Device device,
            int clients,
            List<NewtonSchulzSpec.Block> blocks,
            ScaleRule scale,
            long atOnce) {
        this.device = device;
        this.clients = clients;
        var shared = new ArrayList<NewtonSchulzSpec.Block>();
        @Nullable Iteration iteration = null;
        for (NewtonSchulzSpec.Block block : blocks) {
            Orthogonalizer picked = orthogonalizer instanceof Auto auto
                    ? auto.pick(Math.toIntExact(block.rows()), Math.toIntExact(block.cols()), ElementType.FLOAT32)
                    : orthogonalizer;
            @Nullable Iteration own = iteration(picked, block);
            if (own == null) {
                int atATime = together(clients, block.rows(), block.cols(), atOnce);
                singles.add(new Single(block, plan(picked, atATime, block, scale), atATime));
                continue;
            }
            iteration = iteration == null || iteration.restarts().isEmpty() ? own : iteration;
            shared.add(new NewtonSchulzSpec.Block(
                    block.rows(),
                    block.cols(),
                    block.momentumOffset(),
                    block.resultOffset(),
                    block.weightOffset(),
                    block.scale() * scale.scale(block.rows(), block.cols()),
                    picked instanceof GramNewtonSchulz));
        }
        if (iteration != null) {
            Coefficients coefficients = iteration.coefficients();
            var all = new NewtonSchulzSpec(
                    shared, coefficients.steps(), coefficients.divisor(), iteration.restarts(), iteration.precision());
            try {
                together = device.plan(all, clients);
            } catch (RuntimeException e) {
                close();
                throw e;
            }
        }
    }

    /** Returns the iteration of a matrix that shares a call with others; null if it does not. */
    private static @Nullable Iteration iteration(Orthogonalizer picked, NewtonSchulzSpec.Block block) {
        boolean small = Math.min(block.rows(), block.cols()) <= NewtonSchulzSpec.longestSide();
        return switch (picked) {
            case NewtonSchulz how
            when how.products() == Orthogonalizer.Products.KERNELS || small ->
                new Iteration(how.coefficients(), List.of(), how.precision());
            case GramNewtonSchulz how
            when how.products() == Orthogonalizer.Products.KERNELS ->
                new Iteration(how.coefficients(), how.restarts(), how.precision());
            default -> null;
        };
    }

    /**
     * Allocates the workspace that the steps need.
     *
     * @param clients the maximal number of clients in a call
     * @param blocks the matrices of a client; a block's own scale multiplies that of the rule
     */
    public static MuonPlan of(
            Orthogonalizer orthogonalizer,
            Device device,
            int clients,
            List<NewtonSchulzSpec.Block> blocks,
            ScaleRule scale) {
        return of(orthogonalizer, device, clients, blocks, scale, AT_ONCE);
    }

    /** Returns a plan with another limit of the number of elements of a shape that are processed at once. */
    static MuonPlan of(
            Orthogonalizer orthogonalizer,
            Device device,
            int clients,
            List<NewtonSchulzSpec.Block> blocks,
            ScaleRule scale,
            long atOnce) {
        return new MuonPlan(orthogonalizer, device, clients, blocks, scale, atOnce);
    }

    /** Returns the number of clients whose matrices of a shape are done at once. */
    public static int together(int clients, long rows, long cols) {
        return together(clients, rows, cols, AT_ONCE);
    }

    private static int together(int clients, long rows, long cols, long atOnce) {
        return Math.clamp(atOnce / Math.max(1, rows * cols), Math.min(1, clients), clients);
    }

    private Orthogonalizer.Plan plan(
            Orthogonalizer orthogonalizer, int clients, NewtonSchulzSpec.Block block, ScaleRule scale) {
        try {
            return plans.computeIfAbsent(
                    List.of(block.rows(), block.cols()),
                    shape -> orthogonalizer.plan(
                            device,
                            clients,
                            Math.toIntExact(block.rows()),
                            Math.toIntExact(block.cols()),
                            ElementType.FLOAT32,
                            scale));
        } catch (RuntimeException e) {
            close();
            throw e;
        }
    }

    /**
     * Computes {@code w -= eta scale U V^T} for every matrix of every client. NaN or infinity is a
     * {@link DeviceException.NotFinite} that names the {@linkplain DeviceException.NotFinite#elementOf element} of m,
     * or the first of its matrix; other matrices may have been stepped.
     */
    public void step(Batch m, double eta, Batch w) {
        if (m.clients() > clients || m.clients() != w.clients()) {
            throw new DeviceException.InvalidOperand("%s has %d clients and %s %d; up to %d were planned for"
                    .formatted(m.buffer().label(), m.clients(), w.buffer().label(), w.clients(), clients));
        }
        if (together != null) {
            together.step(m, eta, w);
        }
        for (Single single : singles) {
            NewtonSchulzSpec.Block where = single.where();
            long size = where.rows() * where.cols();
            Batch momentum = m.slice(where.momentumOffset(), size);
            Batch weights = w.slice(where.weightOffset(), size);
            for (long first = 0; first < m.clients(); first += single.atATime()) {
                long count = Math.min(single.atATime(), m.clients() - first);
                single.plan()
                        .step(momentum.neighbours(first, count), eta * where.scale(), weights.neighbours(first, count));
            }
        }
    }

    @Override
    public void close() {
        if (together != null) {
            together.close();
        }
        plans.values().forEach(Orthogonalizer.Plan::close);
        plans.clear();
    }
}
