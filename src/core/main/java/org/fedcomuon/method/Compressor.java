package org.fedcomuon.method;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.Matrix;
import org.fedcomuon.device.MatrixBatch;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Layout;

/**
 * Compresses an update, block by block, before it is sent. Every compressor is a contraction: the error is never longer
 * than the update, so that error feedback makes up for it.
 *
 * <p>Immutable.
 */
public sealed interface Compressor {
    /** Returns the size of a compressed update in bytes. */
    long bytes(Layout layout);

    /** Allocates the workspace that {@link OnDevice#compress} needs. */
    OnDevice on(Clients clients);

    /** A compressor on one device. Not thread-safe; confined to the device thread. */
    interface OnDevice {
        /** {@code y = C(x)}. */
        void compress(Variable x, Variable y);
    }

    /**
     * Reads what {@code toString} writes: {@code none}, {@code top-k(SHARE)} or {@code low-rank(RANK)}.
     *
     * @throws IllegalArgumentException when it is none of these
     */
    static Compressor parse(String text) {
        Matcher matcher = Pattern.compile("(top-k|low-rank)\\(([^)]+)\\)").matcher(text.strip());
        try {
            if (matcher.matches()) {
                return matcher.group(1).equals("top-k")
                        ? topK(Double.parseDouble(matcher.group(2)))
                        : lowRank(Integer.parseInt(matcher.group(2)));
            }
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("'%s' has no number in its parentheses".formatted(text), e);
        }
        if (text.strip().equals("none")) {
            return none();
        }
        throw new IllegalArgumentException("'%s' is none of: none, top-k(SHARE), low-rank(RANK)".formatted(text));
    }

    /** Returns the compressor that sends the whole update. */
    static Compressor none() {
        return new None();
    }

    /** Returns the compressor that sends the largest elements of each block. */
    static Compressor topK(double share) {
        return new TopK(share);
    }

    /** Returns the compressor that sends the nearest matrix of a given rank, and whole vectors. */
    static Compressor lowRank(int rank) {
        return new LowRank(rank);
    }

    /** See {@link Compressor#none}. */
    record None() implements Compressor {
        @Override
        public long bytes(Layout layout) {
            return layout.length() * Float.BYTES;
        }

        @Override
        public OnDevice on(Clients clients) {
            return (x, y) -> y.set(x);
        }

        @Override
        public String toString() {
            return "none";
        }
    }

    /**
     * See {@link Compressor#topK}. Each element is sent with its index.
     *
     * @param share of the elements of a block, at least one
     */
    record TopK(double share) implements Compressor {
        public TopK {
            if (!(share > 0 && share <= 1)) {
                throw new IllegalArgumentException(
                        "share = %s; it is to be more than 0 and at most 1".formatted(share));
            }
        }

        private long kept(Block block) {
            return Math.max(1, Math.round(share * block.size()));
        }

        @Override
        public long bytes(Layout layout) {
            long bytes = 0;
            for (Block block : layout.blocks()) {
                bytes += Math.min(kept(block) * (Float.BYTES + Integer.BYTES), block.size() * Float.BYTES);
            }
            return bytes;
        }

        @Override
        public OnDevice on(Clients clients) {
            Layout layout = clients.layout();
            return (x, y) -> {
                for (int i = 0; i < layout.blocks().size(); i++) {
                    Block block = layout.blocks().get(i);
                    y.topK(kept(block), x, layout.offset(i), block.size());
                }
            };
        }

        @Override
        public String toString() {
            return "top-k(%s)".formatted(share);
        }
    }

    /**
     * See {@link Compressor#lowRank}.
     *
     * @param rank at least 1; a matrix whose factors would be larger than itself is sent whole
     */
    record LowRank(int rank) implements Compressor {
        public LowRank {
            Method.Ranges.positive("rank", rank);
        }

        private boolean worthwhile(Block block) {
            return block.update() == Block.Update.ORTHOGONAL
                    && rank < Math.min(block.rows(), block.cols())
                    && (long) rank * (block.rows() + block.cols()) < block.size();
        }

        @Override
        public long bytes(Layout layout) {
            long elements = 0;
            for (Block block : layout.blocks()) {
                elements += worthwhile(block) ? (long) rank * (block.rows() + block.cols()) : block.size();
            }
            return elements * Float.BYTES;
        }

        @Override
        public OnDevice on(Clients clients) {
            return new Projection(this, clients);
        }

        @Override
        public String toString() {
            return "low-rank(%d)".formatted(rank);
        }
    }

    /**
     * {@code Y = U_r (U_r^T X)} with the first r left singular vectors of X. Not thread-safe; confined to the device
     * thread.
     */
    final class Projection implements OnDevice {
        private final LowRank what;
        private final Clients clients;
        private final Buffer work;
        private final Buffer u;
        private final Buffer vt;
        private final Buffer s;
        private final Buffer factor;

        private Projection(LowRank what, Clients clients) {
            this.what = what;
            this.clients = clients;
            long largest = 1;
            long longest = 1;
            for (Block block : clients.layout().blocks()) {
                if (what.worthwhile(block)) {
                    largest = Math.max(largest, block.size());
                    longest = Math.max(longest, Math.max(block.rows(), block.cols()));
                }
            }
            work = clients.allocate("X", ElementType.FLOAT32, largest);
            u = clients.allocate("U", ElementType.FLOAT32, largest);
            vt = clients.allocate("V^T", ElementType.FLOAT32, largest);
            s = clients.allocate("singular values", ElementType.FLOAT32, longest);
            factor = clients.allocate("U_r^T X", ElementType.FLOAT32, what.rank * longest);
        }

        @Override
        public void compress(Variable x, Variable y) {
            y.set(x);
            Layout layout = clients.layout();
            for (Run run : y.isShared() ? List.of(new Run(0, 1)) : clients.runs()) {
                clients.requireConverging(x); // the decomposition would not say where
                for (int i = 0; i < layout.blocks().size(); i++) {
                    Block block = layout.blocks().get(i);
                    if (what.worthwhile(block)) {
                        for (int k = 0; k < run.count(); k++) {
                            project(
                                    block,
                                    x.of(run).client(k).slice(layout.offset(i), block.size()),
                                    y.of(run).client(k).slice(layout.offset(i), block.size()));
                        }
                    }
                }
            }
        }

        private void project(Block block, Batch x, Batch y) {
            Device device = clients.device();
            int rows = block.rows();
            int cols = block.cols();
            int side = Math.min(rows, cols);
            work.copyFrom(x.buffer(), x.offset(), 0, x.length()); // the decomposition overwrites its operand
            device.solver()
                    .svd(
                            Matrix.of(work, 0, rows, cols),
                            s,
                            0,
                            Matrix.of(u, 0, rows, side),
                            Matrix.of(vt, 0, side, cols));
            var leading = new MatrixBatch(u, 0, 1, 0, rows, what.rank, side, 1);
            var product = new MatrixBatch(factor, 0, 1, 0, what.rank, cols, cols, 1);
            device.multiply(1, leading.transpose(), MatrixBatch.of(x, rows, cols), false, product);
            device.multiply(1, leading, product, false, MatrixBatch.of(y, rows, cols));
        }
    }
}
