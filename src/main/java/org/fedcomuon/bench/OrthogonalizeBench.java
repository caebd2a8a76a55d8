package org.fedcomuon.bench;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.device.MatrixBlock;
import org.fedcomuon.device.SchulzStep;
import org.fedcomuon.device.SmallSchulz;
import org.fedcomuon.device.StepRule;
import org.fedcomuon.internal.OpenBlasLibrary;

/**
 * A Newton-Schulz weight step of the ten-client LeNet: one call of ours against the loop a user would write over
 * OpenBLAS calls, a matrix at a time, with symmetric and with plain products and with OpenBLAS at one thread and at all
 * of them. Both sides must give the same weights before anything is timed.
 */
public final class OrthogonalizeBench {
    private static final int CLIENTS = 10;
    /** How many samples a contender a benchmark takes that means what it says. */
    public static final int ROUNDS = 15;

    private static final double ETA = 0.01;
    private static final int[][] LENET = {{6, 25}, {16, 150}, {120, 256}, {10, 120}};
    private static final List<SchulzStep> JORDAN = Collections.nCopies(5, new SchulzStep(3.4445, -4.7750, 2.0315));

    private OrthogonalizeBench() {}

    /** Measures the LeNet set on {@code device}, {@code rounds} samples of each contender. */
    public static BenchReport run(Device device, int rounds) {
        var blocks = new ArrayList<MatrixBlock>();
        long size = 0;
        for (int[] shape : LENET) {
            blocks.add(MatrixBlock.at(size, shape[0], shape[1]));
            size += (long) shape[0] * shape[1];
        }
        long perClient = size;
        var what = new SmallSchulz(blocks, JORDAN, 1.0);
        try (Buffer m = device.allocate("M", ElementType.FLOAT32, CLIENTS * perClient);
                Buffer ours = device.allocate("W", ElementType.FLOAT32, CLIENTS * perClient);
                Buffer theirs = device.allocate("W of the loop", ElementType.FLOAT32, CLIENTS * perClient);
                var loop = new OpenBlasLoop(device, blocks)) {
            fillNormal(m);
            device.newtonSchulzStep(what, m.batch(CLIENTS, perClient), ETA, ours.batch(CLIENTS, perClient));
            for (boolean symmetric : new boolean[] {true, false}) {
                theirs.zero();
                loop.step(symmetric, m, theirs, perClient);
                requireSame(ours, theirs);
            }

            String us = "fedcomuon, one call, %d threads".formatted(device.threads());
            var contest = new Interleaved()
                    .add(
                            us,
                            () -> device.newtonSchulzStep(
                                    what, m.batch(CLIENTS, perClient), ETA, ours.batch(CLIENTS, perClient)));
            for (int threads : device.threads() > 1 ? new int[] {1, device.threads()} : new int[] {1}) {
                for (boolean symmetric : new boolean[] {true, false}) {
                    String name =
                            "OpenBLAS loop, %s, %d threads".formatted(symmetric ? "syrk + symm" : "gemm", threads);
                    contest.add(name, () -> {
                        OpenBlasLibrary.setThreads(threads);
                        loop.step(symmetric, m, theirs, perClient);
                    });
                }
            }
            Map<String, Timing> timings = contest.measure(rounds);
            OpenBlasLibrary.setThreads(1);
            double our = timings.get(us).median();
            var rows = timings.entrySet().stream()
                    .map(e -> new BenchReport.Row(
                            e.getKey(),
                            e.getValue().median(),
                            e.getValue().spread(),
                            0,
                            e.getValue().median() / our))
                    .toList();
            return new BenchReport(
                    "orthogonalize",
                    device.toString(),
                    "five Newton-Schulz steps and the weight update of 6x25, 16x150, 120x256 and 10x120 of ten clients;"
                            + " ratio = time relative to ours",
                    rows);
        }
    }

