package org.fedcomuon.method;

import java.util.Map;

/**
 * FedMuon-LGA: local Muon steps corrected by D, the direction that the whole federation took in the last round.
 *
 * @param eta the learning rate
 * @param alpha how much of D is in a step
 * @param beta how much of M is kept
 * @param muon how matrices and vectors step
 */
public record FedMuonLga(Schedule eta, Schedule alpha, Schedule beta, Muon muon) implements Method {
    @Override
    public String name() {
        return "fedmuon-lga";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "alpha", alpha, "beta", beta).and(muon.parameters());
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).fraction("alpha", alpha).fraction("beta", beta);
        muon.validate(eta, iterations);
    }

    @Override
    public boolean isSingleLevel() {
        return true;
    }

    @Override
    public Replica on(Clients clients) {
        return new State(clients);
    }

    private final class State implements Replica {
        private final Clients k;
        private final Muon.Mover polar;
        private final Variable w;
        private final Variable m;
        private final Variable direction;
        private final Variable x;
        private final Variable gradient;
        private final Variable moved;

        State(Clients k) {
            this.k = k;
            polar = muon.on(k);
            w = k.weights();
            m = k.state("M", k.n());
            direction = k.sharedState("D", k.n());
            x = k.sharedState("x", k.n());
            gradient = k.scratch("gradient", k.n());
            moved = k.sharedScratch("x - x'", k.n());
        }

        @Override
        public void initialize(Server server) {
            x.set(w); // M = 0, D = 0
        }

        @Override
        public void step(Step t, Server server) {
            k.gradient(w, gradient);
            m.accumulate(beta.at(t), gradient); // M = beta M + grad l(W; B)
            polar.observe(gradient);
            Variable ahead = polar.aheadOfSum(beta.at(t), m);
            polar.step(eta.at(t) * (1 - alpha.at(t)), ahead, w); // W -= eta [(1 - alpha) U V^T + alpha D]
            w.add(-eta.at(t) * alpha.at(t), direction);
            if (t.isSync()) {
                server.average(w, m);
                moved.set(x);
                moved.add(-1, w);
                direction.zero();
                direction.add(1 / t.sumOverRound(eta), moved); // D = -(x' - x) / (tau eta)
                x.set(w);
            }
        }
    }
}
