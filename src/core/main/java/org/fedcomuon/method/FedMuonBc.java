package org.fedcomuon.method;

import java.util.Map;

/**
 * FedMuon-BC: each client's momentum is corrected by how it differed from the federation's at the last exchange, so
 * that local steps are not biased towards the client.
 *
 * @param eta the learning rate
 * @param alpha how fast M follows
 * @param muon how matrices and vectors step
 */
public record FedMuonBc(Schedule eta, Schedule alpha, Muon muon) implements Method {
    @Override
    public String name() {
        return "fedmuon-bc";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "alpha", alpha).and(muon.parameters());
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).fraction("alpha", alpha);
        muon.validate(eta, iterations);
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
        private final Muon.Mover polar;
        private final Variable w;
        private final Variable m;
        private final Variable ck;
        private final Variable c;
        private final Variable gradient;
        private final Variable corrected;
        private final Variable change;

        State(Clients k) {
            this.k = k;
            polar = muon.on(k);
            w = k.weights();
            m = k.privateState("M", k.n());
            ck = k.privateState("C_k", k.n());
            c = k.sharedState("C", k.n());
            gradient = k.scratch("gradient", k.n());
            corrected = k.scratch("M - C_k + C", k.n());
            change = k.scratch("M - C_k", k.n());
        }

        @Override
        public void step(Step t, Server server) {
            k.gradient(w, gradient);
            m.ema(alpha.at(t), gradient); // M_k = (1 - alpha) M_k + alpha grad
            polar.observe(gradient);
            corrected.set(polar.ahead(alpha.at(t), m));
            corrected.add(-1, ck);
            corrected.add(1, c);
            polar.step(eta.at(t), corrected, w); // W -= eta polar(M_k - C_k + C)
            if (t.isSync()) {
                change.set(m);
                change.add(-1, ck);
                ck.set(m); // C_k = M_k
                server.average(w, change);
                c.add(server.share(), change); // C += avg(M_k - C_k); C stays the mean of all C_k
            }
        }
    }
}
