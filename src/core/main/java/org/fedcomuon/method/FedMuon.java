package org.fedcomuon.method;

import java.util.Map;

/**
 * FedMuon: Muon on the plain loss, and the averages of W and M.
 *
 * @param eta the learning rate
 * @param beta how fast M follows
 * @param muon how matrices and vectors step
 */
public record FedMuon(Schedule eta, Schedule beta, Muon muon) implements Method {
    @Override
    public String name() {
        return "fedmuon";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "beta", beta).and(muon.parameters());
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).fraction("beta", beta);
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
        private final Variable gradient;

        State(Clients k) {
            this.k = k;
            polar = muon.on(k);
            w = k.weights();
            m = k.state("M", k.n());
            gradient = k.scratch("gradient", k.n());
        }

        @Override
        public void initialize(Server server) {
            k.gradient(w, gradient);
            m.set(gradient);
            polar.observe(gradient);
        }

        @Override
        public void join() {
            if (polar.observes()) {
                k.gradient(w, gradient);
                polar.observe(gradient);
            }
        }

        @Override
        public void step(Step t, Server server) {
            polar.step(eta.at(t), polar.ahead(beta.at(t), m), w); // W -= eta U V^T
            k.gradient(w, gradient);
            m.ema(beta.at(t), gradient); // M = (1 - beta) M + beta grad l(W; B)
            polar.observe(gradient);
            if (t.isSync()) {
                server.average(w, m);
            }
        }
    }
}
