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
import org.jspecify.annotations.Nullable;

/**
 * An {@link Orthogonalizer} prepared for all matrices of a model, of mixed shapes and for a maximal number of clients.
 * Where the iteration allows it, all small matrices of all clients are done in one kernel call; the largest, such as
 * word embeddings, are done for some clients at a time, so that the workspace stays small. Not thread-safe; confined to
 * the device thread.
 */
public final class MuonPlan implements AutoCloseable {
    /** Elements of a shape that are worked on at once: enough to fill any device, 64 MB of each buffer. */
    private static final long AT_ONCE = 1L << 24;

    private record Single(NewtonSchulzSpec.Block where, Orthogonalizer.Plan plan, int atATime) {}

    private final Device device;
    private final int clients;
    private NewtonSchulzSpec.@Nullable Plan small;
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
        AbstractPlan.requirePrecision(device, ElementType.FLOAT32, orthogonalizer.precision());
        @Nullable
        Coefficients coefficients = switch (orthogonalizer) {
            case Auto auto -> auto.coefficients();
            case NewtonSchulz schulz -> schulz.coefficients();
            case ExactSvd exact -> null;
            case GramNewtonSchulz gram -> null;
        };
        var together = new ArrayList<NewtonSchulzSpec.Block>();
        for (NewtonSchulzSpec.Block block : blocks) {
            if (coefficients != null && Math.min(block.rows(), block.cols()) <= NewtonSchulzSpec.longestSide()) {
                together.add(new NewtonSchulzSpec.Block(
                        block.rows(),
                        block.cols(),
                        block.momentumOffset(),
                        block.resultOffset(),
                        block.weightOffset(),
                        block.scale() * scale.scale(block.rows(), block.cols())));
            } else {
                int atATime = together(clients, block.rows(), block.cols(), atOnce);
                singles.add(new Single(block, plan(orthogonalizer, atATime, block, scale), atATime));
            }
        }
        if (coefficients != null && !together.isEmpty()) {
            var all = new NewtonSchulzSpec(together, coefficients.steps(), coefficients.divisor());
            try {
                small = device.plan(all, clients);
            } catch (RuntimeException e) {
                close();
                throw e;
            }
        }
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
        if (small != null) {
            small.step(m, eta, w);
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
        if (small != null) {
            small.close();
        }
        plans.values().forEach(Orthogonalizer.Plan::close);
        plans.clear();
    }
}
