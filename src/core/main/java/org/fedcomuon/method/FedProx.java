package org.fedcomuon.method;

import java.util.Map;

/**
 * FedProx: gradient steps on the plain loss plus {@code mu/2 ||W - x||^2}, where x is the round's common start.
 *
 * @param eta the learning rate
 * @param mu how strongly the start of the round holds
 */
public record FedProx(Schedule eta, double mu) implements Method {
    public FedProx {
        Ranges.atLeastZero("mu", mu);
    }

    @Override
    public String name() {
        return "fedprox";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "mu", mu);
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).fraction("eta * mu", eta, mu);
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
        private final Variable w;
        private final Variable x;
        private final Variable gradient;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            x = k.sharedState("x", k.n());
            gradient = k.scratch("gradient", k.n());
        }

        @Override
        public void initialize(Server server) {
            x.set(w);
        }

        @Override
        public void step(Step t, Server server) {
            k.gradient(w, gradient);
            w.ema(eta.at(t) * mu, x); // W -= eta mu (W - x)
            w.add(-eta.at(t), gradient); // W -= eta grad l, taken before the line above
            if (t.isSync()) {
                server.average(w);
                x.set(w);
            }
        }
    }
}
