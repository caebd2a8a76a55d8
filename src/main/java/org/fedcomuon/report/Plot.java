package org.fedcomuon.report;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/**
 * A line plot as inline SVG. Colours, dashes and fonts are the page's style sheet's business.
 *
 * @param id prefix of the ids within
 * @param heading what sets this plot apart from its neighbours, may be empty
 * @param title for who cannot see it
 * @param description what it shows, likewise
 * @param width of the drawing, axes and names included
 * @param height likewise
 */
record Plot(
        String id,
        String heading,
        String title,
        String description,
        int width,
        int height,
        Axis x,
        Axis y,
        List<Line> lines) {
    /** An axis and what it measures. */
    record Axis(String label, Scale scale) {}

    /** A value, and what to say of it. */
    record Point(double x, double y, String text) {}

    /**
     * Values of one series.
     *
     * @param series by which the page's script finds it, the same in all plots of a figure
     * @param marks of a joined line with more values, only so many, or up to twice as many, get a mark
     */
    record Line(int series, Look look, List<Point> points, int marks) {
        Line(int series, Look look, List<Point> points) {
            this(series, look, points, MARKS);
        }
    }

    static final int LEFT = 54;
    static final int RIGHT = 10;
    static final int TOP = 28;
    static final int BOTTOM = 40;

    /** What a digit takes, somewhat generously: SVG cannot tell before it is drawn. */
    private static final double CHARACTER_WIDTH = 7;

    private static final int TEXT_HEIGHT = 15;
    static final int MARKS = 8;

    String svg() {
        int[] rows = tickRows();
        int bottom = height - BOTTOM - TEXT_HEIGHT * Arrays.stream(rows).max().orElse(0);
        var svg = new StringBuilder();
        svg.append("""
                <svg class="plot" role="img" viewBox="0 0 %s %s" aria-labelledby="%s-title %s-text">
                <title id="%s-title">%s</title>
                <desc id="%s-text">%s</desc>
                """.formatted(width, height, id, id, id, Html.escape(title), id, Html.escape(description)));
        svg.append("<text x=\"2\" y=\"15\"><tspan class=\"heading\">%s</tspan><tspan dx=\"%s\">%s</tspan></text>\n"
                .formatted(Html.escape(heading), heading.isEmpty() ? 0 : 8, Html.escape(y.label)));
        svg.append("<text class=\"end\" x=\"%s\" y=\"%s\">%s</text>\n"
                .formatted(width - RIGHT, height - 5, Html.escape(x.label)));
        for (Scale.Tick tick : y.scale.ticks()) {
            String at = coordinate(down(tick.value(), bottom));
            svg.append("<path class=\"grid\" d=\"M%s %sH%s\"/>".formatted(LEFT, at, width - RIGHT));
            svg.append("<text class=\"end\" x=\"%s\" y=\"%s\" dy=\"0.35em\">%s</text>\n"
                    .formatted(LEFT - 7, at, Html.escape(tick.label())));
        }
        for (int i = 0; i < rows.length; i++) {
            Scale.Tick tick = x.scale.ticks().get(i);
            String at = coordinate(across(tick.value()));
            svg.append("<path class=\"grid\" d=\"M%s %sV%s\"/>".formatted(at, TOP, bottom + 4));
            if (rows[i] >= 0) {
                svg.append("<text class=\"middle\" x=\"%s\" y=\"%s\">%s</text>\n"
                        .formatted(
                                coordinate(labelPlace(tick)),
                                bottom + 17 + TEXT_HEIGHT * rows[i],
                                Html.escape(tick.label())));
            }
        }
        svg.append("<path class=\"axis\" d=\"M%s %sV%sH%s\"/>\n".formatted(LEFT, TOP, bottom, width - RIGHT));
        for (int i = 0; i < lines.size(); i++) {
            draw(i, bottom, svg);
        }
        return svg.append("</svg>\n").toString();
    }

    private void draw(int index, int bottom, StringBuilder svg) {
        Line line = lines.get(index);
        var path = new StringBuilder();
        var marks = new StringBuilder();
        // without a line, a value without a mark would not be seen at all
        int every = line.look.joined() ? Math.max(1, line.points.size() / line.marks) : 1;
        // each line starts elsewhere, so that marks of lines that coincide do not
        int first = every * index / lines.size();
        char command = 'M';
        for (int i = 0; i < line.points.size(); i++) {
            Point point = line.points.get(i);
            if (!drawn(point)) {
                command = 'M'; // leaves a gap: nothing is known between
                continue;
            }
            String across = coordinate(across(point.x));
            String down = coordinate(down(point.y, bottom));
            path.append(command).append(across).append(' ').append(down);
            command = 'L';
            if (i % every == first && !line.look.mark().isEmpty()) {
                marks.append(
                        "<path class=\"mark\" transform=\"translate(%s %s) %s\" d=\"%s\"><title>%s</title></path>\n"
                                .formatted(across, down, line.look.size(), line.look.mark(), Html.escape(point.text)));
            }
        }
        String joint = line.look.joined() ? "<path class=\"line\" d=\"%s\"/>\n".formatted(path) : "";
        svg.append("<g class=\"%s%s\" data-series=\"%s\">%s%s</g>\n"
                .formatted(line.look.style(), every > 1 ? " dense" : "", line.series, joint, marks));
    }

    /** The row below the axis in which each of its names fits: 0, or 1 to pass the one before, or -1 for neither. */
    private int[] tickRows() {
        List<Scale.Tick> ticks = x.scale.ticks();
        double[] taken = {0, 0};
        int[] rows = new int[ticks.size()];
        for (int i = 0; i < rows.length; i++) {
            double at = labelPlace(ticks.get(i));
            double half = halfWidth(ticks.get(i));
            rows[i] = taken[0] <= at - half ? 0 : taken[1] <= at - half ? 1 : -1;
            if (rows[i] >= 0) {
                taken[rows[i]] = at + half;
            }
        }
        return rows;
    }

    /** Below the tick, but not beyond the drawing. */
    private double labelPlace(Scale.Tick tick) {
        return Math.min(across(tick.value()), width - halfWidth(tick));
    }

    private static double halfWidth(Scale.Tick tick) {
        return CHARACTER_WIDTH * (tick.label().length() + 1.5) / 2;
    }

    /** One coordinate of all points. */
    static List<Double> values(List<Line> lines, ToDoubleFunction<Point> which) {
        return lines.stream()
                .flatMap(line -> line.points.stream())
                .map(which::applyAsDouble)
                .toList();
    }

    private static boolean drawn(Point point) {
        return Scale.drawable(point.x) && Scale.drawable(point.y);
    }

    /** Whether some values have no place on these axes. */
    boolean leavesOut() {
        return lines.stream().flatMap(line -> line.points.stream()).anyMatch(point -> !drawn(point));
    }

    /** Whether some values lie at the start of an axis for want of a place of their own. */
    boolean clamps() {
        return lines.stream()
                .flatMap(line -> line.points.stream())
                .anyMatch(point -> x.scale.clamps(point.x) || y.scale.clamps(point.y));
    }

    private double across(double value) {
        return LEFT + x.scale.place(value) * (width - LEFT - RIGHT);
    }

    private double down(double value, int bottom) {
        return bottom - y.scale.place(value) * (bottom - TOP);
    }

    private static String coordinate(double value) {
        return String.format(Locale.ROOT, "%.1f", value);
    }
}
