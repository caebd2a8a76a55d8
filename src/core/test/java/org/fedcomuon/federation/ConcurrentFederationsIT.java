package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.fedcomuon.testing.Soak;
import org.fedcomuon.testing.SoakReport;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Several federations on one device: each to the bits of running alone, whatever becomes of the others. */
class ConcurrentFederationsIT {
    private static final int AT_ONCE = 8;
    private static final int TAU = 3;

    @TempDir
    private Path directory;

    static Stream<String> devices() {
        return TestDevices.kinds();
    }

    private static Federation.Builder federation(String device, int seed, int rounds) {
        return Federation.of(new RateTestbed(5, 1), AllMethods.all().toList().get(seed % 4))
                .name("federation " + seed)
                .devices(device)
                .threads(2)
                .workers(2)
                .iterations((long) rounds * TAU)
                .tau(TAU)
                .seed(seed);
    }

    /** One that fails in the middle. */
    private static Federation failing(String device, int rounds) {
        var testbed = new RateTestbed(5, 1);
        Problem problem = Problem.of(testbed.layout(), testbed.innerDimension(), 5, k -> new Client() {
            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                testbed.client(k).inner(xi, w, value, jacobian);
                if (k == 3 && xi.draw() == (long) rounds * TAU / 2) {
                    value.set(0, Double.NaN);
                }
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                testbed.client(k).outerGradient(zeta, y, gradient);
            }
        });
        return Federation.of(problem, AllMethods.fedCoMuon())
                .name("failing")
                .devices(device)
                .iterations((long) rounds * TAU)
                .tau(TAU)
                .build();
    }

    @ParameterizedTest
    @MethodSource("devices")
    @Timeout(600)
    @Tag(Soak.TAG)
    void eachToTheBitsOfRunningAlone(String device) throws Exception {
        int rounds = TestDevices.isSimulated(device) ? Soak.times(2, 20) : Soak.times(60, 2000);
        var alone = new ArrayList<String>();
        for (int seed = 0; seed < AT_ONCE; seed++) {
            alone.add(federation(device, seed, rounds).build().run().sha256());
        }
        Path checkpoints = directory.resolve("stopped");
        var runs = new ArrayList<FederationRun>();
        FederationRun failing = failing(device, rounds).start();
        FederationRun stopped = federation(device, 1, rounds)
                .checkpoints(checkpoints, 1)
                .listener(new Listener() {
                    @Override
                    public void onStep(long step) {
                        if (step == TAU) {
                            Thread.currentThread().interrupt(); // which is nobody's business
                        }
                    }
                })
                .build()
                .start();
        stopped.stop();
        for (int seed = 0; seed < AT_ONCE; seed++) {
            runs.add(federation(device, seed, rounds).build().start());
        }
        for (int seed = 0; seed < AT_ONCE; seed++) {
            try (FederationRun run = runs.get(seed)) {
                assertThat(run.result().get(5, TimeUnit.MINUTES).sha256()).isEqualTo(alone.get(seed));
            }
        }
        assertThatThrownBy(() -> failing.result().get(5, TimeUnit.MINUTES))
                .isInstanceOf(ExecutionException.class)
                .hasCauseInstanceOf(ClientFaultException.class);
        assertThat(stopped.result().get(5, TimeUnit.MINUTES).stopped()).isTrue();
        assertThat(federation(device, 1, rounds)
                        .resume(checkpoints)
                        .build()
                        .run()
                        .sha256())
                .isEqualTo(alone.get(1));
        SoakReport.row(
                SoakReport.Table.FEDERATIONS,
                device,
                "%,d each".formatted(rounds),
                "%d, one that fails, one that is stopped".formatted(AT_ONCE),
                "%d of %d".formatted(AT_ONCE, AT_ONCE));
    }
}
