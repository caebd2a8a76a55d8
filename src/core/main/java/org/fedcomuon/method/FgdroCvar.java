package org.fedcomuon.method;

import java.util.Map;

/**
 * FGDRO-CVaR (Guo and Yang, 2024): the mean of the largest losses of clients, as {@code min_s s + mean_k max(g_k(W) -
 * s, 0) / (1 - level)}. A client's tracker u follows its loss; clients above the threshold s step, the others do not.
 * The threshold is the server's: it moves with W and is averaged with it, once a round.
 *
 * <p>The maximum has a kink, where its subgradient jumps from 0 to 1; {@code smoothing} makes a smooth step of it, so
 * that a client that is just below the threshold is not silent. 0 is the subgradient.
 *
 * <p>With d > 1 the loss of a client is f of one sample's g, which the problem has to say ({@code Client.outerValue}).
 *
 * @param eta the learning rate of W
 * @param thresholdEta the learning rate of s, in units of the loss
 * @param alpha how fast u follows
 * @param level in [0, 1): the share of clients that is not counted; 0.7 for the mean of the worst 30 percent
 * @param smoothing the distance from the threshold, in units of the loss, within which a client counts partly
 */
public record FgdroCvar(Schedule eta, Schedule thresholdEta, Schedule alpha, double level, double smoothing)
        implements Method {
    public FgdroCvar {
        Ranges.fraction("level", level);
        Ranges.atLeastZero("smoothing", smoothing);
    }

    @Override
    public String name() {
        return "fgdro-cvar";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "thresholdEta", thresholdEta, "alpha", alpha)
                .and("level", level)
                .and("smoothing", smoothing);
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations)
                .rate("eta", eta)
                .rate("thresholdEta", thresholdEta)
                .fraction("alpha", alpha);
    }

    @Override
    public Replica on(Clients clients) {
        return new State(clients);
    }

    private double weight(double loss, double threshold) {
        double above = loss - threshold;
        double counted = smoothing > 0 ? 1 / (1 + Math.exp(-above / smoothing)) : above > 0 ? 1 : 0;
        return counted / (1 - level);
    }

    private final class State implements Replica {
        private final Clients k;
        private final Variable w;
        private final Variable u;
        private final Variable s;
        private final Variable loss;
        private final Variable gradLoss;
        private final Variable weight;
        private final Variable gradient;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            u = k.privateState("u", 1);
            s = k.state("s", 1);
            loss = k.scratch("loss", 1);
            gradLoss = k.scratch("grad loss", k.n());
            weight = k.scratch("weight", 1);
            gradient = k.scratch("gradient", k.n());
        }

        @Override
        public void initialize(Server server) {
            join();
            s.set(u);
            server.average(s); // the threshold begins at the mean loss
        }

        @Override
        public void join() {
            k.loss(w, loss, gradLoss);
            u.set(loss);
        }

        @Override
        public void step(Step t, Server server) {
            k.loss(w, loss, gradLoss);
            u.ema(alpha.at(t), loss); // u = (1 - alpha) u + alpha g(W; xi)
            weight.compute(FgdroCvar.this::weight, u, s); // 1[u > s] / (1 - level), smoothed
            gradient.compose(1, gradLoss, weight);
            w.add(-eta.at(t), gradient); // W -= eta weight grad g(W; xi)
            double rate = thresholdEta.at(t);
            s.compute((threshold, counted) -> threshold - rate * (1 - counted), s, weight); // s -= eta_s (1 - weight)
            if (t.isSync()) {
                server.average(w, s); // u stays local
            }
        }
    }
}
