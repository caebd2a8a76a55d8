package org.fedcomuon.method;

import java.util.Map;

/**
 * Local-MOML (Wang, Yuan, Ying and Yang, 2021): memory-based MAML. Every client keeps u, a moving average of its
 * adapted parameters, and takes the outer gradient there, so that small batches do not bias it; W is averaged every
 * round.
 *
 * <p>As in the authors' code (bokun-wang/moml), u begins every round afresh at the adapted common W. There its gradient
 * also carries the factor beta of the moving average, which is part of eta here; and the Hessian is taken on a batch of
 * its own, as in {@link FedMaml}, where the paper takes that of the adaptation.
 *
 * @param inner a, the step of adaptation
 * @param eta the learning rate
 * @param beta how fast u follows
 * @param firstOrder leaves the Hessian out
 */
public record LocalMoml(double inner, Schedule eta, Schedule beta, boolean firstOrder) implements Method {
    public LocalMoml {
        Ranges.positiveFinite("inner", inner);
    }

    @Override
    public String name() {
        return "local-moml";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("inner", inner, "eta", eta, "beta", beta, "firstOrder", firstOrder);
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).fraction("beta", beta);
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
        private final Variable u;
        private final Variable gradient;
        private final Variable curved;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            u = k.state("u", k.n());
            gradient = k.scratch("gradient", k.n());
            curved = k.scratch("Hessian times gradient", k.n());
            if (!firstOrder && !k.hasHessianProduct()) {
                throw new IllegalArgumentException(
                        "local-moml needs clients that implement HessianProduct, or firstOrder");
            }
        }

        @Override
        public void initialize(Server server) {
            u.set(w);
        }

        @Override
        public void step(Step t, Server server) {
            if (t.startsRound()) {
                k.gradient(w, gradient);
                u.add(-inner, gradient); // u = W - a grad l(W; S0)
            }
            k.gradient(w, gradient); // S
            u.ema(beta.at(t), w);
            u.add(-beta.at(t) * inner, gradient); // u = (1 - beta) u + beta (W - a grad l(W; S))
            k.gradient(u, gradient); // Q
            if (!firstOrder) {
                k.hessianProduct(w, gradient, curved);
                gradient.add(-inner, curved); // (I - a hess l(W; S')) grad l(u; Q)
            }
            w.add(-eta.at(t), gradient);
            if (t.isSync()) {
                server.average(w);
                u.receive(w); // the server's W, where the next round begins
            }
        }
    }
}
