package org.fedcomuon.method;

import java.util.Map;

/**
 * FedMAML: steps on the loss after one step of adaptation, {@code l(W - a grad l(W; B1); B2)}, and the average of W.
 * The exact gradient takes a Hessian-vector product on a third batch, as {@link org.fedcomuon.problem.HessianProduct}.
 *
 * @param inner a, the step of adaptation
 * @param outer b, the learning rate
 * @param firstOrder leaves the Hessian out
 */
public record FedMaml(double inner, Schedule outer, boolean firstOrder) implements Method {
    public FedMaml {
        Ranges.positiveFinite("inner", inner);
    }

    @Override
    public String name() {
        return "fedmaml";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("inner", inner, "outer", outer, "firstOrder", firstOrder);
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("outer", outer);
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
        private final Variable adapted;
        private final Variable gradient;
        private final Variable curved;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            adapted = k.scratch("adapted W", k.n());
            gradient = k.scratch("gradient", k.n());
            curved = k.scratch("Hessian times gradient", k.n());
            if (!firstOrder && !k.hasHessianProduct()) {
                throw new IllegalArgumentException(
                        "fedmaml needs clients that implement HessianProduct, or firstOrder");
            }
        }

        @Override
        public void step(Step t, Server server) {
            k.gradient(w, gradient); // B1
            adapted.set(w);
            adapted.add(-inner, gradient); // W~ = W - a grad l(W; B1)
            k.gradient(adapted, gradient); // B2
            if (!firstOrder) {
                k.hessianProduct(w, gradient, curved); // B3
                gradient.add(-inner, curved); // (I - a hess l(W; B3)) grad l(W~; B2)
            }
            w.add(-outer.at(t), gradient);
            if (t.isSync()) {
                server.average(w);
            }
        }
    }
}
