package org.example.muon;

import java.util.Map;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.method.Variable;

/**
 * FedCoMuon with heavy-ball momentum: gradients are added to M instead of averaged into it, and M starts from zero.
 *
 * @param eta the learning rate
 * @param alpha how fast the tracker u follows the inner value
 * @param keep how much of M a step keeps
 * @param muon how matrices and vectors step
 */
public record HeavyBall(Schedule eta, Schedule alpha, Schedule keep, Muon muon) implements Method {
    @Override
    public String name() {
        return "my-method";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "alpha", alpha, "keep", keep).and(muon.parameters());
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).fraction("alpha", alpha).fraction("keep", keep);
        muon.validate(eta, iterations);
    }

    @Override
    public Replica on(Clients k) {
        return new State(k);
    }

    private final class State implements Replica {
        private final Clients k;
        private final Muon.Mover polar;
        private final Variable w;
        private final Variable u; // state: part of checkpoints
        private final Variable m;
        private final Variable g; // scratch: of one step
        private final Variable gradG;
        private final Variable gradF;
        private final Variable gradient;

        State(Clients k) {
            this.k = k;
            polar = muon.on(k);
            w = k.weights();
            u = k.state("u", k.d());
            m = k.state("M", k.n());
            g = k.scratch("g", k.d());
            gradG = k.scratch("grad g", k.d() * k.n());
            gradF = k.scratch("grad f", k.d());
            gradient = k.scratch("gradient", k.n());
        }

        @Override
        public void initialize(Server server) {
            k.inner(w, g, gradG);
            u.set(g);
        }

        @Override
        public void step(Step t, Server server) {
            k.inner(w, g, gradG); // on a new sample
            u.ema(alpha.at(t), g); // u = alpha g(W; xi) + (1 - alpha) u
            k.outerGradient(u, gradF);
            gradient.compose(1, gradG, gradF); // grad g(W; xi) grad f(u)
            m.accumulate(keep.at(t), gradient); // M = keep M + gradient
            polar.observe(gradient); // for Nesterov and AdamW
            polar.step(eta.at(t), polar.aheadOfSum(keep.at(t), m), w); // W -= eta U V^T
            if (t.isSync()) {
                server.average(w, m); // u stays with its client
            }
        }
    }
}
