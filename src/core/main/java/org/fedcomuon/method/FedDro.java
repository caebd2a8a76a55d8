package org.fedcomuon.method;

import java.util.Map;

/**
 * FedDRO (Khanduri et al., 2023): compositional gradient steps for {@code f(mean_k g_k(W))}, where the d inner values
 * are averaged in every step and W once a round. For a small d an exchange of them costs next to nothing, and it
 * removes the bias of clients that each know their own g alone.
 *
 * <p>Its objective is another one than {@code mean_k f(g_k(W))} of the other methods: f of the mean of g over all
 * clients. The two agree where f is affine. It is the one to have where g are moments of all data, such as the scores
 * of an AUC, and does not weigh clients by their losses.
 *
 * <p>The tracker is the plain moving average of the other compositional methods.
 *
 * @param eta the learning rate
 * @param alpha how fast u follows
 */
public record FedDro(Schedule eta, Schedule alpha) implements Method {
    @Override
    public String name() {
        return "feddro";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "alpha", alpha);
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).fraction("alpha", alpha);
    }

    @Override
    public Replica on(Clients clients) {
        return new State(clients);
    }

    private final class State implements Replica {
        private final Clients k;
        private final Variable w;
        private final Variable u;
        private final Variable g;
        private final Variable gradG;
        private final Variable gradF;
        private final Variable gradient;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            u = k.state("u", k.d());
            g = k.scratch("g", k.d());
            gradG = k.scratch("grad g", k.d() * k.n());
            gradF = k.scratch("grad f", k.d());
            gradient = k.scratch("gradient", k.n());
        }

        @Override
        public void initialize(Server server) {
            k.inner(w, g, gradG);
            u.set(g);
            server.average(u);
        }

        @Override
        public void step(Step t, Server server) {
            k.inner(w, g, gradG);
            u.ema(alpha.at(t), g); // u_k = (1 - alpha) u + alpha g_k(W_k; xi)
            server.average(u); // u = avg u_k, in every step
            k.outerGradient(u, gradF);
            gradient.compose(1, gradG, gradF);
            w.add(-eta.at(t), gradient); // W -= eta grad g_k(W; xi) (grad f(u) kron I)
            if (t.isSync()) {
                server.average(w);
            }
        }
    }
}
