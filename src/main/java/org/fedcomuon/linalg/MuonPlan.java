package org.fedcomuon.linalg;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.MatrixBlock;
import org.fedcomuon.device.Place;
import org.fedcomuon.device.SmallSchulz;
import org.jspecify.annotations.Nullable;

/**
 * An {@link Orthogonalizer} made ready for all matrices of a model, of mixed shapes and for up to so many clients:
 * where the iteration allows it, all small matrices of all clients go in one kernel call. Of the largest, as an
 * embedding of words, some clients at a time, so that the room for them stays small. Of the device's thread.
 */
public final class MuonPlan implements AutoCloseable {
    /** Elements of a shape that are worked on at once: enough to fill any device, 64 MB of each room. */
    private static final long AT_ONCE = 1L << 24;

    private record Single(int block, MatrixBlock where, Plan plan, int atATime) {}

    private final Device device;
    private final int clients;
    private final @Nullable SmallSchulz small;
    private final List<Integer> smallBlocks = new ArrayList<>();
    private final List<Single> singles = new ArrayList<>();
    private final Map<List<Long>, Plan> plans = new LinkedHashMap<>(); // one a shape: blocks take turns in its room

    private MuonPlan(
            Orthogonalizer orthogonalizer,
            Device device,
            int clients,
            List<MatrixBlock> blocks,
            ScaleRule scale,
            long atOnce) {
        this.device = device;
        this.clients = clients;
        Workroom.requirePrecision(device, ElementType.FLOAT32, orthogonalizer.precision());
        @Nullable
        Coefficients coefficients = switch (orthogonalizer) {
            case Auto auto -> auto.coefficients();
            case NewtonSchulz schulz -> schulz.coefficients();
            case ExactSvd exact -> null;
            case GramNewtonSchulz gram -> null;
        };
        var together = new ArrayList<MatrixBlock>();
        for (int i = 0; i < blocks.size(); i++) {
            MatrixBlock block = blocks.get(i);
            if (coefficients != null && Math.min(block.rows(), block.cols()) <= SmallSchulz.longestSide()) {
                smallBlocks.add(i);
                together.add(new MatrixBlock(
                        block.rows(),
                        block.cols(),
                        block.momentumOffset(),
                        block.resultOffset(),
                        block.weightOffset(),
                        scale.scale(block.rows(), block.cols())));
            } else {
                int atATime = together(clients, block.rows(), block.cols(), atOnce);
                singles.add(new Single(i, block, plan(orthogonalizer, atATime, block, scale), atATime));
            }
        }
        small = coefficients == null || together.isEmpty()
                ? null
                : new SmallSchulz(together, coefficients.steps(), coefficients.divisor());
    }

    /**
     * Takes the room that the steps need.
     *
     * @param clients the most that a call may bring
     * @param blocks the matrices of a client; their own scales are not used
     */
    public static MuonPlan of(
            Orthogonalizer orthogonalizer, Device device, int clients, List<MatrixBlock> blocks, ScaleRule scale) {
        return of(orthogonalizer, device, clients, blocks, scale, AT_ONCE);
    }

    /** With another limit to the elements of a shape that are worked on at once. */
    static MuonPlan of(
            Orthogonalizer orthogonalizer,
            Device device,
            int clients,
            List<MatrixBlock> blocks,
            ScaleRule scale,
            long atOnce) {
        return new MuonPlan(orthogonalizer, device, clients, blocks, scale, atOnce);
    }

    /** Of how many clients matrices of a shape have room side by side. */
    public static int together(int clients, long rows, long cols) {
        return together(clients, rows, cols, AT_ONCE);
    }

    private static int together(int clients, long rows, long cols, long atOnce) {
        return Math.clamp(atOnce / Math.max(1, rows * cols), Math.min(1, clients), clients);
    }

    private Plan plan(Orthogonalizer orthogonalizer, int clients, MatrixBlock block, ScaleRule scale) {
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
     * {@code w -= eta scale U V^T} for every matrix of every client. NaN or infinity is a
     * {@link DeviceException.NotFinite} whose place names client and block; blocks before it may have been stepped.
     */
    public void step(Batch m, double eta, Batch w) {
        if (m.clients() > clients || m.clients() != w.clients()) {
            throw new DeviceException.InvalidOperand("%s has %d clients and %s %d; up to %d were planned for"
                    .formatted(m.buffer().label(), m.clients(), w.buffer().label(), w.clients(), clients));
        }
        if (small != null) {
            try {
                device.newtonSchulzStep(small, m, eta, w);
            } catch (DeviceException.NotFinite e) {
                throw named(e, 0, smallBlocks.get((int) e.place().block()));
            }
        }
        for (Single single : singles) {
            MatrixBlock where = single.where();
            long size = where.rows() * where.cols();
            Batch momentum = m.slice(where.momentumOffset(), size);
            Batch weights = w.slice(where.weightOffset(), size);
            for (long first = 0; first < m.clients(); first += single.atATime()) {
                long count = Math.min(single.atATime(), m.clients() - first);
                try {
                    single.plan().step(momentum.neighbours(first, count), eta, weights.neighbours(first, count));
                } catch (DeviceException.NotFinite e) {
                    throw named(e, first, single.block());
                }
            }
        }
    }

    private static DeviceException.NotFinite named(DeviceException.NotFinite e, long first, int block) {
        var named = new DeviceException.NotFinite(
                String.valueOf(e.getMessage()),
                new Place(first + e.place().client(), block, e.place().index()));
        named.initCause(e);
        return named;
    }

    @Override
    public void close() {
        plans.values().forEach(Plan::close);
        plans.clear();
    }
}
