package org.fedcomuon.method;

import java.util.Map;

/**
 * ComFedL: a stochastic gradient step on the compositional objective from one sample, without tracker or momentum: y
 * and the Jacobian share a batch, so the gradient is biased.
 *
 * @param eta the learning rate
 */
public record ComFedL(Schedule eta) implements Method {
    @Override
    public String name() {
        return "comfedl";
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
    public Replica on(Clients clients) {
        return new State(clients);
    }

    private final class State implements Replica {
        private final Clients k;
        private final Variable w;
        private final Variable y;
        private final Variable jacobian;
        private final Variable gradF;
        private final Variable gradient;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            y = k.scratch("g", k.d());
            jacobian = k.scratch("grad g", k.d() * k.n());
            gradF = k.scratch("grad f", k.d());
            gradient = k.scratch("gradient", k.n());
        }

        @Override
        public void step(Step t, Server server) {
            k.inner(w, y, jacobian); // y = g(W; xi), J = grad g(W; xi)
            k.outerGradient(y, gradF);
            gradient.compose(1, jacobian, gradF);
            w.add(-eta.at(t), gradient); // W -= eta J (grad f(y) kron I)
            if (t.isSync()) {
                server.average(w);
            }
        }
    }
}
