package org.fedcomuon.report;

import java.util.List;

/**
 * How a series is drawn. No two differ by colour alone.
 *
 * @param style CSS classes
 * @param joined whether a line joins the values
 * @param mark path of the mark on each value, around the origin; empty for none
 * @param size of the mark, as a transformation
 */
record Look(String style, boolean joined, String mark, String size) {
    /** As many as {@link Html} defines, the neutral one of {@link #EXACT} aside. */
    private static final int COLOURS = 9;
    /** Not as many as colours, so that a colour returns with another mark. */
    private static final List<String> MARKS = List.of(
            "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z",
            "M-3.5 -3.5H3.5V3.5H-3.5Z",
            "M0 -4.8L4.4 3.4H-4.4Z",
            "M0 -5L5 0L0 5L-5 0Z",
            "M0 4.8L4.4 -3.4H-4.4Z",
            "M-1.6 -4.6H1.6V-1.6H4.6V1.6H1.6V4.6H-1.6V1.6H-4.6V-1.6H-1.6Z",
            "M-4.2 -4.2H4.2L-4.2 4.2H4.2Z");

    private static final List<String> DASHES = List.of("", " dashed", " dotted", " dashdot");

    static final Look EXACT = new Look("exact", true, "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5", "scale(1)");
    static final Look GUIDE = new Look("guide", true, "", "");

    /**
     * Two that are compared share a colour and a kind of mark; one of them is dashed. Its hollow marks fit around the
     * others, for the two are often equal.
     */
    static Look of(int number, boolean dashed) {
        String colour = "c" + (number % COLOURS + 1);
        String mark = MARKS.get(number % MARKS.size());
        return dashed
                ? new Look(colour + " dashed", true, mark, "scale(1.6)")
                : new Look(colour, true, mark, "scale(1)");
    }

    /** Of several that belong together: the same colour and kind of mark, and another dash. */
    static Look variant(int number, int variant) {
        Look first = of(number, false);
        String dash = DASHES.get(variant % DASHES.size());
        return new Look(first.style + dash, true, first.mark, first.size);
    }

    /** For the area between the least and the greatest behind a line that looks like this. */
    Look band() {
        return new Look(style + " band", true, "", "");
    }

    /** For the single values behind those of a line that looks like this. */
    Look scattered() {
        return new Look(style + " scattered", false, mark, "scale(0.5)");
    }

    /** For what a line that looks like this should be like. */
    Look guide() {
        return new Look(style + " " + GUIDE.style, true, "", "");
    }

    /** A piece of line with a mark, for a legend. */
    String key() {
        return "<svg class=\"key\" viewBox=\"-22 -8 44 16\" width=\"44\" height=\"16\" aria-hidden=\"true\">"
                + "<g class=\"%s\">".formatted(style)
                + (joined ? "<path class=\"line\" d=\"M-22 0H22\"/>" : "")
                + (mark.isEmpty() ? "" : "<path class=\"mark\" transform=\"%s\" d=\"%s\"/>".formatted(size, mark))
                + "</g></svg>";
    }
}
