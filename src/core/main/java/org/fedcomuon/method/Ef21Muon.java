package org.fedcomuon.method;

import java.util.Map;

/**
 * EF21-Muon: Muon with compressed messages and error feedback. The server moves the model along the orthogonal factor
 * of G, its estimate of the average momentum; clients send C(M_k - G_k), which both sides add to their copies, so that
 * what one message leaves out the next ones bring. What the server sends back is compressed alike.
 *
 * <p>With Nesterov's look ahead clients send the momentum that looks ahead in place of M_k; AdamW is the server's, and
 * takes G for the gradient.
 *
 * <p>The model moves once a round. With tau = 1 this is the published algorithm; with more, a client's momentum takes
 * in tau gradients at the same model before it is sent.
 *
 * @param eta the learning rate
 * @param beta how fast M follows
 * @param up what clients send
 * @param down what the server sends
 * @param muon how matrices and vectors step
 */
public record Ef21Muon(Schedule eta, Schedule beta, Compressor up, Compressor down, Muon muon) implements Method {
    @Override
    public String name() {
        return "ef21-muon";
    }

    @Override
    public Map<String, Object> parameters() {
        return Parameters.of("eta", eta, "beta", beta, "up", up, "down", down).and(muon.parameters());
    }

    @Override
    public void validate(long iterations, int tau) {
        new Ranges(iterations).rate("eta", eta).fraction("beta", beta);
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
        private final Compressor.OnDevice toServer;
        private final Compressor.OnDevice toClients;
        private final Variable w;
        private final Variable m;
        private final Variable gk;
        private final Variable g;
        private final Variable x;
        private final Variable model;
        private final Variable gradient;
        private final Variable change;
        private final Variable message;
        private final Variable serverChange;
        private final Variable serverMessage;

        State(Clients k) {
            this.k = k;
            polar = muon.atServer(k);
            toServer = up.on(k);
            toClients = down.on(k);
            w = k.weights();
            m = k.privateState("M", k.n());
            gk = k.privateState("G_k", k.n());
            g = k.sharedState("G", k.n());
            x = k.sharedState("x", k.n());
            model = k.sharedState("model", k.n());
            gradient = k.scratch("gradient", k.n());
            change = k.scratch("M - G_k", k.n());
            message = k.scratch("C(M - G_k)", k.n());
            serverChange = k.sharedScratch("x - model", k.n());
            serverMessage = k.sharedScratch("C(x - model)", k.n());
        }

        @Override
        public void initialize(Server server) {
            join();
            gk.set(m);
            message.set(gk);
            server.average(message);
            g.zero();
            g.add(server.share(), message); // G = avg G_k, with the zeros of those that sit out
            x.set(w);
            model.set(w);
        }

        @Override
        public void join() {
            k.gradient(w, gradient);
            m.set(gradient);
            polar.observe(gradient);
        }

        @Override
        public void step(Step t, Server server) {
            if (t.startsRound()) {
                polar.step(eta.at(t), g, x); // X -= eta U V^T of G
                serverChange.set(x);
                serverChange.add(-1, model);
                toClients.compress(serverChange, serverMessage);
                model.add(1, serverMessage); // W += C(X - W)
                w.receive(model);
            }
            k.gradient(w, gradient);
            m.ema(beta.at(t), gradient); // M_k = (1 - beta) M_k + beta grad l(W; B)
            polar.observe(gradient);
            if (t.isSync()) {
                change.set(polar.ahead(beta.at(t), m));
                change.add(-1, gk);
                toServer.compress(change, message);
                gk.add(1, message); // G_k += C(M_k - G_k)
                server.average(up.bytes(k.layout()), down.bytes(k.layout()), message);
                g.add(server.share(), message); // G += avg C(M_k - G_k)
            }
        }
    }
}
