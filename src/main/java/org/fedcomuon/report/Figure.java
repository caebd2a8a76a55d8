package org.fedcomuon.report;

import java.util.List;

/**
 * Plots that share a legend.
 *
 * @param heading as markup
 * @param caption as markup
 * @param keys none if there is nothing to tell apart
 * @param layout a class of the style sheet: {@code one} plot, or {@code many}
 */
record Figure(String heading, String caption, List<Key> keys, List<Plot> plots, String layout) {
    /**
     * A legend's entry.
     *
     * @param series of the lines that it names
     */
    record Key(int series, String name, Look look) {}

    String html() {
        var html = new StringBuilder();
        html.append("<section>\n<h2>").append(heading).append("</h2>\n<figure>\n");
        if (!keys.isEmpty()) {
            html.append("<ul class=\"legend\">\n");
            for (Key key : keys) {
                html.append("<li data-series=\"%s\">%s%s</li>\n"
                        .formatted(key.series, key.look.key(), Html.escape(key.name)));
            }
            html.append("</ul>\n");
        }
        html.append("<div class=\"").append(layout).append("\">\n");
        plots.forEach(plot -> html.append(plot.svg()));
        html.append("</div>\n<figcaption>").append(caption);
        if (plots.stream().anyMatch(Plot::clamps)) {
            html.append(" A logarithmic axis has no place for zero: it is drawn where the axis starts.");
        }
        if (plots.stream().anyMatch(Plot::leavesOut)) {
            html.append(" Values that are not finite are left out.");
        }
        return html.append("</figcaption>\n</figure>\n</section>\n").toString();
    }
}
