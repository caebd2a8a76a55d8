package org.fedcomuon.method;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.MatrixBlock;
import org.fedcomuon.device.Place;
import org.fedcomuon.device.StepRule;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.MuonPlan;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * How the Muon methods move: matrices along their orthogonalized momentum, the rest along their momentum by a rule and
 * a learning rate of its own.
 *
 * @param orthogonalizer exact or by Newton-Schulz
 * @param scale how the learning rate of a matrix depends on its shape
 * @param vectorRule how blocks that are not matrices step
 * @param vectorRate their learning rate as a multiple of the matrices'
 */
public record Muon(Orthogonalizer orthogonalizer, ScaleRule scale, StepRule vectorRule, double vectorRate) {
    public Muon {
        if (!(vectorRate >= 0 && vectorRate < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("vectorRate = %s; a number >= 0 is needed".formatted(vectorRate));
        }
    }

    /** The paper's: five Newton-Schulz steps, no scale, normalised vectors at the same rate. */
    public static Muon standard() {
        return with(new Auto(Coefficients.jordan(5)));
    }

    /** The paper's with another orthogonalizer. */
    public static Muon with(Orthogonalizer orthogonalizer) {
        return new Muon(orthogonalizer, ScaleRule.NONE, StepRule.NORMALIZED, 1);
    }

    Map<String, Object> parameters() {
        return Parameters.of(
                "orthogonalizer",
                orthogonalizer.name(),
                "scale",
                scale,
                "vectorRule",
                vectorRule,
                "vectorRate",
                vectorRate);
    }

    /** Takes the room for steps on the device of these clients. */
    Mover on(Clients clients) {
        return new Mover(this, clients);
    }

    /** {@code W -= eta polar(M)}, block by block. */
    static final class Mover {
        private final Muon muon;
        private final Clients clients;
        private final MuonPlan plan;
        private final List<Integer> matrices = new ArrayList<>(); // positions in the layout, as the plan numbers them

        private Mover(Muon muon, Clients clients) {
            this.muon = muon;
            this.clients = clients;
            Layout layout = clients.layout();
            var blocks = new ArrayList<MatrixBlock>();
            for (int i = 0; i < layout.blocks().size(); i++) {
                Block block = layout.blocks().get(i);
                if (block.update() == Block.Update.ORTHOGONAL) {
                    matrices.add(i);
                    blocks.add(MatrixBlock.at(layout.offset(i), block.rows(), block.cols()));
                }
            }
            plan = clients.own(MuonPlan.of(
                    muon.orthogonalizer, clients.device(), clients.count(), List.copyOf(blocks), muon.scale));
        }

        /** {@code W -= eta polar(M)}. Right after both were averaged it is the same for all, and worked out once. */
        void step(double eta, Variable m, Variable w) {
            clients.timed(Phase.ORTHOGONALIZE, () -> {
                if (w.isShared()) {
                    move(eta, m, w, new Run(0, 1));
                } else if (m.isCommon() && w.isCommon() && !clients.runs().isEmpty()) {
                    int first = clients.runs().getFirst().first();
                    move(eta, m, w, new Run(first, 1));
                    w.spread(first);
                } else {
                    w.becomeDifferent();
                    for (Run run : clients.runs()) {
                        move(eta, m, w, run);
                    }
                }
            });
        }

        private void move(double eta, Variable m, Variable w, Run run) {
            try {
                plan.step(m.of(run), eta, w.of(run));
            } catch (DeviceException.NotFinite e) {
                int block = matrices.get((int) Math.max(0, e.place().block()));
                throw clients.diverged(
                        m,
                        run,
                        new Place(e.place().client(), block, clients.layout().offset(block)));
            }
            Layout layout = clients.layout();
            for (int i = 0; i < layout.blocks().size(); i++) {
                Block block = layout.blocks().get(i);
                if (block.update() == Block.Update.VECTOR) {
                    long from = layout.offset(i);
                    try {
                        clients.device()
                                .vectorStep(
                                        muon.vectorRule,
                                        eta * muon.vectorRate,
                                        m.of(run).slice(from, block.size()),
                                        w.of(run).slice(from, block.size()));
                    } catch (DeviceException.NotFinite e) {
                        throw clients.diverged(m, run, new Place(e.place().client(), i, from));
                    }
                }
            }
        }
    }
}
