package org.fedcomuon.chart;

import java.util.Arrays;
import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * A plot of lines or columns as inline SVG. Colours, dashes and fonts are in {@code chart.css}.
 *
 * @param id prefix of the ids within
 * @param heading distinguishes this plot from its neighbours; may be empty
 * @param title for screen readers
 * @param description for screen readers
 * @param width of the drawing including axes and labels
 * @param height of the drawing including axes and labels
 */
public record Plot(
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
    public record Axis(String label, Scale scale) {}

    /** A value and its tooltip. */
    public record Point(double x, double y, String text) {}

    /**
     * Values of one series.
     *
     * @param series its number, the same in all plots of a figure, by which the script of a page finds it
     * @param marks a line with more values has this many to twice as many marks
     */
    public record Line(int series, Look look, List<Point> points, int marks) {
        /** A line with the usual number of marks. */
        public Line(int series, Look look, List<Point> points) {
            this(series, look, points, MARKS);
        }
    }

    public static final int LEFT = 54;
    public static final int RIGHT = 10;
    public static final int TOP = 28;
    public static final int BOTTOM = 40;

    /** The assumed width of a character, somewhat generous, because it is not known before the drawing. */
    private static final double CHARACTER_WIDTH = 7;

    private static final int TEXT_HEIGHT = 15;
    public static final int MARKS = 8;

    public String svg() {
        int[] rows = tickRows();
        int bottom = height - BOTTOM - TEXT_HEIGHT * Arrays.stream(rows).max().orElse(0);
        var svg = new StringBuilder();
        svg.append("""
                <svg class="plot" role="img" viewBox="0 0 %s %s" data-across="%s %s %s %s" aria-labelledby="%s-title %s-text">
                <title id="%s-title">%s</title>
                <desc id="%s-text">%s</desc>
                """.formatted(
                        width,
                        height,
                        LEFT,
                        width - RIGHT,
                        x.scale.start(),
                        x.scale.end(),
                        id,
                        id,
                        id,
                        Markup.escape(title),
                        id,
                        Markup.escape(description)));
        svg.append("<text x=\"2\" y=\"15\"><tspan class=\"heading\">%s</tspan><tspan dx=\"%s\">%s</tspan></text>\n"
                .formatted(Markup.escape(heading), heading.isEmpty() ? 0 : 8, Markup.escape(y.label)));
        svg.append("<text class=\"end\" x=\"%s\" y=\"%s\">%s</text>\n"
                .formatted(width - RIGHT, height - 5, Markup.escape(x.label)));
        for (Scale.Tick tick : y.scale.ticks()) {
            String at = coordinate(down(tick.value(), bottom));
            svg.append("<path class=\"grid\" d=\"M%s %sH%s\"/>".formatted(LEFT, at, width - RIGHT));
            svg.append("<text class=\"end\" x=\"%s\" y=\"%s\" dy=\"0.35em\">%s</text>\n"
                    .formatted(LEFT - 7, at, Markup.escape(tick.label())));
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
                                Markup.escape(tick.label())));
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
        if (line.look.columns()) {
            drawColumns(line, bottom, svg);
            return;
        }
        var path = new StringBuilder();
        var marks = new StringBuilder();
        // without a line, a value without a mark would be invisible
        int every = line.look.joined() ? Math.max(1, line.points.size() / line.marks) : 1;
        // different first marks, so that the marks of equal lines do not coincide
        int first = every * index / lines.size();
        char command = 'M';
        for (int i = 0; i < line.points.size(); i++) {
            Point point = line.points.get(i);
            if (!drawn(point)) {
                command = 'M'; // leaves a gap
                continue;
            }
            String across = coordinate(across(point.x));
            String down = coordinate(down(point.y, bottom));
            path.append(command).append(across).append(' ').append(down);
            command = 'L';
            if (i % every == first && !line.look.mark().isEmpty()) {
                marks.append(
                        "<path class=\"mark\" transform=\"translate(%s %s) %s\" d=\"%s\"><title>%s</title></path>\n"
                                .formatted(
                                        across, down, line.look.size(), line.look.mark(), Markup.escape(point.text)));
            }
        }
        String joint = line.look.joined() ? "<path class=\"line\" d=\"%s\"/>\n".formatted(path) : "";
        svg.append("<g class=\"%s%s\" data-series=\"%s\">%s%s</g>\n"
                .formatted(line.look.style(), every > 1 ? " dense" : "", line.series, joint, marks));
    }

    /** One for each whole number of the horizontal axis, from 0, or from the start of a logarithmic axis. */
    private void drawColumns(Line line, int bottom, StringBuilder svg) {
        double pitch = across(1) - across(0);
        double thickness = pitch > 4 ? pitch - 1.5 : pitch;
        double zero = Math.clamp(down(0, bottom), TOP, bottom);
        svg.append("<g class=\"%s\" data-series=\"%s\">\n".formatted(line.look.style(), line.series));
        for (Point point : line.points) {
            double end = down(point.y, bottom);
            svg.append("<rect class=\"column\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"><title>%s</title></rect>\n"
                    .formatted(
                            coordinate(across(point.x) - thickness / 2),
                            coordinate(Math.min(zero, end)),
                            coordinate(thickness),
                            coordinate(Math.abs(zero - end)),
                            Markup.escape(point.text)));
        }
        svg.append("</g>\n");
    }

    /** The row of each label below the axis: 0, or 1 if it would overlap there, or -1 if it fits in neither. */
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

    /** Below the tick, but within the drawing. */
    private double labelPlace(Scale.Tick tick) {
        return Math.min(across(tick.value()), width - halfWidth(tick));
    }

    private static double halfWidth(Scale.Tick tick) {
        return CHARACTER_WIDTH * (tick.label().length() + 1.5) / 2;
    }

    /** One coordinate of all points. */
    public static List<Double> values(List<Line> lines, ToDoubleFunction<Point> which) {
        return lines.stream()
                .flatMap(line -> line.points.stream())
                .map(which::applyAsDouble)
                .toList();
    }

    private static boolean drawn(Point point) {
        return Scale.drawable(point.x) && Scale.drawable(point.y);
    }

    /** Whether some values cannot be drawn. */
    public boolean leavesOut() {
        return lines.stream().flatMap(line -> line.points.stream()).anyMatch(point -> !drawn(point));
    }

    /** Whether some values are drawn at the start of an axis because it does not reach them. */
    public boolean clamps() {
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
        return Double.toString(Math.round(10 * value) / 10.0);
    }
}
