package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Variable;
import org.junit.jupiter.api.Test;

/**
 * The measurement can tell the algorithms from their plausible mistakes: averaging what must stay local. The whole
 * range of T is {@code fedcomuon reproduce rates}; here it is short, and the mistakes show all the same.
 */
class RatesIT {
    private static final List<Long> LENGTHS = List.of(256L, 512L, 1024L, 2048L, 4096L);

    /** Changes what the replica's server does. */
    private record Wrong(Method right, Function<Clients, Function<Method.Server, Method.Server>> mistake)
            implements Method {
        @Override
        public String name() {
            return right.name() + ", wrong";
        }

        @Override
        public Map<String, Object> parameters() {
            return right.parameters();
        }

        @Override
        public void validate(long iterations, int tau) {
            right.validate(iterations, tau);
        }

        @Override
        public Replica on(Clients clients) {
            Replica replica = right.on(clients);
            Function<Method.Server, Method.Server> wrong = mistake.apply(clients);
            return new Replica() {
                @Override
                public void initialize(Method.Server server) {
                    replica.initialize(server);
                }

                @Override
                public void step(Method.Step t, Method.Server server) {
                    replica.step(t, wrong.apply(server));
                }
            };
        }
    }

    /** Averages {@code more} whenever {@code with} is averaged. */
    private static Function<Clients, Function<Method.Server, Method.Server>> alsoAveraging(
            String with, String... more) {
        return clients -> server -> new Method.Server() {
            @Override
            public void average(Variable... variables) {
                var all = new ArrayList<>(List.of(variables));
                if (all.stream().anyMatch(variable -> variable.name().equals(with))) {
                    for (String name : more) {
                        all.add(clients.state().stream()
                                .filter(variable -> variable.name().equals(name))
                                .findFirst()
                                .orElseThrow());
                    }
                }
                server.average(all.toArray(Variable[]::new));
            }

            @Override
            public void average(long up, long down, Variable... variables) {
                server.average(up, down, variables);
            }

            @Override
            public double share() {
                return server.share();
            }
        };
    }

    private static Rates.Subject wrong(
            Rates.Subject right, Function<Clients, Function<Method.Server, Method.Server>> mistake) {
        return new Rates.Subject(
                right.name() + ", wrong",
                right.orthogonalizer(),
                right.theory(),
                right.least(),
                right.greatest(),
                iterations -> new Wrong(right.method().apply(iterations), mistake),
                right.tau());
    }

    private static RatesReport.Curve measure(Rates.Subject subject) throws InterruptedException {
        return Rates.run(List.of(subject), LENGTHS, 3, line -> {}).curves().getFirst();
    }

    @Test
    void bothMethodsFallAsTheTheoremsSay() throws Exception {
        for (Rates.Subject subject : Rates.subjects()) {
            RatesReport.Curve curve = measure(subject);
            assertThat(curve.slope())
                    .as("%s, %s", curve.method(), curve.orthogonalizer())
                    .isBetween(curve.least(), curve.greatest());
        }
    }

    @Test
    void averagingTheTrackerOfFedCoMuonIsSeen() throws Exception {
        flat(wrong(Rates.fedCoMuon(new Exact()), alsoAveraging("M", "u")));
    }

    @Test
    void averagingTheOldIterateOfFedCoMuonVrIsSeen() throws Exception {
        flat(wrong(Rates.fedCoMuonVr(new Exact()), alsoAveraging("W", "Wold")));
    }

    @Test
    void averagingTheTrackersOfFedCoMuonVrIsSeen() throws Exception {
        flat(wrong(Rates.fedCoMuonVr(new Exact()), alsoAveraging("M", "H", "v")));
    }

    private static void flat(Rates.Subject subject) throws InterruptedException {
        RatesReport.Curve curve = measure(subject);
        assertThat(curve.agrees()).isFalse();
        assertThat(curve.slope()).isGreaterThan(-0.1);
    }

    @Test
    void theSlopeIsThatOfTheLine() {
        var runs = new ArrayList<RatesReport.Run>();
        for (long iterations : LENGTHS) {
            double norm = 3 * Math.pow((double) iterations, -0.4);
            runs.add(new RatesReport.Run(iterations, List.of(norm * 0.9, norm * 1.1)));
        }
        var curve = new RatesReport.Curve("m", "o", -0.4, -0.5, -0.3, runs);
        assertThat(curve.slope()).isCloseTo(-0.4, within(1e-9));
        assertThat(curve.agrees()).isTrue();
    }
}
