package org.fedcomuon.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Makes the tables of {@code docs/reliability.md} of what a soak has left: prints them, or with {@code --into FILE}
 * puts them there, between the markers. A table that the soak has no row of stays as it is.
 */
public final class SoakTables {
    private static final String END = "<!-- soak: end -->";

    private SoakTables() {}

    /** Prints, or writes. */
    public static void main(String[] arguments) throws IOException {
        boolean into = arguments.length == 2 && arguments[0].equals("--into");
        String text = into ? Files.readString(Path.of(arguments[1])) : "";
        for (SoakReport.Table table : SoakReport.Table.values()) {
            Optional<String> rows = rows(table);
            if (rows.isPresent()) {
                text = into ? replaced(text, table, rows.get()) : text + rows.get() + '\n';
            }
        }
        if (into) {
            Files.writeString(Path.of(arguments[1]), text);
        } else {
            System.out.print(text);
        }
    }

    static String begin(SoakReport.Table table) {
        return "<!-- soak %s: made by ./fedcomuon test --soak -->\n"
                .formatted(table.name().toLowerCase(Locale.ROOT));
    }

    /** What stands between the markers of a table; empty where there are none. */
    static Optional<String> between(String page, SoakReport.Table table) {
        int begin = page.indexOf(begin(table));
        int end = page.indexOf(END, begin);
        return begin < 0 || end < 0
                ? Optional.empty()
                : Optional.of(page.substring(begin + begin(table).length(), end));
    }

    private static String replaced(String page, SoakReport.Table table, String rows) {
        String before = between(page, table)
                .orElseThrow(() -> new IllegalArgumentException("the page has no markers for " + table));
        return page.replace(begin(table) + before + END, begin(table) + rows + END);
    }

    private static Optional<String> rows(SoakReport.Table table) throws IOException {
        if (!Files.isDirectory(table.directory())) {
            return Optional.empty();
        }
        List<Path> files;
        try (Stream<Path> all = Files.list(table.directory())) {
            files = all.sorted().toList();
        }
        if (files.isEmpty()) {
            return Optional.empty();
        }
        var text = new StringBuilder(table.header());
        var day = LocalDate.MIN;
        for (Path file : files) {
            text.append(Files.readString(file));
            LocalDate written = Files.getLastModifiedTime(file)
                    .toInstant()
                    .atZone(ZoneOffset.UTC)
                    .toLocalDate();
            day = written.isAfter(day) ? written : day;
        }
        return Optional.of(text.append('\n')
                .append("%s, %d cores, Java %s.\n"
                        .formatted(day, Runtime.getRuntime().availableProcessors(), System.getProperty("java.version")))
                .toString());
    }
}
