package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.List;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.TestDevices;
import org.fedcomuon.testing.Trace;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How a GPU computes exact factors: in batches of one size, and without the host. {@link ExactIT} has the results. */
class ExactGpuIT {
    private static final String NAME = "cudasim:2";

    @TempDir
    private Path directory;

    @BeforeEach
    void assumeSimulation() {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
    }

    private Trace stepOf(int clients, int rows, int cols) throws Exception {
        Path file = directory.resolve("%d-%d-%d".formatted(clients, rows, cols));
        long size = (long) rows * cols;
        try (Device device = TestDevices.open(NAME);
                Buffer m = device.allocate("M", ElementType.FLOAT32, clients * size);
                Buffer w = device.allocate("W", ElementType.FLOAT32, clients * size);
                Orthogonalizer.Plan plan =
                        new Exact().plan(device, clients, rows, cols, ElementType.FLOAT32, ScaleRule.NONE)) {
            m.fill(1);
            plan.step(m.batch(clients, size), 0.1, w.batch(clients, size)); // the first one allocates
            device.synchronize();
            Simulator.traced(file, () -> {
                plan.step(m.batch(clients, size), 0.1, w.batch(clients, size));
                return true;
            });
            assertThat(plan.kept()).hasSize(clients).containsOnly(1);
        }
        return Trace.read(file);
    }

    private static List<String> eigenvectors(Trace trace) {
        return trace.work().stream()
                .map(Trace.Work::what)
                .filter(what -> what.contains("cusolverDnXsyevBatched"))
                .toList();
    }

    /** Sixteen small matrices and more are decomposed together, and as many zeros fill up what is missing. */
    @Test
    void theHostWaitsForNothingAndBatchesHaveOneSize() throws Exception {
        for (int clients : new int[] {1, 10, 16, 17}) {
            Trace trace = stepOf(clients, 8, 12);
            assertThat(trace.waits(2)).as("%d clients", clients).isEmpty();
            assertThat(eigenvectors(trace))
                    .as("%d clients", clients)
                    .hasSize(clients > 16 ? 2 : 1)
                    .allMatch(what -> what.contains("16 of 8 x 8"));
        }
        assertThat(eigenvectors(stepOf(5, 140, 150))).hasSize(1).allMatch(what -> what.contains("13 of 140 x 140"));
    }

    /** Without an order from the host: a kernel finds it, and nothing is stepped. */
    @Test
    void eigenvectorsThatDoNotConvergeAreFoundByTheDevice() {
        try (Device device = TestDevices.open(NAME);
                Buffer m = device.allocate("M", ElementType.FLOAT32, 60);
                Buffer w = device.allocate("W", ElementType.FLOAT32, 60);
                Orthogonalizer.Plan plan = new Exact().plan(device, 3, 4, 5, ElementType.FLOAT32, ScaleRule.NONE)) {
            m.fill(1);
            w.fill(2);
            Simulator.inject("cusolver-unconverged", 2, 2);
            plan.step(m.batch(3, 20), 0.5, w.batch(3, 20));
            assertThatThrownBy(device::synchronize)
                    .isInstanceOf(DeviceException.NotFinite.class)
                    .hasMessageContaining("the eigenvectors of client 1 did not converge");
            assertThat(w.toFloats(0, 60)).containsOnly(2);
            plan.step(m.batch(3, 20), 0.5, w.batch(3, 20));
            assertThat(plan.kept()).containsExactly(1, 1, 1);
            assertThat(w.toFloats(0, 60)).doesNotContain(2);
        }
    }
}
