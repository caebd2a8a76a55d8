package org.fedcomuon.report;

import java.util.List;
import org.fedcomuon.chart.Look;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.chart.Plot;

/**
 * Plots that share a legend.
 *
 * @param heading markup
 * @param caption markup
 * @param keys the legend; empty for a single series
 * @param layout a class of the style sheet: {@code one} plot, or {@code many}
 */
record Figure(String heading, String caption, List<Key> keys, List<Plot> plots, String layout) {
    /**
     * An entry of the legend.
     *
     * @param series of the lines that it names
     */
    record Key(int series, String name, Look look) {}

    private static final int GAP = 16;
    private static final int LINE_HEIGHT = 22;
    private static final int KEY_WIDTH = 52;
    /** An estimate that is rather too large, because the width of text is known only when it is drawn. */
    private static final int CHARACTER_WIDTH = 8;

    /** A page styles its text and lays out its plots; a drawing does so itself. */
    private static final String DRAWING_STYLE = """
            text { font: 13px system-ui, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif;
              fill: var(--ink); }
            .paper { fill: var(--paper); }
            .drawing .plot { width: auto; max-width: none; }
            """;

    String html() {
        var html = new StringBuilder();
        html.append("<section>\n<h2>").append(heading).append("</h2>\n<figure>\n");
        if (!keys.isEmpty()) {
            html.append("<ul class=\"legend\">\n");
            for (Key key : keys) {
                html.append("<li data-series=\"%s\">%s%s</li>\n"
                        .formatted(key.series, key.look.key(), Markup.escape(key.name)));
            }
            html.append("</ul>\n");
        }
        html.append("<div class=\"").append(layout).append("\">\n");
        plots.forEach(plot -> html.append(plot.svg()));
        html.append("</div>\n<figcaption>").append(caption);
        if (plots.stream().anyMatch(Plot::clamps)) {
            html.append(" A logarithmic axis has no zero; zeros are drawn at its start.");
        }
        if (plots.stream().anyMatch(Plot::leavesOut)) {
            html.append(" Values that are not finite are left out.");
        }
        return html.append("</figcaption>\n</figure>\n</section>\n").toString();
    }

    /**
     * Returns the plots side by side and the legend below them, as an SVG document that refers to nothing outside
     * itself.
     */
    String svg(String title) {
        int width = GAP;
        int height = 0;
        var drawing = new StringBuilder();
        for (Plot plot : plots) {
            drawing.append("<svg x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\">\n%s</svg>\n"
                    .formatted(width, GAP / 2, plot.width(), plot.height(), plot.svg()));
            width += plot.width() + GAP;
            height = Math.max(height, plot.height() + GAP);
        }
        int x = GAP;
        int y = height + LINE_HEIGHT / 2;
        for (Key key : keys) {
            int keyWidth = KEY_WIDTH + CHARACTER_WIDTH * key.name.length();
            if (x > GAP && x + keyWidth > width) {
                x = GAP;
                y += LINE_HEIGHT;
            }
            drawing.append(
                    "<svg x=\"%s\" y=\"%s\" width=\"44\" height=\"16\">%s</svg><text x=\"%s\" y=\"%s\">%s</text>\n"
                            .formatted(x, y - 8, key.look.key(), x + KEY_WIDTH, y + 4, Markup.escape(key.name)));
            x += keyWidth + GAP;
        }
        height = keys.isEmpty() ? height : y + LINE_HEIGHT;
        return """
                <svg xmlns="http://www.w3.org/2000/svg" class="drawing" role="img" viewBox="0 0 %1$s %2$s" width="%1$s" height="%2$s">
                <title>%3$s</title>
                <style>
                %4$s</style>
                <rect class="paper" width="%1$s" height="%2$s" rx="6"/>
                %5$s</svg>
                """.formatted(width, height, Markup.escape(title), Markup.style() + DRAWING_STYLE, drawing);
    }
}
