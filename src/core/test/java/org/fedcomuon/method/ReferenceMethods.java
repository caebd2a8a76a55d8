package org.fedcomuon.method;

import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.Set;
import java.util.stream.IntStream;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/** Every method, line by line as its pseudo-code has it. */
final class ReferenceMethods {
    private ReferenceMethods() {}

    /** Mistakes that look right and are not: a test that accepts the method must not accept these. */
    enum Mistake {
        AVERAGES_U,
        AVERAGES_V_AND_H,
        AVERAGES_THE_OLD_ITERATE,
        AVERAGES_W_AFTER_THE_TRACKERS,
        KEEPS_M_LOCAL,
        AVERAGES_M_BEFORE_THE_TRACKERS,
        AVERAGES_THE_INITIAL_M,
        KEEPS_THE_INITIAL_M_LOCAL,
        ONE_INITIAL_SAMPLE,
        PROJECTS_NOTHING
    }

    static ReferenceMethod<?> of(Method method, Testbed bed, long seed, double[] weights, Mistake... mistakes) {
        Set<Mistake> wrong = EnumSet.noneOf(Mistake.class);
        wrong.addAll(Arrays.asList(mistakes));
        return switch (method) {
            case FedCoMuon m -> new CoMuon(m, bed, seed, weights, wrong);
            case FedCoMuonVr m -> new CoMuonVr(m, bed, seed, weights, wrong);
            case FedAvg m -> new Avg(m, bed, seed, weights);
            case FedMaml m -> new Maml(m, bed, seed, weights);
            case FedMuon m -> new PlainMuon(m, bed, seed, weights);
            case FedMuonLga m -> new Lga(m, bed, seed, weights);
            case FedMuonBc m -> new Bc(m, bed, seed, weights);
            case ComFedL m -> new ComFed(m, bed, seed, weights);
            case LocalScgdm m -> new Scgdm(m, bed, seed, weights);
            case FedProx m -> new Prox(m, bed, seed, weights);
            case Scaffold m -> new Variates(m, bed, seed, weights);
            case FedOpt m -> new Opt(m, bed, seed, weights);
            case Ef21Muon m -> new Ef21(m, bed, seed, weights);
            case LocalMoml m -> new Moml(m, bed, seed, weights);
            case FgdroKl m -> new Kl(m, bed, seed, weights);
            case FgdroCvar m -> new Cvar(m, bed, seed, weights);
            case FedDro m -> new Dro(m, bed, seed, weights);
            default -> throw new AssertionError(method.name());
        };
    }

    private static final class CoMuon extends ReferenceMethod<FedCoMuon> {
        private final ReferenceMuon polar;
        private final Set<Mistake> wrong;
        private final double[][] u = each("u", d);
        private final double[][] m = each("M", n);

        CoMuon(FedCoMuon method, Testbed bed, long seed, double[] weights, Set<Mistake> wrong) {
            super(method, bed, seed, weights);
            polar = new ReferenceMuon(method.muon(), this, false);
            this.wrong = wrong;
        }

        @Override
        void initialize() {
            for (int k = 0; k < clients; k++) {
                var xi = xi(k);
                u[k] = bed.inner(k, xi, w[k]);
                m[k] = compose(bed.jacobian(k, xi, w[k]), bed.outerGradient(k, zeta(k), u[k]));
                polar.observe(k, m[k]);
            }
            if (wrong.contains(Mistake.AVERAGES_THE_INITIAL_M)) {
                average(m);
            }
        }

