package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.stream.IntStream;
import org.fedcomuon.data.Batches;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.FedMaml;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests whole problems of the networks: the evaluations of a client, and runs with bit-identical results anywhere. */
class MetaLearningIT {
    private static final List<int[]> CLIENTS = List.of(
            IntStream.range(0, 12).toArray(),
            IntStream.range(12, 20).toArray(),
            IntStream.range(20, 23).toArray());

    private static MetaLearning meta(TinyModels model, Risk risk) {
        return new MetaLearning(model.network, model.examples(23), CLIENTS, 4, Adaptation.exact(0.1), risk);
    }

    private static Classification plain(TinyModels model, Risk risk) {
        return new Classification(model.network, model.examples(23), CLIENTS, 4, risk);
    }

    @Test
    void supportAndQueryAreTheHalvesOfADraw() throws Exception {
        TinyModels model = TinyModels.VIT;
        try (Arena arena = Arena.ofShared()) {
            Point w = model.start(arena);
            Point gradient = model.point(arena);
            Point expected = model.point(arena);
            for (int k = 0; k < CLIENTS.size(); k++) {
                var batches = new Batches(CLIENTS.get(k), 8);
                for (long draw = 0; draw < 3; draw++) {
                    var xi = new Sample(1, k, Sample.Stream.INNER, draw);
                    int[] both = batches.indices(xi);
                    assertThat(both).doesNotHaveDuplicates().hasSize(Math.min(8, CLIENTS.get(k).length));
                    int half = both.length / 2;
                    int[] support = Arrays.copyOf(both, half);
                    int[] query = Arrays.copyOfRange(both, half, both.length);
                    assertThat(support).doesNotContain(query);

                    // By the parts that have been checked: g = l(W - a grad l(W; S); Q).
                    Examples examples = model.examples(23);
                    new NetworkLoss(model.network, examples, sample -> support).evaluate(xi, w, expected);
                    Point adapted = model.point(arena);
                    for (long i = 0; i < adapted.values().length(); i++) {
                        adapted.values()
                                .set(
                                        i,
                                        w.values().get(i)
                                                - 0.1 * expected.values().get(i));
                    }
                    double g =
                            new NetworkLoss(model.network, examples, sample -> query).evaluate(xi, adapted, expected);
                    var value = new float[1];
                    meta(model, Risk.mean()).client(k).inner(xi, w, Floats.of(value), new Jacobian(List.of(gradient)));
                    assertThat(Math.abs(value[0] - g)).isLessThan(1e-5);
                }
            }
        }
    }

    @Test
    void aClientNeedsAnExampleForEach() {
        assertThatThrownBy(() -> new MetaLearning(
                        TinyModels.CNN.network,
                        TinyModels.CNN.examples(3),
                        List.of(new int[] {0, 1}, new int[] {2}),
                        1,
                        Adaptation.exact(0.1),
                        Risk.mean()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("client 1 has 1 example");
    }

    private static Federation.Builder run(Problem problem, Method method, TinyModels model) {
        return Federation.of(problem, method).iterations(7).tau(3).seed(42).initial(model.weights());
    }

    private static Method fedCoMuonVr() {
        return new FedCoMuonVr(
                Schedule.constant(0.02),
                Schedule.constant(0.2),
                Schedule.constant(0.8),
                Schedule.constant(0.9),
                Schedule.constant(0.2),
                Double.POSITIVE_INFINITY,
                Double.POSITIVE_INFINITY,
                1,
                Muon.standard());
    }

    @ParameterizedTest
    @EnumSource
    void theNumberOfWorkersDoesNotChangeABit(TinyModels model) throws Exception {
        var risk = new ExponentialRisk(0.5);
        for (Problem problem : List.of(meta(model, risk), plain(model, risk))) {
            var hashes = new HashSet<String>();
            for (int workers : new int[] {1, 2}) {
                hashes.add(run(problem, fedCoMuonVr(), model)
                        .workers(workers)
                        .build()
                        .run()
                        .sha256());
            }
            assertThat(hashes).hasSize(1);
        }
    }

    @ParameterizedTest
    @EnumSource
    void fedMamlAdaptsByItself(TinyModels model) throws Exception {
        MetaLearning problem = meta(model, Risk.mean());
        var exact = new FedMaml(0.1, Schedule.constant(0.05), false);
        String sha = run(problem.plain(), exact, model).build().run().sha256();
        assertThat(run(plain(model, Risk.mean()), exact, model)
                        .workers(2)
                        .build()
                        .run()
                        .sha256())
                .isEqualTo(sha);
        assertThat(run(problem.plain(), new FedMaml(0.1, Schedule.constant(0.05), true), model)
                        .build()
                        .run()
                        .sha256())
                .isNotEqualTo(sha);
        assertThatThrownBy(() -> run(problem, exact, model).build().run())
                .hasStackTraceContaining("fedmaml needs clients that implement HessianProduct");
    }
}
