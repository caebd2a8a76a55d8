package org.fedcomuon.method;

import java.util.Map;

/**
 * FedAvg: stochastic gradient steps on the plain loss, and the average of W.
 *
 * @param eta the learning rate
 */
public record FedAvg(Schedule eta) implements Method {
    @Override
    public String name() {
        return "fedavg";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta);
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta);
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
        private final Variable gradient;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            gradient = k.scratch("gradient", k.n());
        }

        @Override
        public void step(Step t, Server server) {
            k.gradient(w, gradient);
            w.add(-eta.at(t), gradient); // W -= eta grad l(W; B)
            if (t.isSync()) {
                server.average(w);
            }
        }
    }
}
