package org.fedcomuon.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/**
 * Figures of tests that soak, for {@code docs/reliability.md}: every test leaves its row in {@code target/soak}, and
 * {@link SoakTables} makes the tables.
 */
public final class SoakReport {
    /** A table of the page, with what its columns are. */
    public enum Table {
        READERS("reader", "inputs", "read", "refused", "slowest", "largest allocation", "allowed"),
        KILLS("what", "processes killed", "while a file was being written", "resumed with bit-identical results"),
        MEMORY(
                "run",
                "rounds",
                "RSS at half time",
                "RSS at the end",
                "heap after GC",
                "threads",
                "open files",
                "device memory left at the end",
                "client faults"),
        FEDERATIONS("device", "rounds", "federations at once", "bit-identical to running alone"),
        VISITORS(
                "run",
                "hostile connections",
                "RSS after half of them",
                "RSS after all",
                "open files after half and all",
                "bit-identical to running alone");

        private final String header;
        private final int columns;

        Table(String... names) {
            header = line(names);
            columns = names.length;
        }

        String header() {
            return header + "|---".repeat(columns) + "|\n";
        }

        Path directory() {
            return Repository.target().resolve("soak").resolve(name().toLowerCase(Locale.ROOT));
        }
    }

    private SoakReport() {}

    /** Leaves a row, in place of an earlier one of the same name, if this is a soak. */
    public static void row(Table table, String name, String... figures) {
        if (figures.length + 1 != table.columns) {
            throw new IllegalArgumentException("%d figures for %s".formatted(figures.length, table));
        }
        if (!Boolean.getBoolean("tests.soak")) {
            return;
        }
        var cells = new String[figures.length + 1];
        cells[0] = name;
        System.arraycopy(figures, 0, cells, 1, figures.length);
        String slug = name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "-");
        try {
            Files.createDirectories(table.directory());
            Files.writeString(table.directory().resolve(slug + ".md"), line(cells));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String line(String[] cells) {
        return "| " + String.join(" | ", cells) + " |\n";
    }
}
