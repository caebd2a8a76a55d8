package org.fedcomuon.bench;

import java.math.BigDecimal;
import java.util.Locale;

/**
 * What a figure of a row of a benchmark has to reach, so that a regression is seen. Each suite has its aims in one
 * place, its {@link Aims}.
 *
 * @param figure the name of the figure; {@link #RATIO} for the row's headline
 * @param bound on which side of the limit it has to be
 * @param limit the least or the greatest value that meets the aim
 */
public record Aim(String figure, Bound bound, double limit) {
    /** The name of the headline of a row. */
    public static final String RATIO = "ratio";

    /** The side of the limit on which a figure has to be. */
    public enum Bound {
        /** The figure is the limit or more. */
        AT_LEAST(">="),
        /** The figure is the limit or less. */
        AT_MOST("<=");

        private final String sign;

        Bound(String sign) {
            this.sign = sign;
        }

        /** Returns its name in JSON. */
        String key() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Returns the aim of a ratio that is not less than {@code limit}. */
    static Aim atLeast(double limit) {
        return new Aim(RATIO, Bound.AT_LEAST, limit);
    }

    /** Returns the aim of a ratio that is not more than {@code limit}. */
    static Aim atMost(double limit) {
        return new Aim(RATIO, Bound.AT_MOST, limit);
    }

    /** Returns the same aim for another figure. */
    Aim of(String other) {
        return new Aim(other, bound, limit);
    }

    /**
     * Judges a figure. The aim is missed beyond the noise if the median and the better quartile both miss it: that in
     * less than a quarter of the turns it was met.
     */
    Judgement judge(Figure found) {
        double better = bound == Bound.AT_LEAST
                ? Math.max(found.median(), found.upper())
                : Math.min(found.median(), found.lower());
        Judgement.Verdict verdict = isMetBy(found.median())
                ? Judgement.Verdict.MET
                : isMetBy(better) ? Judgement.Verdict.WITHIN_NOISE : Judgement.Verdict.NOT_MET;
        return new Judgement(this, found.median(), better, verdict);
    }

    private boolean isMetBy(double value) { // NaN does not
        return bound == Bound.AT_LEAST ? value >= limit : value <= limit;
    }

    /** Returns whether it is about the headline of a row, which tables have anyway. */
    boolean isOfRatio() {
        return figure.equals(RATIO);
    }

    @Override
    public String toString() {
        String text = "%s %s"
                .formatted(
                        bound.sign,
                        BigDecimal.valueOf(limit).stripTrailingZeros().toPlainString());
        return isOfRatio() ? text : figure + " " + text;
    }
}
