package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;
import org.fedcomuon.internal.StreamTriad;
import org.fedcomuon.testing.GpuReport;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Figures for the report: how fast, and how much memory. Nothing is asserted of the time; of a simulated device it says
 * nothing at all.
 */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#gpus")
class FiguresGpuIT {
    private static final int CLIENTS = 10;
    private static final Coefficients JORDAN = Coefficients.jordan(5);

    @Parameter
    private String name;

    private final List<Buffer> buffers = new ArrayList<>();
    private Device device;

    @BeforeEach
    void open() {
        device = TestDevices.open(name);
    }

    @AfterEach
    void close() {
        if (device != null) { // a GPU may not be there
            buffers.forEach(Buffer::close);
            buffers.clear();
            assertThat(device.liveBytes()).isZero();
            device.close();
        }
    }

    private boolean simulated() {
        return TestDevices.isSimulated(name);
    }

    private Buffer normal(String label, long length) {
        Buffer buffer = device.allocate(label, ElementType.FLOAT32, length);
        buffers.add(buffer);
        var random = new Random(label.hashCode());
        var piece = new float[(int) Math.min(length, 1 << 20)];
        for (int i = 0; i < piece.length; i++) {
            piece[i] = (float) random.nextGaussian();
        }
        for (long at = 0; at < length; at += piece.length) {
            buffer.copyIn(
                    at, at + piece.length <= length ? piece : java.util.Arrays.copyOf(piece, (int) (length - at)));
        }
        return buffer;
    }

    /** The shortest of several, each with the device's work done: what disturbs only ever adds. */
    private double seconds(Runnable work) {
        work.run(); // loads, links and takes room
        device.synchronize();
        double best = Double.POSITIVE_INFINITY;
        for (int i = 0; i < (simulated() ? 1 : 20); i++) {
            long start = System.nanoTime();
            work.run();
            device.synchronize();
            best = Math.min(best, (System.nanoTime() - start) * 1e-9);
        }
        return best;
    }

    private void memory(String what) {
        assertThat(device.peakBytes()).isGreaterThanOrEqualTo(device.liveBytes());
        GpuReport.ofThisRun().memory(name, what, device.liveBytes(), device.peakBytes());
    }

    @Test
    void compose() {
        long d = 8;
        long n = simulated() ? 1_000 : 1_000_000;
        Batch h = normal("H", CLIENTS * d * n).batch(CLIENTS, d * n);
        Batch gNew = normal("Gnew", CLIENTS * d * n).batch(CLIENTS, d * n);
        Batch gOld = normal("Gold", CLIENTS * d * n).batch(CLIENTS, d * n);
        Batch v = normal("v", CLIENTS * d).batch(CLIENTS, d);
        Batch m = normal("M", CLIENTS * n).batch(CLIENTS, n);
        Buffer norms = device.allocate("norms", ElementType.FLOAT64, CLIENTS);
        buffers.add(norms);
        long all = CLIENTS * d * n;
        long composed = 4 * (all + 2L * CLIENTS * n + CLIENTS * d); // reads H, M and v, writes M
        String size = "%d clients, %d elements, d = %d".formatted(CLIENTS, n, d);
        GpuReport report = GpuReport.ofThisRun();
        report.bytes(
                name,
                "triad, %d elements".formatted(all),
                12 * all,
                seconds(() -> ((StreamTriad) device)
                        .triad(
                                all,
                                0.5f,
                                gNew.buffer().address(),
                                gOld.buffer().address(),
                                h.buffer().address(),
                                false)));
        report.bytes(name, "compose_momentum, " + size, composed, seconds(() -> device.composeMomentum(0.1, h, v, m)));
        report.bytes(name, "storm + project_compose_momentum, " + size, 16 * all + composed + 4 * all, seconds(() -> {
            device.storm(0.9, gNew, gOld, h, norms.batch(CLIENTS, 1));
            device.projectComposeMomentum(1, norms.batch(CLIENTS, 1), 0.1, h, v, m);
        }));
        memory("compose, " + size);
        assertThat(device.firstNotFinite(m)).isEmpty();
    }

    /** The matrices of LeNet for all clients, in one launch. */
    @Test
    void smallNewtonSchulz() {
        int[][] shapes = simulated() ? new int[][] {{6, 25}, {16, 50}} : new int[][] {{6, 25}, {16, 150}, {120, 256}};
        int clients = simulated() ? 2 : CLIENTS;
        var blocks = new ArrayList<NewtonSchulzSpec.Block>();
        long length = 0;
        double operations = 0;
        for (int[] shape : shapes) {
            blocks.add(NewtonSchulzSpec.Block.at(length, shape[0], shape[1]));
            length += (long) shape[0] * shape[1];
            operations += clients * operations(shape[0], shape[1]);
        }
        Batch m = normal("M", clients * length).batch(clients, length);
        Batch w = normal("W", clients * length).batch(clients, length);
        try (MuonPlan plan =
                MuonPlan.of(new NewtonSchulz(JORDAN), device, clients, List.copyOf(blocks), ScaleRule.NONE)) {
            String what = "newton_schulz_small, %d clients, %d matrices".formatted(clients, blocks.size());
            GpuReport.ofThisRun().operations(name, what, operations, seconds(() -> plan.step(m, 0.02, w)));
            memory(what);
        }
        assertThat(device.firstNotFinite(w)).isEmpty();
    }

    @Test
    void largeNewtonSchulz() {
        for (int[] shape : simulated() ? new int[][] {{129, 150}} : new int[][] {{768, 768}, {1024, 4096}}) {
            for (Orthogonalizer how : List.of(
                    new NewtonSchulz(JORDAN),
                    new NewtonSchulz(JORDAN, Precision.TF32),
                    new NewtonSchulz(JORDAN, Precision.BF16),
                    new GramNewtonSchulz(JORDAN))) {
                if (how.precision() != Precision.FP32 && !TestDevices.decomposes(device)) {
                    continue; // without NVIDIA's libraries there is only fp32, and OrthogonalizersGpuIT says so
                }
                close();
                open(); // its peak is to be that of one way alone
                long size = (long) shape[0] * shape[1];
                Batch m = normal("M", size).batch(1, size);
                Batch w = normal("W", size).batch(1, size);
                try (Orthogonalizer.Plan plan =
                        how.plan(device, 1, shape[0], shape[1], ElementType.FLOAT32, ScaleRule.NONE)) {
                    String what = "%s (%s), %d x %d".formatted(how.name(), plan.path(), shape[0], shape[1]);
                    // Of the plain form, whatever the form: so that a faster one shows.
                    GpuReport.ofThisRun()
                            .operations(
                                    name, what, operations(shape[0], shape[1]), seconds(() -> plan.step(m, 0.02, w)));
                    memory(what);
                }
                assertThat(device.firstNotFinite(w)).isEmpty();
            }
        }
    }

    /** Multiplications and additions of plain products: 2 T (2 alpha + 1) n^3 with n the short side. */
    private static double operations(int rows, int cols) {
        double n = Math.min(rows, cols);
        double alpha = Math.max(rows, cols) / n;
        return 2.0 * JORDAN.steps().size() * (2 * alpha + 1) * n * n * n;
    }
}