    private static void fillNormal(Buffer buffer) {
        var random = new Random(42);
        MemorySegment segment = buffer.segment();
        for (long i = 0; i < buffer.length(); i++) {
            segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) random.nextGaussian());
        }
    }

    private static void requireSame(Buffer ours, Buffer theirs) {
        MemorySegment a = ours.segment();
        MemorySegment b = theirs.segment();
        for (long i = 0; i < ours.length(); i++) {
            float x = a.getAtIndex(ValueLayout.JAVA_FLOAT, i);
            float y = b.getAtIndex(ValueLayout.JAVA_FLOAT, i);
            if (!(Math.abs(x - y) <= 1e-4 * ETA)) {
                throw new IllegalStateException("the two sides disagree at weight %d: %s and %s".formatted(i, x, y));
            }
        }
    }

    /** The peer: what one writes without a batched kernel. Every operand is laid out before the clock starts. */
    private static final class OpenBlasLoop implements AutoCloseable {
        private final Device device;
        private final Blas blas;
        private final List<MatrixBlock> blocks;
        private final Buffer x;
        private final Buffer y;
        private final Buffer gram;
        private final Buffer poly;
        private final Buffer norm;

        OpenBlasLoop(Device device, List<MatrixBlock> blocks) {
            this.device = device;
            this.blas = device.blas();
            this.blocks = blocks;
            long largest =
                    blocks.stream().mapToLong(b -> b.rows() * b.cols()).max().orElseThrow();
            long side = blocks.stream().mapToLong(MatrixBlock::rows).max().orElseThrow();
            x = device.allocate("X", ElementType.FLOAT32, largest);
            y = device.allocate("Y", ElementType.FLOAT32, largest);
            gram = device.allocate("A", ElementType.FLOAT32, side * side);
            poly = device.allocate("B", ElementType.FLOAT32, side * side);
            norm = device.allocate("norm", ElementType.FLOAT64, 1);
        }

        void step(boolean symmetric, Buffer m, Buffer w, long perClient) {
            for (int client = 0; client < CLIENTS; client++) {
                for (MatrixBlock block : blocks) {
                    int rows = (int) block.rows();
                    int cols = (int) block.cols();
                    long size = (long) rows * cols;
                    long at = block.momentumOffset();
                    var momentum = m.batch(CLIENTS, perClient).client(client).slice(at, size);
                    device.norm(momentum, norm);
                    double inverse = 1 / norm.segment().get(ValueLayout.JAVA_DOUBLE, 0);
                    MemorySegment.copy(m.segment(), 4 * (client * perClient + at), x.segment(), 0, 4 * size);
                    scale(x, size, (float) inverse);
                    Matrix from = Matrix.of(x, 0, rows, cols);
                    Matrix to = Matrix.of(y, 0, rows, cols);
                    for (SchulzStep step : JORDAN) {
                        iterate(symmetric, step, from, to, rows, size);
                        Matrix swap = from;
                        from = to;
                        to = swap;
                    }
                    device.vectorStep(
                            StepRule.PLAIN,
                            ETA,
                            from.buffer().batch(1, size),
                            w.batch(CLIENTS, perClient).client(client).slice(at, size));
                }
            }
        }

        private void iterate(boolean symmetric, SchulzStep step, Matrix from, Matrix to, int rows, long size) {
            Matrix a = Matrix.of(gram, 0, rows, rows);
            Matrix b = Matrix.of(poly, 0, rows, rows);
            MemorySegment.copy(from.buffer().segment(), 0, to.buffer().segment(), 0, 4 * size);
            if (symmetric) {
                blas.syrk(Blas.Triangle.UPPER, Blas.Op.NONE, 1, from, 0, a);
                mirror(gram, rows);
                MemorySegment.copy(gram.segment(), 0, poly.segment(), 0, 4L * rows * rows);
                blas.syrk(Blas.Triangle.UPPER, Blas.Op.NONE, step.c(), a, step.b(), b);
                blas.symm(Blas.Side.LEFT, Blas.Triangle.UPPER, 1, b, from, step.a(), to);
            } else {
                blas.gemm(Blas.Op.NONE, Blas.Op.TRANSPOSE, 1, from, from, 0, a);
                MemorySegment.copy(gram.segment(), 0, poly.segment(), 0, 4L * rows * rows);
                blas.gemm(Blas.Op.NONE, Blas.Op.NONE, step.c(), a, a, step.b(), b);
                blas.gemm(Blas.Op.NONE, Blas.Op.NONE, 1, b, from, step.a(), to);
            }
        }

        private static void scale(Buffer buffer, long size, float factor) {
            MemorySegment segment = buffer.segment();
            for (long i = 0; i < size; i++) {
                segment.setAtIndex(ValueLayout.JAVA_FLOAT, i, factor * segment.getAtIndex(ValueLayout.JAVA_FLOAT, i));
            }
        }

        private static void mirror(Buffer square, int side) {
            MemorySegment segment = square.segment();
            for (long i = 0; i < side; i++) {
                for (long j = 0; j < i; j++) {
                    segment.setAtIndex(
                            ValueLayout.JAVA_FLOAT,
                            i * side + j,
                            segment.getAtIndex(ValueLayout.JAVA_FLOAT, j * side + i));
                }
            }
        }

        @Override
        public void close() {
            norm.close();
            poly.close();
            gram.close();
            y.close();
            x.close();
        }
    }
}
