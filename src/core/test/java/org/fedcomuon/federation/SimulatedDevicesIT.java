package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.method.Method;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Whole runs on GPUs, simulated: everything passes between host and device, and still their number does not change a
 * bit. From the CPU's weights they are as far as rounding takes them: products are summed in another order.
 */
class SimulatedDevicesIT {
    private static final int CLIENTS = 5;

    /** Some hundred operations of single precision a step, on weights near 1, that errors do not grow in. */
    private static final double NEAR = 1e-4;

    @TempDir
    private Path directory;

    @BeforeEach
    void simulate() {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
    }

    static Stream<Method> methods() {
        return AllMethods.all();
    }

    private static Federation.Builder testbed(Method method) {
        return Federation.of(AllMethods.problem(method, CLIENTS), method)
                .iterations(7)
                .tau(3)
                .seed(42);
    }

    /** A run; one that needs NVIDIA's libraries where they are not is no failure. */
    private static Result run(Federation.Builder builder) throws InterruptedException {
        try {
            return builder.build().run();
        } catch (DeviceException.Unsupported e) {
            assumeTrue(false, e.getMessage());
            throw e;
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void theNumberOfDevicesDoesNotChangeABit(Method method) throws Exception {
        Result one = run(testbed(method).devices("cudasim:0").workers(1));
        var hashes = new HashSet<String>();
        hashes.add(one.sha256());
        hashes.add(run(testbed(method).devices("cudasim:0", "cudasim:1")).sha256());
        hashes.add(run(testbed(method)
                        .devices("cudasim:2", "cudasim:0", "cudasim:1")
                        .exchange(Federation.ExchangeKind.PEER))
                .sha256());
        assertThat(hashes).hasSize(1);
        assertThat(distance(one, run(testbed(method)))).isLessThan(NEAR);
    }

    @ParameterizedTest
    @MethodSource("methods")
    void partialParticipationAndWeightsNeitherChangeThat(Method method) throws Exception {
        var results = new ArrayList<Result>();
        for (List<String> devices :
                List.of(List.of("cudasim:0"), List.of("cudasim:0", "cudasim:1"), List.of("cpu:0"))) {
            results.add(run(testbed(method)
                    .devices(devices.toArray(String[]::new))
                    .participation(0.6)
                    .weights(5, 1, 1, 2, 3)));
        }
        assertThat(results.get(1).sha256()).isEqualTo(results.get(0).sha256());
        assertThat(distance(results.get(0), results.get(2))).isLessThan(NEAR);
    }

    private static double distance(Result a, Result b) {
        Floats x = a.weights().values();
        Floats y = b.weights().values();
        double largest = 0;
        for (long i = 0; i < x.length(); i++) {
            largest = Math.max(largest, Math.abs((double) x.get(i) - y.get(i)));
        }
        return largest;
    }

    @Test
    void evaluatesTheAverageWithoutDisturbingTheRun() throws Exception {
        var seen = new ArrayList<Float>();
        Result watched = run(testbed(AllMethods.fedCoMuon())
                .devices("cudasim:0", "cudasim:1")
                .evaluate(1, (step, average) -> {
                    seen.add(average.values().get(3));
                    return Map.of();
                }));
        assertThat(watched.sha256())
                .isEqualTo(run(testbed(AllMethods.fedCoMuon()).devices("cudasim:0"))
                        .sha256());
        assertThat(seen).hasSize(8).doesNotHaveDuplicates();
        assertThat(seen.getLast()).isEqualTo(watched.weights().values().get(3));
    }

    @Test
    void goesOnFromACheckpointOnOtherDevices() throws Exception {
        Result whole = run(testbed(AllMethods.fedCoMuonVr()).devices("cudasim:0"));
        Path here = directory.resolve("five");
        run(testbed(AllMethods.fedCoMuonVr())
                .iterations(5)
                .devices("cudasim:0", "cudasim:1")
                .checkpoints(here, 1));
        Result rest = run(testbed(AllMethods.fedCoMuonVr())
                .devices("cudasim:1", "cudasim:2", "cudasim:3")
                .resume(here));
        assertThat(rest.sha256()).isEqualTo(whole.sha256());
        Result onCpu = run(testbed(AllMethods.fedCoMuonVr()).resume(here));
        assertThat(distance(onCpu, whole)).isLessThan(NEAR);
    }
}
