package org.fedcomuon.method;

import java.util.Map;

/**
 * FedCoMuon-VR (Algorithm 2): variance-reduced trackers u, v and H of the inner value, the outer gradient and the inner
 * Jacobian, each corrected by the same sample at the previous iterate. Two round trips a round: W before the trackers
 * move, M after; u, v and H stay with their client.
 *
 * <p>The previous iterate of a client is where its trackers were last moved. That is the step before, unless the client
 * has sat out a round: then it is where it left.
 *
 * @param eta the learning rate
 * @param alpha of the tracker u
 * @param beta of the tracker v
 * @param gamma of the tracker H
 * @param rho how fast M follows
 * @param outerRadius C_f, the ball that v is projected onto; infinity for none
 * @param innerRadius C_g, the ball that H is projected onto; infinity for none
 * @param initialSamples b, how many samples the initial trackers are the mean of
 * @param muon how matrices and vectors step
 */
public record FedCoMuonVr(
        Schedule eta,
        Schedule alpha,
        Schedule beta,
        Schedule gamma,
        Schedule rho,
        double outerRadius,
        double innerRadius,
        int initialSamples,
        Muon muon)
        implements Method {
    public FedCoMuonVr {
        Ranges.positive("outerRadius", outerRadius);
        Ranges.positive("innerRadius", innerRadius);
        Ranges.positive("initialSamples", initialSamples);
    }

    /** Creates the method without projections and with one initial sample. */
    public FedCoMuonVr(Schedule eta, Schedule alpha, Schedule beta, Schedule gamma, Schedule rho, Muon muon) {
        this(eta, alpha, beta, gamma, rho, Double.POSITIVE_INFINITY, Double.POSITIVE_INFINITY, 1, muon);
    }

    @Override
    public String name() {
        return "fedcomuon-vr";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "alpha", alpha, "beta", beta, "gamma", gamma, "rho", rho)
                .and("outerRadius", outerRadius)
                .and("innerRadius", innerRadius)
                .and("initialSamples", initialSamples)
                .and(muon.parameters());
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations)
                .rate("eta", eta)
                .fraction("alpha", alpha)
                .fraction("beta", beta)
                .fraction("gamma", gamma)
                .fraction("rho", rho);
        muon.validate(eta, iterations);
    }

    @Override
    public Replica on(Clients clients) {
        return new State(clients);
    }

    private final class State implements Replica {
        private final Clients k;
        private final Muon.Mover polar;
        private final Variable w;
        private final Variable wOld;
        private final Variable u;
        private final Variable v;
        private final Variable h;
        private final Variable m;
        private final Variable g;
        private final Variable gOld;
        private final Variable gradG;
        private final Variable gradGOld;
        private final Variable uNew;
        private final Variable gradF;
        private final Variable gradFOld;

        State(Clients k) {
            this.k = k;
            polar = muon.on(k);
            w = k.weights();
            wOld = k.privateState("Wold", k.n());
            u = k.privateState("u", k.d());
            v = k.privateState("v", k.d());
            h = k.privateState("H", k.d() * k.n());
            m = k.state("M", k.n());
            g = k.scratch("g", k.d());
            gOld = k.scratch("g at Wold", k.d());
            gradG = k.scratch("grad g", k.d() * k.n());
            gradGOld = k.scratch("grad g at Wold", k.d() * k.n());
            uNew = k.scratch("u'", k.d());
            gradF = k.scratch("grad f", k.d());
            gradFOld = k.scratch("grad f of before", k.d());
        }

        @Override
        public void initialize(Server server) {
            join();
            m.compose(1, h, v);
            server.average(m);
        }

        @Override
        public void join() {
            for (int j = 1; j <= initialSamples; j++) { // means, one sample at a time
                k.inner(w, g, gradG);
                u.ema(1.0 / j, g);
                h.ema(1.0 / j, gradG);
            }
            for (int j = 1; j <= initialSamples; j++) {
                k.outerGradient(u, gradF);
                v.ema(1.0 / j, gradF);
            }
            polar.observe(h, v);
            wOld.set(w);
        }

        @Override
        public void step(Step t, Server server) {
            polar.step(eta.at(t), polar.ahead(rho.at(t), m), w); // W -= eta U V^T
            if (t.isSync()) {
                server.average(w); // before the trackers; Wold stays the local one
            }
            k.innerAtTwo(w, g, gradG, wOld, gOld, gradGOld); // the same xi
            uNew.set(u);
            uNew.storm(alpha.at(t), g, gOld); // u' = g(W) + (1 - alpha)(u - g(Wold))
            k.outerGradientAtTwo(uNew, gradF, u, gradFOld); // the same zeta
            u.set(uNew); // not before: a client that fails above keeps trackers that belong together
            v.storm(beta.at(t), gradF, gradFOld); // v = grad f(u') + (1 - beta)(v - grad f(u))
            v.project(outerRadius);
            h.storm(gamma.at(t), gradG, gradGOld); // H = grad g(W) + (1 - gamma)(H - grad g(Wold))
            m.projectCompose(innerRadius, rho.at(t), h, v); // M = (1 - rho) M + rho P[H](v kron I)
            polar.observe(h, v); // for Nesterov and AdamW, which are off in the paper
            wOld.set(w);
            if (t.isSync()) {
                server.average(m); // u, v and H stay local
            }
        }
    }
}
