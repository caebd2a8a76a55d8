package org.fedcomuon.method;

import java.util.Locale;
import java.util.Map;
import org.fedcomuon.device.Device;

/**
 * FedAdam and FedYogi (FedOpt): gradient steps on the plain loss at the clients; the server takes the average change as
 * a gradient and steps along it by Adam or Yogi.
 *
 * @param rule which of the two
 * @param eta the clients' learning rate
 * @param serverEta the server's learning rate
 * @param beta1 how much of the first moment is kept
 * @param beta2 how much of the second moment is kept
 * @param epsilon how adaptive: added to the root of the second moment, which starts as its square
 */
public record FedOpt(
        Device.AdaptiveRule rule, Schedule eta, Schedule serverEta, double beta1, double beta2, double epsilon)
        implements Method {
    public FedOpt {
        Ranges.fraction("beta1", beta1);
        Ranges.fraction("beta2", beta2);
        Ranges.positiveFinite("epsilon", epsilon);
    }

    @Override
    public String name() {
        return "fed" + rule.name().toLowerCase(Locale.ROOT);
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "serverEta", serverEta, "beta1", beta1, "beta2", beta2, "epsilon", epsilon);
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).rate("serverEta", serverEta);
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
        private final Variable m;
        private final Variable v;
        private final Variable delta;
        private final Variable gradient;

        State(Clients k) {
            this.k = k;
            w = k.weights();
            x = k.sharedState("x", k.n());
            m = k.sharedState("m", k.n());
            v = k.sharedState("v", k.n());
            delta = k.sharedScratch("delta", k.n());
            gradient = k.scratch("gradient", k.n());
        }

        @Override
        public void initialize(Server server) {
            x.set(w);
            v.fill(epsilon * epsilon);
        }

        @Override
        public void step(Step t, Server server) {
            k.gradient(w, gradient);
            w.add(-eta.at(t), gradient);
            if (t.isSync()) {
                server.average(w);
                delta.set(w);
                delta.add(-1, x); // delta = avg W - x
                x.adaptiveStep(rule, beta1, beta2, epsilon, serverEta.at(t), delta, m, v);
                w.receive(x);
            }
        }
    }
}
