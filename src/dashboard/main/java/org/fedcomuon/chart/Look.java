package org.fedcomuon.chart;

import java.util.List;

/**
 * How a series is drawn. No two series differ by colour alone.
 *
 * @param style CSS classes
 * @param joined whether a line joins the values
 * @param mark path of the mark on each value, around the origin; empty for none
 * @param size of the mark, as an SVG transformation
 */
public record Look(String style, boolean joined, String mark, String size) {
    /** The number of colours in {@code chart.css}, without the neutral one of {@link #EXACT}. */
    static final int COLOURS = 8;
    /** Not as many as colours, so that a colour is used again with another mark. */
    private static final List<String> MARKS = List.of(
            "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
            "M-3.5 -3.5H3.5V3.5H-3.5Z",
            "M0 -4.8L4.4 3.4H-4.4Z",
            "M0 -5L5 0L0 5L-5 0Z",
            "M0 4.8L4.4 -3.4H-4.4Z",
            "M-1.6 -4.6H1.6V-1.6H4.6V1.6H1.6V4.6H-1.6V1.6H-4.6V-1.6H-1.6Z",
            "M-4.2 -4.2H4.2L-4.2 4.2H4.2Z");

    private static final List<String> DASHES = List.of("", " dashed", " dotted", " dashdot");

    public static final Look EXACT = new Look("exact", true, "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5", "scale(1)");
    /** For another way to the same as {@link #EXACT}. */
    public static final Look EXACT_TOO = new Look("exact dashed", true, "M-3.5 0H3.5M0 -3.5V3.5", "scale(1.6)");

    public static final Look GUIDE = new Look("guide", true, "", "");

    /**
     * The look of a series by its number. Series that share a colour, because there are more than colours, differ by
     * mark and dash. Two series that are compared share colour and mark, and one of them is dashed; its hollow marks
     * are larger than the others, because the values are often equal.
     */
    public static Look of(int number, boolean dashed) {
        String colour = "c" + (number % COLOURS + 1);
        String mark = MARKS.get(number % MARKS.size());
        return dashed
                ? new Look(colour + " dashed", true, mark, "scale(1.6)")
                : new Look(colour + DASHES.get(number / COLOURS % DASHES.size()), true, mark, "scale(1)");
    }

    /** Variants of a series have its colour and mark, and another dash. */
    public static Look variant(int number, int variant) {
        Look first = of(number % COLOURS, false);
        String dash = DASHES.get((number / COLOURS + variant) % DASHES.size());
        return new Look(first.style + dash, true, MARKS.get(number % MARKS.size()), first.size);
    }

    /** Columns from 0 up instead of a line. */
    public static Look columns(String style) {
        return new Look(style, false, "", "");
    }

    boolean columns() {
        return !joined && mark.isEmpty();
    }

    /** For the area between the least and the greatest behind a line that looks like this. */
    public Look band() {
        return new Look(style + " band", true, "", "");
    }

    /** For the single values behind those of a line that looks like this. */
    public Look scattered() {
        return new Look(style + " scattered", false, mark, "scale(0.5)");
    }

    /** For the line that theory predicts for a line that looks like this. */
    public Look guide() {
        return new Look(style + " " + GUIDE.style, true, "", "");
    }

    /** A piece of line with a mark, for a legend. */
    public String key() {
        return "<svg class=\"key\" viewBox=\"-22 -8 44 16\" width=\"44\" height=\"16\" aria-hidden=\"true\">"
                + "<g class=\"%s\">".formatted(style)
                + (joined ? "<path class=\"line\" d=\"M-22 0H22\"/>" : "")
                + (mark.isEmpty() ? "" : "<path class=\"mark\" transform=\"%s\" d=\"%s\"/>".formatted(size, mark))
                + "</g></svg>";
    }
}
