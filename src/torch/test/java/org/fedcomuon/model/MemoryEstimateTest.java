package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** The figure that a run is refused with. */
class MemoryEstimateTest {
    private static final long MIB = 1 << 20;

    @Test
    void aRunIsItsClientsVariablesAndItsWorkersEvaluations() {
        var estimate = new MemoryEstimate(1000, 500_000, true);
        assertThat(estimate.bytes(10, 6, 2)).isEqualTo(10 * 6 * 4000 + 2 * 500_000);
        assertThat(estimate.bytes(1, 6, 2)).isEqualTo(6 * 4000 + 500_000); // one worker has nothing to do
        assertThat(new MemoryEstimate(Integer.MAX_VALUE, 1, true).bytes(100, 10, 1))
                .isGreaterThan(8_000_000_000_000L);
    }

    /** Measured as the growth of a process that evaluates nothing else. */
    @Test
    void theFigureIsAboutWhatWasMeasured() {
        var cnn = new CifarCnn();
        measured(MemoryEstimate.gradient(cnn, 64), 196);
        measured(MemoryEstimate.hessianProduct(cnn, 64), 344);
        measured(MemoryEstimate.adapted(cnn, 64, Adaptation.exact(0.03)), 489);
        measured(MemoryEstimate.adapted(cnn, 64, new Adaptation(0.03, true)), 253);
        var vit = new VisionTransformer();
        measured(MemoryEstimate.gradient(vit, 32), 472);
        measured(MemoryEstimate.hessianProduct(vit, 32), 1416);
        measured(MemoryEstimate.adapted(vit, 32, Adaptation.exact(0.005)), 1787);
        measured(MemoryEstimate.adapted(vit, 32, new Adaptation(0.005, true)), 805);
    }

    private static void measured(MemoryEstimate estimate, long mebibytes) {
        assertThat(estimate.evaluation()).isBetween((long) (0.95 * mebibytes * MIB), 2 * mebibytes * MIB);
    }

    @Test
    void aVisionTransformerOfTenClientsFitsIntoEightGibibytes() {
        long bytes = MemoryEstimate.adapted(new VisionTransformer(), 32, Adaptation.exact(0.005))
                .bytes(10, 8, 2);
        assertThat(bytes).isLessThan(8L << 30);
    }
}
