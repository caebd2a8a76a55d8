package org.fedcomuon.linalg;

/** How the learning rate of a matrix depends on its shape. */
public enum ScaleRule {
    /** Not at all, as in the paper. */
    NONE {
        @Override
        public double scale(long rows, long cols) {
            return 1;
        }
    },
    /** {@code sqrt(max(1, rows/cols))}: tall matrices step further, as in the original Muon. */
    ASPECT {
        @Override
        public double scale(long rows, long cols) {
            return Math.sqrt(Math.max(1.0, (double) rows / cols));
        }
    },
    /** {@code 0.2 sqrt(max(rows, cols))}: updates as large as Adam's, so that its learning rates carry over. */
    RMS {
        @Override
        public double scale(long rows, long cols) {
            return 0.2 * Math.sqrt((double) Math.max(rows, cols));
        }
    };

    /** Returns the factor for a matrix of this shape. */
    public abstract double scale(long rows, long cols);
}
