package org.fedcomuon.outside;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.Map;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.method.Variable;
import org.fedcomuon.problem.MatrixQuadratics;
import org.fedcomuon.problem.Risk;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A Muon method that is none of the library's, written with what the library exports and nothing else. */
class OutsideMethodIT {
    // @start region="method"
    /** Heavy-ball momentum with the orthogonal factor of the sum, which is averaged with W. */
    record HeavyBallMuon(Schedule eta, Schedule keep, Muon muon) implements Method {
        @Override
        public String name() {
            return "heavy-ball-muon";
        }

        @Override
        public Map<String, Object> parameters() {
            return Parameters.of("eta", eta, "keep", keep).and(muon.parameters());
        }

        @Override
        public void validate(long iterations, int tau) {
            new Ranges(iterations).rate("eta", eta).fraction("keep", keep);
            muon.validate(eta, iterations);
        }

        @Override
        public boolean isSingleLevel() {
            return true;
        }

        @Override
        public Replica on(Clients k) {
            Muon.Mover polar = muon.on(k);
            Variable w = k.weights();
            Variable m = k.state("M", k.n());
            Variable gradient = k.scratch("gradient", k.n());
            return (t, server) -> {
                k.gradient(w, gradient);
                m.accumulate(keep.at(t), gradient); // M = keep M + grad l(W; B)
                polar.observe(gradient);
                polar.step(eta.at(t), polar.aheadOfSum(keep.at(t), m), w); // W -= eta U V^T
                if (t.isSync()) {
                    server.average(w, m);
                }
            };
        }
    }
    // @end

    private static final MatrixQuadratics PROBLEM = new MatrixQuadratics(6, 5, 4, 0.3, 0.05, Risk.mean(), 3);

    private static HeavyBallMuon method(boolean nesterov) {
        Muon muon = Muon.with(new Exact()).withNesterov(nesterov);
        return new HeavyBallMuon(Schedule.cosine(0.05, 0.001), Schedule.constant(0.9), muon);
    }

    private static Federation.Builder federation(Method method) {
        return Federation.of(PROBLEM, method).iterations(200).tau(4).seed(7).participation(0.7);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void runsOnOneDeviceAndOnTwoWithTheSameBits(boolean nesterov) throws Exception {
        Result one = federation(method(nesterov)).devices("cpu:0").build().run();
        Result two =
                federation(method(nesterov)).devices("cpu:0", "cpu:1").build().run();
        assertThat(two.sha256()).isEqualTo(one.sha256());
        var end = new double[20];
        for (int i = 0; i < end.length; i++) {
            end[i] = one.weights().values().get(i);
        }
        double least = PROBLEM.objective(PROBLEM.minimum());
        double start = PROBLEM.objective(new double[20]);
        assertThat((PROBLEM.objective(end) - least) / (start - least)).isBetween(0.0, 0.02);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void resumesItsCheckpoints(boolean nesterov, @TempDir Path directory) throws Exception {
        Result whole = federation(method(nesterov)).build().run();
        Federation[] stopping = new Federation[1];
        stopping[0] = federation(method(nesterov))
                .devices("cpu:0", "cpu:1")
                .checkpoints(directory, 5)
                .listener(new Listener() {
                    @Override
                    public void onStep(long step) {
                        if (step == 90) {
                            stopping[0].stop();
                        }
                    }
                })
                .build();
        assertThat(stopping[0].run().stopped()).isTrue();
        Result resumed = federation(method(nesterov)).resume(directory).build().run();
        assertThat(resumed.sha256()).isEqualTo(whole.sha256());
        assertThatThrownBy(() ->
                        federation(method(!nesterov)).resume(directory).build().run())
                .hasMessageContaining("nesterov");
    }

    @Test
    void theTwoFormsDiffer() throws Exception {
        assertThat(federation(method(true)).build().run().sha256())
                .isNotEqualTo(federation(method(false)).build().run().sha256());
    }

    @Test
    void valuesOutOfRangeAreRefusedByName() {
        var method = new HeavyBallMuon(Schedule.constant(0.1), Schedule.constant(1), Muon.standard());
        assertThatThrownBy(() -> federation(method).build()).hasMessageStartingWith("keep = 1.0");
        var decaying = new HeavyBallMuon(
                Schedule.constant(0.1), Schedule.constant(0.5), Muon.standard().withWeightDecay(10));
        assertThatThrownBy(() -> federation(decaying).build()).hasMessageStartingWith("eta * weightDecay = 0.1");
    }
}
