package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;

/** Whether operands fit together, and how a library that knows rows and columns only is to read them. */
final class MatrixOperands {
    private MatrixOperands() {}

    static void require(boolean fits, String function, Matrix a, Matrix b, Matrix c) {
        if (!fits) {
            throw new DeviceException.InvalidOperand("%s: shapes %s %d x %d, %s %d x %d and %s %d x %d do not fit"
                    .formatted(
                            function,
                            a.buffer().label(),
                            a.rows(),
                            a.cols(),
                            b.buffer().label(),
                            b.rows(),
                            b.cols(),
                            c.buffer().label(),
                            c.rows(),
                            c.cols()));
        }
        if (c.overlaps(a) || c.overlaps(b)) {
            throw new DeviceException.InvalidOperand("%s: the result in %s overlaps an operand"
                    .formatted(function, c.buffer().label()));
        }
    }

    /** Returns whether all operands are doubles; false when all are floats. */
    static boolean areDoubles(Matrix a, Matrix b, Matrix c) {
        ElementType type = c.buffer().type();
        a.buffer().requireType(type);
        b.buffer().requireType(type);
        return type == ElementType.FLOAT64;
    }

    /** Where the singular values of {@code a} go. */
    static MemorySegment singularValues(NativeDevice device, Buffer s, long offset, Matrix a) {
        int rank = Math.min(a.rows(), a.cols());
        s.requireType(a.buffer().type());
        if (offset < 0 || offset > s.length() - rank) {
            throw new DeviceException.InvalidOperand(
                    "%s has no %d elements from %d".formatted(s.label(), rank, offset));
        }
        return s.at(device, offset);
    }

    /** Refuses operands of orthogonal factors that do not fit together. */
    static void requireFactors(MatrixBatch a, MatrixBatch o, Buffer workspace, long doubles, Buffer kept) {
        a.buffer().requireType(ElementType.FLOAT32);
        o.buffer().requireType(ElementType.FLOAT32);
        workspace.requireType(ElementType.FLOAT64);
        kept.requireType(ElementType.INT64);
        if (a.rows() != o.rows()
                || a.cols() != o.cols()
                || a.clients() != o.clients()
                || !a.isPlain()
                || !o.isPlain()
                || workspace.length() < doubles
                || kept.length() < a.clients()) {
            throw new DeviceException.InvalidOperand(
                    "%d matrices %d x %d of %s, factors in %s, workspace of %d, room for %d counts"
                            .formatted(
                                    a.clients(),
                                    a.rows(),
                                    a.cols(),
                                    a.buffer().label(),
                                    o.buffer().label(),
                                    workspace.length(),
                                    kept.length()));
        }
    }

    /** A matrix in memory: row-major with rows {@code leading} apart, to be read as it is or transposed. */
    record Stored(Blas.Op op, int leading) {}

    /** Returns how a matrix given by two strides is stored. One of them must be 1. */
    static Stored stored(MatrixBatch batch) {
        // A stride that is never walked can be anything.
        boolean rowMajor = batch.cols() <= 1 || batch.colStride() == 1;
        boolean columnMajor = batch.rows() <= 1 || batch.rowStride() == 1;
        if (rowMajor && (batch.rows() <= 1 || batch.rowStride() >= batch.cols())) {
            return new Stored(Blas.Op.NONE, leading(batch, batch.rows() <= 1 ? 1 : batch.rowStride(), batch.cols()));
        }
        if (columnMajor && (batch.cols() <= 1 || batch.colStride() >= batch.rows())) {
            return new Stored(
                    Blas.Op.TRANSPOSE, leading(batch, batch.cols() <= 1 ? 1 : batch.colStride(), batch.rows()));
        }
        throw new DeviceException.InvalidOperand("%s: neither rows nor columns are contiguous: strides %d and %d"
                .formatted(batch.buffer().label(), batch.rowStride(), batch.colStride()));
    }

    private static int leading(MatrixBatch batch, long stride, int length) {
        long leading = Math.max(1, Math.max(stride, length));
        if (leading > Integer.MAX_VALUE) {
            throw new DeviceException.InvalidOperand("%s: rows %d apart are too far for cuBLAS"
                    .formatted(batch.buffer().label(), leading));
        }
        return (int) leading;
    }

    /** Returns whether one is row-major or column-major, as cuBLAS needs it. */
    static boolean isStored(MatrixBatch batch) {
        return batch.cols() <= 1
                || batch.rows() <= 1
                || (batch.colStride() == 1
                        && batch.rowStride() >= batch.cols()
                        && batch.rowStride() <= Integer.MAX_VALUE)
                || (batch.rowStride() == 1
                        && batch.colStride() >= batch.rows()
                        && batch.colStride() <= Integer.MAX_VALUE);
    }

    /**
     * Returns whether an element of one may be an element of the other: exact when the clients are as far apart in
     * both.
     */
    static boolean overlap(MatrixBatch a, MatrixBatch b) {
        long lengthA = reach(a);
        long lengthB = reach(b);
        if (a.buffer() != b.buffer() || lengthA == 0 || lengthB == 0) {
            return false;
        }
        boolean first = a.offset() <= b.offset();
        MatrixBatch low = first ? a : b;
        MatrixBatch high = first ? b : a;
        long lowLength = first ? lengthA : lengthB;
        long highLength = first ? lengthB : lengthA;
        if (high.offset() >= low.offset() + (low.clients() - 1) * low.stride() + lowLength) {
            return false;
        }
        if (low.stride() != high.stride() || low.stride() == 0) {
            return true;
        }
        long phase = (high.offset() - low.offset()) % low.stride();
        return phase < lowLength || phase + highLength > low.stride();
    }

    private static long reach(MatrixBatch batch) {
        return batch.clients() == 0 || batch.rows() == 0 || batch.cols() == 0
                ? 0
                : (batch.rows() - 1) * batch.rowStride() + (batch.cols() - 1) * batch.colStride() + 1;
    }
}
