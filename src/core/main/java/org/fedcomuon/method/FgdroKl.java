package org.fedcomuon.method;

import java.util.Map;

/**
 * FGDRO-KL (Guo and Yang, 2024): the KL-regularised worst case over clients, {@code lambda log mean_k exp(g_k(W) /
 * lambda)}. A client's tracker u follows its loss, and its gradient is weighted by {@code exp(u_k / lambda) / v} with
 * the server's {@code v = mean_k exp(u_k / lambda)}: weights that are 1 on average, so that no exponent has to be
 * capped as in {@link FedCoMuon}'s problem, and learning rates are those of {@link FedAvg}.
 *
 * <p>v is renewed with W, once a round: the paper communicates once in several steps, and keeps moving averages on the
 * clients in between. Here v is exact when it is renewed and stays until the next time, and the gradient is the
 * sample's, without momentum.
 *
 * <p>A weight is at most K, which is the most it can be while v is up to date. Without that bound a loss that rises in
 * a round, by a few lambda, raises its own step exponentially, and so itself, before the server hears of it.
 *
 * <p>The server holds {@code s = lambda log v} instead of v, which would overflow: clients first average u, then
 * {@code exp((u_k - mean u) / lambda)}, whose mean is at least 1. Exponents beyond {@value #LARGEST}, a client that is
 * that many lambda above the others, count as {@value #LARGEST}.
 *
 * <p>With d > 1 the loss of a client is f of one sample's g, which the problem has to say ({@code Client.outerValue}).
 *
 * @param eta the learning rate
 * @param alpha how fast u follows
 * @param lambda how mild: the mean for infinity, the worst client for 0
 */
public record FgdroKl(Schedule eta, Schedule alpha, double lambda) implements Method {
    private static final int LARGEST = 60;

    public FgdroKl {
        Ranges.positiveFinite("lambda", lambda);
    }

    @Override
    public String name() {
        return "fgdro-kl";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "alpha", alpha, "lambda", lambda);
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).fraction("alpha", alpha);
    }

    @Override
    public Replica on(Clients clients) {
        return new State(clients);
    }

    private double exp(double loss, double common) {
        return Math.exp(Math.min(LARGEST, (loss - common) / lambda));
    }

    private final class State implements Replica {
        private final Clients k;
        private final Variable w;
        private final Variable u;
        private final Variable s;
        private final Variable loss;
        private final Variable gradLoss;
        private final Variable weight;
        private final Variable mean;
        private final Variable gradient;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            u = k.privateState("u", 1);
            s = k.sharedState("s", 1);
            loss = k.scratch("loss", 1);
            gradLoss = k.scratch("grad loss", k.n());
            weight = k.scratch("weight", 1);
            mean = k.scratch("mean u", 1);
            gradient = k.scratch("gradient", k.n());
        }

        @Override
        public void initialize(Server server) {
            join();
            mean.set(u);
            server.average(mean);
            renew(server);
        }

        @Override
        public void join() {
            k.loss(w, loss, gradLoss);
            u.set(loss);
        }

        /** {@code s = mean u + lambda log mean exp((u_k - mean u) / lambda)}, which is {@code lambda log v}. */
        private void renew(Server server) {
            weight.compute(FgdroKl.this::exp, u, mean);
            server.average(weight);
            s.compute((average, shift) -> shift + lambda * Math.log(average), weight, mean);
        }

        @Override
        public void step(Step t, Server server) {
            k.loss(w, loss, gradLoss);
            u.ema(alpha.at(t), loss); // u = (1 - alpha) u + alpha g(W; xi)
            weight.compute((tracked, common) -> Math.min(k.total(), exp(tracked, common)), u, s); // exp(u / lambda) / v
            gradient.compose(1, gradLoss, weight);
            w.add(-eta.at(t), gradient); // W -= eta exp(u / lambda) / v grad g(W; xi)
            if (t.isSync()) {
                mean.set(u); // u stays local
                server.average(w, mean);
                renew(server);
            }
        }
    }
}
