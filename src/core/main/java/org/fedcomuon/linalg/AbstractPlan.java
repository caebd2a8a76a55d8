package org.fedcomuon.linalg;

import java.util.ArrayDeque;
import java.util.Deque;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.MatrixBatch;
import org.fedcomuon.device.Precision;
import org.jspecify.annotations.Nullable;

/** The common part of all plans: a device, a shape, a scale, and buffers that are closed together. */
abstract class AbstractPlan implements Orthogonalizer.Plan {
    final Device device;
    final int count;
    final int rows;
    final int cols;
    final ElementType type;
    private final double scale;
    private final Deque<AutoCloseable> owned = new ArrayDeque<>();
    private @Nullable MatrixBatch plain; // made when the first strided batch comes

    AbstractPlan(Device device, int count, int rows, int cols, ElementType type, ScaleRule scale) {
        if (count < 0 || rows < 0 || cols < 0) {
            throw new IllegalArgumentException("%d matrices of %d x %d".formatted(count, rows, cols));
        }
        this.device = device;
        if (!type.isFloatingPoint()) {
            throw new IllegalArgumentException("matrices of %s have no orthogonal factor".formatted(type));
        }
        this.count = count;
        this.rows = rows;
        this.cols = cols;
        this.type = type;
        this.scale = rows == 0 || cols == 0 ? 1 : scale.scale(rows, cols);
    }

    /** Called before any workspace is allocated. */
    static void requireFp32(ElementType type, Precision precision) {
        if (type == ElementType.FLOAT64 && precision != Precision.FP32) {
            throw new IllegalArgumentException("%s is for float32; float64 is computed as it is".formatted(precision));
        }
    }

    /**
     * Refuses products that a device does not have; called before any workspace is allocated. The precision of kernels
     * is checked when they are planned.
     */
    static void requireProducts(Device device, Orthogonalizer.Products products) {
        if (products == Orthogonalizer.Products.CUBLAS) {
            device.requireLibrary();
        }
    }

    /** Returns the suffix of a name; empty for the defaults. */
    static String inWords(Precision precision, Orthogonalizer.Products products) {
        return (precision == Precision.FP32 ? "" : " in " + precision)
                + (products == Orthogonalizer.Products.KERNELS ? "" : " by " + products);
    }

    /** Returns how a library computes products, for its path. */
    final String productsBy(Precision precision) {
        return "products by %s in %s".formatted(device.multipliesBy(), precision);
    }

    final long size() {
        return (long) rows * cols;
    }

    final int side() {
        return Math.min(rows, cols);
    }

    final double scale() {
        return scale;
    }

    /** Allocates a buffer of {@code length} elements that this plan closes. */
    final Buffer buffer(String label, long length) {
        return buffer(label, type, length);
    }

    final Buffer buffer(String label, ElementType ofType, long length) {
        Buffer buffer;
        try {
            buffer = device.allocate(label, ofType, length);
        } catch (RuntimeException e) {
            close();
            throw e;
        }
        return own(buffer);
    }

    /** Lets {@link #close} close a resource, too. */
    final <T extends AutoCloseable> T own(T resource) {
        owned.push(resource);
        return resource;
    }

    /** Allocates one rows x cols matrix per client. */
    final MatrixBatch matrices(String label) {
        return MatrixBatch.of(buffer(label, count * size()).batch(count, size()), rows, cols);
    }

    /** Allocates one side x side matrix per client. */
    final MatrixBatch squares(String label) {
        long square = (long) side() * side();
        return MatrixBatch.of(buffer(label, count * square).batch(count, square), side(), side());
    }

    /** Returns the first {@code clients} of a plan's own matrices: a call may have fewer than the plan. */
    static MatrixBatch first(long clients, MatrixBatch all) {
        return new MatrixBatch(
                all.buffer(),
                all.offset(),
                clients,
                all.stride(),
                all.rows(),
                all.cols(),
                all.rowStride(),
                all.colStride());
    }

    static Batch batch(MatrixBatch matrices) {
        return new Batch(
                matrices.buffer(),
                matrices.offset(),
                matrices.clients(),
                (long) matrices.rows() * matrices.cols(),
                matrices.stride());
    }

    @Override
    public final void orthogonalize(MatrixBatch m, MatrixBatch o) {
        if (m.isPlain() && o.isPlain()) {
            orthogonalize(batch(m), batch(o));
            return;
        }
        if (plain == null) {
            plain = matrices("matrices without gaps");
        }
        MatrixBatch inside = first(Math.min(m.clients(), count), plain);
        device.rearrange(m, inside);
        orthogonalize(batch(inside), batch(inside));
        device.rearrange(inside, o);
    }

    final void requireShape(Batch batch) {
        if (batch.clients() > count
                || batch.length() != size()
                || batch.buffer().type() != type) {
            throw new DeviceException.InvalidOperand("%s has %d matrices of %d %s, not up to %d of %d x %d %s"
                    .formatted(
                            batch.buffer().label(),
                            batch.clients(),
                            batch.length(),
                            batch.buffer().type(),
                            count,
                            rows,
                            cols,
                            type));
        }
    }

    @Override
    public final void close() {
        while (!owned.isEmpty()) {
            try {
                owned.pop().close();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new AssertionError(e); // nothing here declares one
            }
        }
    }
}
