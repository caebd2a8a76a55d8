package org.fedcomuon.method;

import java.util.Map;

/**
 * Local-SCGDM: stochastic compositional gradient descent with momentum, averaging W and m. Averaging u as well is an
 * option, and wrong where clients have g of their own.
 *
 * @param eta the learning rate
 * @param alpha how fast u follows
 * @param gamma how fast m follows
 * @param averageU whether u is averaged too
 */
public record LocalScgdm(Schedule eta, Schedule alpha, Schedule gamma, boolean averageU) implements Method {
    @Override
    public String name() {
        return "local-scgdm";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "alpha", alpha, "gamma", gamma, "averageU", averageU);
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).fraction("alpha", alpha).fraction("gamma", gamma);
    }

    @Override
    public Replica on(Clients clients) {
        return new State(clients);
    }

    private final class State implements Replica {
        private final Clients k;
        private final Variable w;
        private final Variable u;
        private final Variable m;
        private final Variable g;
        private final Variable gradG;
        private final Variable gradF;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            u = averageU ? k.state("u", k.d()) : k.privateState("u", k.d());
            m = k.state("m", k.n());
            g = k.scratch("g", k.d());
            gradG = k.scratch("grad g", k.d() * k.n());
            gradF = k.scratch("grad f", k.d());
        }

        @Override
        public void initialize(Server server) {
            k.inner(w, g, gradG);
            u.set(g);
            k.outerGradient(u, gradF);
            m.compose(1, gradG, gradF);
        }

        @Override
        public void join() {
            if (!averageU) {
                k.inner(w, g, gradG);
                u.set(g);
            }
        }

        @Override
        public void step(Step t, Server server) {
            k.inner(w, g, gradG);
            u.ema(alpha.at(t), g); // u = (1 - alpha) u + alpha g(W; xi)
            k.outerGradient(u, gradF);
            m.compose(gamma.at(t), gradG, gradF); // m = (1 - gamma) m + gamma grad g (grad f(u) kron I)
            w.add(-eta.at(t), m);
            if (t.isSync()) {
                if (averageU) {
                    server.average(w, m, u);
                } else {
                    server.average(w, m);
                }
            }
        }
    }
}
