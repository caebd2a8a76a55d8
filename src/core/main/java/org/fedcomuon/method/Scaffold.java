package org.fedcomuon.method;

import java.util.Map;

/**
 * SCAFFOLD: gradient steps on the plain loss, corrected by control variates c_k and c. The variates are renewed by the
 * path of the round (its option II), at no further gradient.
 *
 * @param eta the clients' learning rate
 * @param serverRate how much of the average change of W is taken, 1 for all
 */
public record Scaffold(Schedule eta, double serverRate) implements Method {
    public Scaffold {
        if (!(serverRate > 0 && serverRate <= 1)) {
            throw new IllegalArgumentException(
                    "serverRate = %s; it is to be more than 0 and at most 1".formatted(serverRate));
        }
    }

    @Override
    public String name() {
        return "scaffold";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "serverRate", serverRate);
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
        private final Variable ck;
        private final Variable c;
        private final Variable x;
        private final Variable gradient;
        private final Variable change;
        private final Variable moved;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            ck = k.privateState("c_k", k.n());
            c = k.sharedState("c", k.n());
            x = k.sharedState("x", k.n());
            gradient = k.scratch("gradient", k.n());
            change = k.scratch("change of c_k", k.n());
            moved = k.scratch("x - W", k.n());
        }

        @Override
        public void initialize(Server server) {
            x.set(w);
        }

        @Override
        public void step(Step t, Server server) {
            k.gradient(w, gradient);
            w.add(-eta.at(t), gradient); // W -= eta (grad l - c_k + c)
            w.add(eta.at(t), ck);
            w.add(-eta.at(t), c);
            if (t.isSync()) {
                moved.set(x);
                moved.add(-1, w);
                change.zero();
                change.add(1 / t.sumOverRound(eta), moved); // c_k' - c_k = (x - W) / (tau eta) - c
                change.add(-1, c);
                ck.add(1, change);
                server.average(w, change);
                c.add(server.share(), change); // c += |S|/K avg(c_k' - c_k)
                x.ema(serverRate, w); // x += serverRate (avg W - x)
                w.receive(x);
            }
        }
    }
}
