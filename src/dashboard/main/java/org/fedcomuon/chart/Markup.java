package org.fedcomuon.chart;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;

/** What every page with charts needs. */
public final class Markup {
    private static final String STYLE = resource(Markup.class, "chart.css");

    private Markup() {}

    /** The style sheet of charts, with the colours of the page. */
    public static String style() {
        return STYLE;
    }

    /** A resource of a page, in the package of a class. */
    public static String resource(Class<?> beside, String name) {
        try (InputStream in = Objects.requireNonNull(beside.getResourceAsStream(name), name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Escapes text for an element or a quoted attribute. */
    public static String escape(String text) {
        var escaped = new StringBuilder(text.length());
        text.codePoints().forEach(c -> {
            switch (c) {
                case '&' -> escaped.append("&amp;");
                case '<' -> escaped.append("&lt;");
                case '>' -> escaped.append("&gt;");
                case '"' -> escaped.append("&quot;");
                case '\'' -> escaped.append("&#39;");
                default -> escaped.appendCodePoint(isXml(c) ? c : '\uFFFD');
            }
        });
        return escaped.toString();
    }

    /** XML 1.0 cannot represent other characters. */
    private static boolean isXml(int c) {
        return c == '\t'
                || c == '\n'
                || c == '\r'
                || (c >= ' ' && c <= 0xD7FF)
                || (c >= 0xE000 && c <= 0xFFFD)
                || c >= 0x10000;
    }
}
