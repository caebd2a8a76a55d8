package org.fedcomuon.method;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.MuonPlan;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * The update of the Muon methods: matrices move along their orthogonalized momentum, other blocks along their momentum
 * by a rule and a learning rate of their own.
 *
 * @param orthogonalizer exact or by Newton-Schulz
 * @param scale how the learning rate of a matrix depends on its shape
 * @param vectorRule how blocks that are not matrices step
 * @param vectorRate their learning rate as a multiple of the matrices'
 */
public record Muon(Orthogonalizer orthogonalizer, ScaleRule scale, Device.StepRule vectorRule, double vectorRate) {
    public Muon {
        if (!(vectorRate >= 0 && vectorRate < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("vectorRate = %s; a number >= 0 is needed".formatted(vectorRate));
        }
    }

    /** Returns the paper's update: five Newton-Schulz steps, no scale, normalized vectors at the same rate. */
    public static Muon standard() {
        return with(new Auto(Coefficients.jordan(5)));
    }

    /** Returns the paper's update with another orthogonalizer. */
    public static Muon with(Orthogonalizer orthogonalizer) {
        return new Muon(orthogonalizer, ScaleRule.NONE, Device.StepRule.NORMALIZED, 1);
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

    /** Allocates the workspace for steps on the device of these clients. */
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
            var blocks = new ArrayList<NewtonSchulzSpec.Block>();
            for (int i = 0; i < layout.blocks().size(); i++) {
                Block block = layout.blocks().get(i);
                if (block.update() == Block.Update.ORTHOGONAL) {
                    matrices.add(i);
                    blocks.add(NewtonSchulzSpec.Block.at(layout.offset(i), block.rows(), block.cols()));
                }
            }
            plan = clients.own(MuonPlan.of(
                    muon.orthogonalizer, clients.device(), clients.count(), List.copyOf(blocks), muon.scale));
        }

        /**
         * {@code W -= eta polar(M)}. Right after both were averaged it is the same for all clients, and computed once.
         */
        void step(double eta, Variable m, Variable w) {
            clients.timed(Clients.Phase.ORTHOGONALIZE, () -> {
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
                int block = matrices.get((int) Math.max(0, e.position().block()));
                throw clients.diverged(
                        m,
                        run,
                        new Device.Position(
                                e.position().client(), block, clients.layout().offset(block)));
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
                        throw clients.diverged(
                                m, run, new Device.Position(e.position().client(), i, from));
                    }
                }
            }
        }
    }
}
