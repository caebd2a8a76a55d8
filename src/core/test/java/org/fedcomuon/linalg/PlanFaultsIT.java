package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import java.util.stream.Stream;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A GPU that fails on order in the middle of orthogonalizing: the exception has its type, and nothing is left behind.
 */
class PlanFaultsIT {
    private static final int ORDINAL = 2;
    private static final String NAME = "cudasim:2";
    private static final int ROWS = 130;
    private static final int COLS = 132;
    private static final long SIZE = (long) ROWS * COLS;

    @BeforeEach
    void assumeSimulation() {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
    }

    @AfterEach
    void clear() {
        if (TestDevices.simulated().findAny().isPresent()) {
            Simulator.inject("clear", ORDINAL, 0);
        }
    }

    static Stream<Arguments> faults() {
        Coefficients jordan = Coefficients.jordan(2);
        Stream.Builder<Arguments> all = Stream.builder();
        all.add(Arguments.of(new ExactSvd(), "malloc", DeviceException.OutOfMemory.class));
        all.add(Arguments.of(new ExactSvd(), "cusolver", DeviceException.Fault.class));
        for (Orthogonalizer.Products products : Orthogonalizer.Products.values()) {
            for (Orthogonalizer how : List.of(
                    new NewtonSchulz(jordan, Precision.FP32, products),
                    new GramNewtonSchulz(jordan, Precision.FP32, products))) {
                all.add(Arguments.of(how, "malloc", DeviceException.OutOfMemory.class));
                all.add(Arguments.of(how, "launch", DeviceException.Fault.class));
                if (products == Orthogonalizer.Products.CUBLAS) {
                    all.add(Arguments.of(how, "cublas", DeviceException.Fault.class));
                }
            }
        }
        return all.build();
    }

    /** The first of its calls of that kind fails, then the second, until it has no more. */
    @ParameterizedTest
    @MethodSource("faults")
    void whicheverCallFails(Orthogonalizer how, String what, Class<?> type) {
        int failures = 0;
        boolean done = false;
        for (int call = 1; !done; call++) {
            assertThat(call).isLessThan(100);
            Throwable failure;
            try (Device device = TestDevices.open(NAME)) {
                try (Buffer m = device.allocate("M", ElementType.FLOAT32, SIZE)) {
                    m.copyIn(0, 1f, 2f, 3f);
                    Simulator.inject(what, ORDINAL, call);
                    failure = catchThrowable(() -> step(how, device, m));
                    Simulator.inject("clear", ORDINAL, 0);
                }
                assertThat(device.liveBytes()).as("%s number %d", what, call).isZero();
            }
            assertThat(Simulator.liveBytes(ORDINAL))
                    .as("%s number %d", what, call)
                    .isZero();
            done = failure == null;
            if (!done) {
                failures++;
                // A library that finds no room to start says so, whatever was to fail.
                assertThat(failure)
                        .isInstanceOfAny(type, DeviceException.OutOfMemory.class)
                        .hasMessageContaining(NAME);
            }
        }
        assertThat(failures).isGreaterThan(1);
    }

    /** With a small matrix beside the large one, so that a plan of several is half made. */
    private static void step(Orthogonalizer how, Device device, Buffer m) {
        List<NewtonSchulzSpec.Block> blocks = List.of(
                NewtonSchulzSpec.Block.at(0, ROWS, COLS - 2), NewtonSchulzSpec.Block.at(ROWS * (COLS - 2), 20, 13));
        try (Buffer w = device.allocate("W", ElementType.FLOAT32, SIZE);
                MuonPlan plan = MuonPlan.of(how, device, 1, blocks, ScaleRule.NONE)) {
            plan.step(m.batch(1, SIZE), 0.1, w.batch(1, SIZE));
            device.synchronize();
        }
    }
}
