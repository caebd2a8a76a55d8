package org.fedcomuon.method;

import java.util.List;
import java.util.Map;

/**
 * FedCoMuon (Algorithm 1): a tracker u of the inner value, a momentum M of the compositional gradient, and steps along
 * the orthogonal factor of M. One round trip a round, for W and M; u stays with its client.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="method"}
 *
 * @param eta the learning rate
 * @param alpha how fast u follows
 * @param beta how fast M follows
 * @param muon how matrices and vectors step
 */
public record FedCoMuon(Schedule eta, Schedule alpha, Schedule beta, Muon muon) implements Method {
    @Override
    public String name() {
        return "fedcomuon";
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
    public List<String> warnings(long iterations, int tau) {
        return Ranges.alphaTimesTau(alpha, iterations, tau);
    }

    @Override
    public Replica on(Clients clients) {
        return new State(clients);
    }

    private final class State implements Replica {
        private final Clients k;
        private final Muon.Mover polar;
        private final Variable w;
        private final Variable u;
        private final Variable m;
        private final Variable g;
        private final Variable gradG;
        private final Variable gradF;

        State(Clients k) {
            this.k = k;
            polar = muon.on(k);
            w = k.weights();
            u = k.privateState("u", k.d());
            m = k.state("M", k.n());
            g = k.scratch("g", k.d());
            gradG = k.scratch("grad g", k.d() * k.n());
            gradF = k.scratch("grad f", k.d());
        }

        @Override
        public void initialize(Server server) {
            k.inner(w, g, gradG); // xi_0
            u.set(g);
            k.outerGradient(u, gradF); // zeta_0
            m.compose(1, gradG, gradF); // M is not averaged here
            polar.observe(gradG, gradF);
        }

        @Override
        public void join() {
            k.inner(w, g, gradG);
            u.set(g); // M is the server's
            if (polar.observes()) {
                k.outerGradient(u, gradF);
                polar.observe(gradG, gradF);
            }
        }

        @Override
        public void step(Step t, Server server) {
            polar.step(eta.at(t), polar.ahead(beta.at(t), m), w); // W -= eta U V^T
            k.inner(w, g, gradG); // xi
            u.ema(alpha.at(t), g); // u = alpha g(W; xi) + (1 - alpha) u
            k.outerGradient(u, gradF); // zeta
            m.compose(beta.at(t), gradG, gradF); // M = beta grad g (grad f(u) kron I) + (1 - beta) M
            polar.observe(gradG, gradF); // for Nesterov and AdamW, which are off in the paper
            if (t.isSync()) {
                server.average(w, m); // u stays local
            }
        }
    }
}
