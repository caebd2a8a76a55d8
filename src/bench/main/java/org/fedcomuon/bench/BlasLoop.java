package org.fedcomuon.bench;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.fedcomuon.device.Blas;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.device.NewtonSchulzSpec;

/**
 * The peer: a straightforward loop over the calls of the device's BLAS, without a batched kernel. Every operand is laid
 * out before the measurement.
 */
final class BlasLoop implements AutoCloseable {
    private final Device device;
    private final Blas blas;
    private final List<NewtonSchulzSpec.Block> blocks;
    private final List<NewtonSchulzSpec.Step> steps;
    private final double eta;
    private final Buffer x;
    private final Buffer y;
    private final Buffer gram;
    private final Buffer poly;

    BlasLoop(Device device, List<NewtonSchulzSpec.Block> blocks, List<NewtonSchulzSpec.Step> steps, double eta) {
        this.device = device;
        this.blas = device.blas();
        this.blocks = blocks;
        this.steps = steps;
        this.eta = eta;
        long largest = blocks.stream().mapToLong(b -> b.rows() * b.cols()).max().orElseThrow();
        long side =
                blocks.stream().mapToLong(NewtonSchulzSpec.Block::rows).max().orElseThrow();
        x = device.allocate("X", ElementType.FLOAT32, largest);
        y = device.allocate("Y", ElementType.FLOAT32, largest);
        gram = device.allocate("A", ElementType.FLOAT32, side * side);
        poly = device.allocate("B", ElementType.FLOAT32, side * side);
    }

    /**
     * Takes the weight step of all clients.
     *
     * @param symmetric whether only a triangle of a symmetric product is computed, and mirrored by the host
     */
    void step(boolean symmetric, int clients, Buffer m, Buffer w, long perClient) {
        for (int client = 0; client < clients; client++) {
            for (NewtonSchulzSpec.Block block : blocks) {
                int rows = (int) block.rows();
                int cols = (int) block.cols();
                long size = (long) rows * cols;
                long at = block.momentumOffset();
                var momentum = m.batch(clients, perClient).client(client).slice(at, size);
                device.normalize(1, momentum, x.batch(1, size));
                Matrix from = Matrix.of(x, 0, rows, cols);
                Matrix to = Matrix.of(y, 0, rows, cols);
                for (NewtonSchulzSpec.Step step : steps) {
                    iterate(symmetric, step, from, to, rows, size);
                    Matrix swap = from;
                    from = to;
                    to = swap;
                }
                device.vectorStep(
                        eta,
                        from.buffer().batch(1, size),
                        w.batch(clients, perClient).client(client).slice(at, size));
            }
        }
    }

    private void iterate(boolean symmetric, NewtonSchulzSpec.Step step, Matrix from, Matrix to, int rows, long size) {
        Matrix a = Matrix.of(gram, 0, rows, rows);
        Matrix b = Matrix.of(poly, 0, rows, rows);
        to.buffer().copyFrom(from.buffer(), 0, 0, size);
        if (symmetric) {
            blas.syrk(Blas.Triangle.UPPER, Blas.Op.NONE, 1, from, 0, a);
            mirror(gram, rows);
            poly.copyFrom(gram, 0, 0, (long) rows * rows);
            blas.syrk(Blas.Triangle.UPPER, Blas.Op.NONE, step.c(), a, step.b(), b);
            blas.symm(Blas.Side.LEFT, Blas.Triangle.UPPER, 1, b, from, step.a(), to);
        } else {
            blas.gemm(Blas.Op.NONE, Blas.Op.TRANSPOSE, 1, from, from, 0, a);
            poly.copyFrom(gram, 0, 0, (long) rows * rows);
            blas.gemm(Blas.Op.NONE, Blas.Op.NONE, step.c(), a, a, step.b(), b);
            blas.gemm(Blas.Op.NONE, Blas.Op.NONE, 1, b, from, step.a(), to);
        }
    }

    private static void mirror(Buffer square, int side) {
        MemorySegment segment = square.segment();
        for (long i = 0; i < side; i++) {
            for (long j = 0; j < i; j++) {
                segment.setAtIndex(
                        ValueLayout.JAVA_FLOAT, i * side + j, segment.getAtIndex(ValueLayout.JAVA_FLOAT, j * side + i));
            }
        }
    }

    @Override
    public void close() {
        poly.close();
        gram.close();
        y.close();
        x.close();
    }
}