        @Override
        void step(Method.Step t) {
            double alpha = method.alpha().at(t);
            double beta = method.beta().at(t);
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    polar.step(k, method.eta().at(t), polar.ahead(k, beta, 1 - beta, m[k]), w[k]);
                    var xi = xi(k);
                    combine(alpha, bed.inner(k, xi, w[k]), 1 - alpha, u[k]);
                    double[] z = compose(bed.jacobian(k, xi, w[k]), bed.outerGradient(k, zeta(k), u[k]));
                    combine(beta, z, 1 - beta, m[k]);
                    polar.observe(k, z);
                }
            }
            if (sync(t)) {
                average(w);
                if (!wrong.contains(Mistake.KEEPS_M_LOCAL)) {
                    average(m);
                }
                if (wrong.contains(Mistake.AVERAGES_U)) {
                    average(u);
                }
            }
        }
    }

    private static final class CoMuonVr extends ReferenceMethod<FedCoMuonVr> {
        private final ReferenceMuon polar;
        private final Set<Mistake> wrong;
        private final double[][] old = each("Wold", n);
        private final double[][] u = each("u", d);
        private final double[][] v = each("v", d);
        private final double[][] h = each("H", d * n);
        private final double[][] m = each("M", n);

        CoMuonVr(FedCoMuonVr method, Testbed bed, long seed, double[] weights, Set<Mistake> wrong) {
            super(method, bed, seed, weights);
            polar = new ReferenceMuon(method.muon(), this, false);
            this.wrong = wrong;
        }

        @Override
        void initialize() {
            int b = wrong.contains(Mistake.ONE_INITIAL_SAMPLE) ? 1 : method.initialSamples();
            for (int k = 0; k < clients; k++) {
                for (int j = 0; j < b; j++) {
                    var xi = xi(k);
                    combine(1.0 / b, bed.inner(k, xi, w[k]), 1, u[k]);
                    combine(1.0 / b, flat(bed.jacobian(k, xi, w[k])), 1, h[k]);
                }
                for (int j = 0; j < b; j++) {
                    combine(1.0 / b, bed.outerGradient(k, zeta(k), u[k]), 1, v[k]);
                }
                m[k] = compose(components(h[k]), v[k]);
                polar.observe(k, m[k]);
                old[k] = w[k].clone();
            }
            if (!wrong.contains(Mistake.KEEPS_THE_INITIAL_M_LOCAL)) {
                average(m);
            }
        }

        @Override
        void step(Method.Step t) {
            double ahead = method.rho().at(t);
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    polar.step(k, method.eta().at(t), polar.ahead(k, ahead, 1 - ahead, m[k]), w[k]);
                }
            }
            boolean late = wrong.contains(Mistake.AVERAGES_W_AFTER_THE_TRACKERS);
            if (sync(t) && !late) {
                average(w);
            }
            if (sync(t) && wrong.contains(Mistake.AVERAGES_THE_OLD_ITERATE)) {
                average(old);
            }
            if (sync(t) && wrong.contains(Mistake.AVERAGES_M_BEFORE_THE_TRACKERS)) {
                average(m);
            }
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    track(k, t);
                }
            }
            if (sync(t) && late) {
                average(w);
            }
            if (sync(t)
                    && !wrong.contains(Mistake.KEEPS_M_LOCAL)
                    && !wrong.contains(Mistake.AVERAGES_M_BEFORE_THE_TRACKERS)) {
                average(m);
            }
            if (sync(t) && wrong.contains(Mistake.AVERAGES_U)) {
                average(u);
            }
            if (sync(t) && wrong.contains(Mistake.AVERAGES_V_AND_H)) {
                average(v);
                average(h);
            }
        }

        private void track(int k, Method.Step t) {
            var xi = xi(k);
            var zeta = zeta(k);
            double[] before = u[k];
            u[k] = storm(method.alpha().at(t), bed.inner(k, xi, w[k]), u[k], bed.inner(k, xi, old[k]));
            v[k] = project(
                    method.outerRadius(),
                    storm(
                            method.beta().at(t),
                            bed.outerGradient(k, zeta, u[k]),
                            v[k],
                            bed.outerGradient(k, zeta, before)));
            h[k] = project(
                    method.innerRadius(),
                    storm(
                            method.gamma().at(t),
                            flat(bed.jacobian(k, xi, w[k])),
                            h[k],
                            flat(bed.jacobian(k, xi, old[k]))));
            double rho = method.rho().at(t);
            double[] z = compose(components(h[k]), v[k]);
            combine(rho, z, 1 - rho, m[k]);
            polar.observe(k, z);
            old[k] = w[k].clone();
        }

        /** {@code now + (1 - a)(estimate - before)}. */
        private static double[] storm(double a, double[] now, double[] estimate, double[] before) {
            var next = new double[now.length];
            for (int e = 0; e < next.length; e++) {
                next[e] = now[e] + (1 - a) * (estimate[e] - before[e]);
            }
            return next;
        }

        private double[] project(double radius, double[] x) {
            double norm = ReferenceMatrix.norm(x);
            if (norm > radius && !wrong.contains(Mistake.PROJECTS_NOTHING)) {
                combine(0, x, radius / norm, x);
            }
            return x;
        }

        private double[] flat(double[][] components) {
            var all = new double[d * n];
            for (int i = 0; i < d; i++) {
                System.arraycopy(components[i], 0, all, i * n, n);
            }
            return all;
        }

        private double[][] components(double[] flat) {
            var each = new double[d][];
            for (int i = 0; i < d; i++) {
                each[i] = Arrays.copyOfRange(flat, i * n, (i + 1) * n);
            }
            return each;
        }
    }

    private static final class Avg extends ReferenceMethod<FedAvg> {
        Avg(FedAvg method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        @Override
        void step(Method.Step t) {
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    combine(-method.eta().at(t), gradient(k, w[k]), 1, w[k]);
                }
            }
            if (sync(t)) {
                average(w);
            }
        }
    }

    private static final class Maml extends ReferenceMethod<FedMaml> {
        Maml(FedMaml method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        @Override
        void step(Method.Step t) {
            double a = method.inner();
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    double[] adapted = w[k].clone();
                    combine(-a, gradient(k, w[k]), 1, adapted);
                    double[] gradient = gradient(k, adapted);
                    if (!method.firstOrder()) {
                        combine(-a, bed.hessianProduct(k, xi(k), w[k], gradient), 1, gradient);
                    }
                    combine(-method.outer().at(t), gradient, 1, w[k]);
                }
            }
            if (sync(t)) {
                average(w);
            }
        }
    }

    private static final class PlainMuon extends ReferenceMethod<FedMuon> {
        private final ReferenceMuon polar;
        private final double[][] m = each("M", n);

        PlainMuon(FedMuon method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
            polar = new ReferenceMuon(method.muon(), this, false);
        }

        @Override
        void initialize() {
            for (int k = 0; k < clients; k++) {
                m[k] = gradient(k, w[k]);
                polar.observe(k, m[k]);
            }
        }

        @Override
        void step(Method.Step t) {
            double beta = method.beta().at(t);
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    polar.step(k, method.eta().at(t), polar.ahead(k, beta, 1 - beta, m[k]), w[k]);
                    double[] z = gradient(k, w[k]);
                    combine(beta, z, 1 - beta, m[k]);
                    polar.observe(k, z);
                }
            }
            if (sync(t)) {
                average(w);
                average(m);
            }
        }
    }

    private static final class Lga extends ReferenceMethod<FedMuonLga> {
        private final ReferenceMuon polar;
        private final double[][] m = each("M", n);
        private final double[] direction = shared("D", n);
        private final double[] x = shared("x", n);
        private double path;

        Lga(FedMuonLga method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
            polar = new ReferenceMuon(method.muon(), this, false);
        }

        @Override
        void initialize() {
            combine(1, w[0], 0, x);
        }

        @Override
        void step(Method.Step t) {
            double eta = method.eta().at(t);
            double alpha = method.alpha().at(t);
            path += eta;
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    double[] z = gradient(k, w[k]);
                    combine(1, z, method.beta().at(t), m[k]);
                    polar.observe(k, z);
                    double[] ahead = polar.ahead(k, 1, method.beta().at(t), m[k]);
                    polar.step(k, eta * (1 - alpha), ahead, w[k]);
                    combine(-eta * alpha, direction, 1, w[k]);
                }
            }
            if (sync(t)) {
                average(w);
                average(m);
                for (int e = 0; e < n; e++) {
                    direction[e] = -(w[0][e] - x[e]) / path;
                    x[e] = w[0][e];
                }
                path = 0;
            }
        }
    }

    private static final class Bc extends ReferenceMethod<FedMuonBc> {
        private final ReferenceMuon polar;
        private final double[][] m = each("M", n);
        private final double[][] own = each("C_k", n);
        private final double[] common = shared("C", n);

        Bc(FedMuonBc method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
            polar = new ReferenceMuon(method.muon(), this, false);
        }

        @Override
        void step(Method.Step t) {
            double alpha = method.alpha().at(t);
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    double[] z = gradient(k, w[k]);
                    combine(alpha, z, 1 - alpha, m[k]);
                    polar.observe(k, z);
                    double[] corrected = polar.ahead(k, alpha, 1 - alpha, m[k]);
                    combine(-1, own[k], 1, corrected);
                    combine(1, common, 1, corrected);
                    polar.step(k, method.eta().at(t), corrected, w[k]);
                }
            }
            if (sync(t)) {
                var change = new double[clients][];
                for (int k = 0; k < clients; k++) {
                    change[k] = m[k].clone();
                    combine(-1, own[k], 1, change[k]);
                }
                combine(share(), mean(change), 1, common);
                for (int k = 0; k < clients; k++) {
                    if (active(k)) {
                        own[k] = m[k].clone();
                    }
                }
                average(w);
            }
        }
    }

    private static final class ComFed extends ReferenceMethod<ComFedL> {
        ComFed(ComFedL method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        @Override
        void step(Method.Step t) {
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    var xi = xi(k);
                    double[] y = bed.inner(k, xi, w[k]);
                    double[] gradient = compose(bed.jacobian(k, xi, w[k]), bed.outerGradient(k, zeta(k), y));
                    combine(-method.eta().at(t), gradient, 1, w[k]);
                }
            }
            if (sync(t)) {
                average(w);
            }
        }
    }

    private static final class Scgdm extends ReferenceMethod<LocalScgdm> {
        private final double[][] u = each("u", d);
        private final double[][] m = each("m", n);

        Scgdm(LocalScgdm method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        @Override
        void initialize() {
            for (int k = 0; k < clients; k++) {
                var xi = xi(k);
                u[k] = bed.inner(k, xi, w[k]);
                m[k] = compose(bed.jacobian(k, xi, w[k]), bed.outerGradient(k, zeta(k), u[k]));
            }
        }

        @Override
        void step(Method.Step t) {
            double alpha = method.alpha().at(t);
            double gamma = method.gamma().at(t);
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    var xi = xi(k);
                    combine(alpha, bed.inner(k, xi, w[k]), 1 - alpha, u[k]);
                    double[] gradient = compose(bed.jacobian(k, xi, w[k]), bed.outerGradient(k, zeta(k), u[k]));
                    combine(gamma, gradient, 1 - gamma, m[k]);
                    combine(-method.eta().at(t), m[k], 1, w[k]);
                }
            }
            if (sync(t)) {
                average(w);
                average(m);
                if (method.averageU()) {
                    average(u);
                }
            }
        }
    }

    private static final class Prox extends ReferenceMethod<FedProx> {
        private final double[] x = shared("x", n);

        Prox(FedProx method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        @Override
        void initialize() {
            combine(1, w[0], 0, x);
        }

        @Override
        void step(Method.Step t) {
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    double[] gradient = gradient(k, w[k]);
                    combine(method.mu(), w[k], 1, gradient);
                    combine(-method.mu(), x, 1, gradient);
                    combine(-method.eta().at(t), gradient, 1, w[k]);
                }
            }
            if (sync(t)) {
                average(w);
                combine(1, w[0], 0, x);
            }
        }
    }

    private static final class Variates extends ReferenceMethod<Scaffold> {
        private final double[][] own = each("c_k", n);
        private final double[] common = shared("c", n);
        private final double[] x = shared("x", n);
        private double path;

        Variates(Scaffold method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        @Override
        void initialize() {
            combine(1, w[0], 0, x);
        }

        @Override
        void step(Method.Step t) {
            double eta = method.eta().at(t);
            path += eta;
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    double[] gradient = gradient(k, w[k]);
                    combine(-1, own[k], 1, gradient);
                    combine(1, common, 1, gradient);
                    combine(-eta, gradient, 1, w[k]);
                }
            }
            if (sync(t)) {
                var change = new double[clients][n];
                for (int k = 0; k < clients; k++) {
                    if (active(k)) {
                        double[] renewed = own[k].clone();
                        combine(-1, common, 1, renewed);
                        combine(1 / path, x, 1, renewed);
                        combine(-1 / path, w[k], 1, renewed);
                        change[k] = renewed.clone();
                        combine(-1, own[k], 1, change[k]);
                        own[k] = renewed;
                    }
                }
                combine(share(), mean(change), 1, common);
                combine(method.serverRate(), mean(w), 1 - method.serverRate(), x);
                send(x, w);
                path = 0;
            }
        }
    }

    private static final class Opt extends ReferenceMethod<FedOpt> {
        private final double[] x = shared("x", n);
        private final double[] m = shared("m", n);
        private final double[] v = shared("v", n);

        Opt(FedOpt method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        @Override
        void initialize() {
            combine(1, w[0], 0, x);
            Arrays.fill(v, method.epsilon() * method.epsilon());
        }

        @Override
        void step(Method.Step t) {
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    combine(-method.eta().at(t), gradient(k, w[k]), 1, w[k]);
                }
            }
            if (sync(t)) {
                double[] delta = mean(w);
                combine(-1, x, 1, delta);
                combine(1 - method.beta1(), delta, method.beta1(), m);
                for (int e = 0; e < n; e++) {
                    double square = delta[e] * delta[e];
                    v[e] = method.rule() == Device.AdaptiveRule.ADAM
                            ? method.beta2() * v[e] + (1 - method.beta2()) * square
                            : v[e] - (1 - method.beta2()) * square * Math.signum(v[e] - square);
                    x[e] += method.serverEta().at(t) * m[e] / (Math.sqrt(v[e]) + method.epsilon());
                }
                send(x, w);
            }
        }
    }

    private static final class Ef21 extends ReferenceMethod<Ef21Muon> {
        private final ReferenceMuon polar;
        private final double[][] m = each("M", n);
        private final double[][] own = each("G_k", n);
        private final double[] common = shared("G", n);
        private final double[] server = shared("x", n);
        private final double[] sent = shared("model", n);

        Ef21(Ef21Muon method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
            polar = new ReferenceMuon(method.muon(), this, true);
        }

        @Override
        void initialize() {
            combine(1, w[0], 0, server);
            combine(1, w[0], 0, sent);
            for (int k = 0; k < clients; k++) {
                m[k] = gradient(k, w[k]);
                polar.observe(k, m[k]);
                own[k] = m[k].clone();
            }
            combine(1, mean(own), 0, common);
        }

        @Override
        void step(Method.Step t) {
            if (t.t() % t.tau() == 0) {
                polar.step(0, method.eta().at(t), common, server);
                double[] rest = server.clone();
                combine(-1, sent, 1, rest);
                combine(1, compress(method.down(), rest), 1, sent);
                send(sent, w);
            }
            double beta = method.beta().at(t);
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    double[] z = gradient(k, w[k]);
                    combine(beta, z, 1 - beta, m[k]);
                    polar.observe(k, z);
                }
            }
            if (sync(t)) {
                var message = new double[clients][n];
                for (int k = 0; k < clients; k++) {
                    if (active(k)) {
                        double[] rest = polar.ahead(k, beta, 1 - beta, m[k]);
                        combine(-1, own[k], 1, rest);
                        message[k] = compress(method.up(), rest);
                        combine(1, message[k], 1, own[k]);
                    }
                }
                combine(share(), mean(message), 1, common);
            }
        }

        private double[] compress(Compressor how, double[] x) {
            return compressed(how, bed.layout, x);
        }
    }

    private static final class Moml extends ReferenceMethod<LocalMoml> {
        private final double[][] u = each("u", n);

        Moml(LocalMoml method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        @Override
        void initialize() {
            send(w[0], u);
        }

        @Override
        void step(Method.Step t) {
            double a = method.inner();
            double beta = method.beta().at(t);
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    if (t.t() % t.tau() == 0) { // u is the server's W
                        combine(-a, gradient(k, w[k]), 1, u[k]);
                    }
                    double[] adapted = w[k].clone();
                    combine(-a, gradient(k, w[k]), 1, adapted);
                    combine(beta, adapted, 1 - beta, u[k]);
                    double[] outer = gradient(k, u[k]);
                    if (!method.firstOrder()) {
                        combine(-a, bed.hessianProduct(k, xi(k), w[k], outer), 1, outer);
                    }
                    combine(-method.eta().at(t), outer, 1, w[k]);
                }
            }
            if (sync(t)) {
                average(w);
                send(w[0], u);
            }
        }
    }

    /** With v as it is, not in logarithms. */
    private static final class Kl extends ReferenceMethod<FgdroKl> {
        private final double[][] u = each("u", 1);
        private final double[] s = shared("s", 1);
        private double v;

        Kl(FgdroKl method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        private double exp(int k) {
            return Math.exp(u[k][0] / method.lambda());
        }

        private void renew() {
            var each = new double[clients][1];
            for (int k = 0; k < clients; k++) {
                each[k][0] = exp(k);
            }
            v = mean(each)[0];
            s[0] = method.lambda() * Math.log(v);
        }

        @Override
        void initialize() {
            for (int k = 0; k < clients; k++) {
                u[k][0] = loss(k, w[k]).value;
            }
            renew();
        }

        @Override
        void step(Method.Step t) {
            double alpha = method.alpha().at(t);
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    Loss loss = loss(k, w[k]);
                    u[k][0] = alpha * loss.value + (1 - alpha) * u[k][0];
                    combine(-method.eta().at(t) * Math.min(clients, exp(k) / v), loss.gradient, 1, w[k]);
                }
            }
            if (sync(t)) {
                average(w);
                renew();
            }
        }
    }

    private static final class Cvar extends ReferenceMethod<FgdroCvar> {
        private final double[][] u = each("u", 1);
        private final double[][] s = each("s", 1);

        Cvar(FgdroCvar method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        @Override
        void initialize() {
            for (int k = 0; k < clients; k++) {
                u[k][0] = loss(k, w[k]).value;
                s[k][0] = u[k][0];
            }
            average(s);
        }

        @Override
        void step(Method.Step t) {
            double alpha = method.alpha().at(t);
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    Loss loss = loss(k, w[k]);
                    u[k][0] = alpha * loss.value + (1 - alpha) * u[k][0];
                    double above = u[k][0] - s[k][0];
                    // The derivative of smoothing log(1 + exp(above / smoothing)), or of max(above, 0).
                    double part = method.smoothing() == 0
                            ? Math.max(0, Math.signum(above))
                            : 0.5 + 0.5 * Math.tanh(above / method.smoothing() / 2);
                    double weight = part / (1 - method.level());
                    combine(-method.eta().at(t) * weight, loss.gradient, 1, w[k]);
                    s[k][0] -= method.thresholdEta().at(t) * (1 - weight);
                }
            }
            if (sync(t)) {
                average(w);
                average(s);
            }
        }
    }

    private static final class Dro extends ReferenceMethod<FedDro> {
        private final double[][] u = each("u", d);

        Dro(FedDro method, Testbed bed, long seed, double[] weights) {
            super(method, bed, seed, weights);
        }

        @Override
        void initialize() {
            for (int k = 0; k < clients; k++) {
                u[k] = bed.inner(k, xi(k), w[k]);
            }
            average(u);
        }

        @Override
        void step(Method.Step t) {
            double alpha = method.alpha().at(t);
            var jacobians = new double[clients][][];
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    var xi = xi(k);
                    jacobians[k] = bed.jacobian(k, xi, w[k]);
                    combine(alpha, bed.inner(k, xi, w[k]), 1 - alpha, u[k]);
                }
            }
            average(u);
            for (int k = 0; k < clients; k++) {
                if (active(k)) {
                    double[] outer = bed.outerGradient(k, zeta(k), u[k]);
                    combine(-method.eta().at(t), compose(jacobians[k], outer), 1, w[k]);
                }
            }
            if (sync(t)) {
                average(w);
            }
        }
    }

    /** C(x), block by block. */
    static double[] compressed(Compressor how, Layout layout, double[] x) {
        var result = new double[x.length];
        for (int position = 0; position < layout.blocks().size(); position++) {
            Block block = layout.blocks().get(position);
            int from = Math.toIntExact(layout.offset(position));
            double[] part = Arrays.copyOfRange(x, from, from + Math.toIntExact(block.size()));
            double[] kept = switch (how) {
                case Compressor.None none -> part;
                case Compressor.TopK top -> largest(top.share(), part);
                case Compressor.LowRank low ->
                    block.update() == Block.Update.ORTHOGONAL
                                    && (long) low.rank() * (block.rows() + block.cols()) < block.size()
                            ? ReferenceMatrix.lowRank(part, block.rows(), block.cols(), low.rank())
                            : part;
            };
            System.arraycopy(kept, 0, result, from, kept.length);
        }
        return result;
    }

    private static double[] largest(double share, double[] x) {
        var kept = new double[x.length];
        IntStream.range(0, x.length)
                .boxed()
                .sorted(Comparator.comparingDouble(e -> -Math.abs(x[e])))
                .limit(Math.max(1, Math.round(share * x.length)))
                .forEach(e -> kept[e] = x[e]);
        return kept;
    }
}
