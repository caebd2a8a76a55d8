package org.fedcomuon.data;

import static java.util.stream.Collectors.joining;

import de.siegmar.fastcsv.reader.CsvParseException;
import de.siegmar.fastcsv.reader.CsvReader;
import de.siegmar.fastcsv.reader.CsvRecord;
import de.siegmar.fastcsv.reader.CsvRecordHandler;
import java.io.BufferedReader;
import java.io.FilterReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.NativeHeap;
import org.fedcomuon.internal.file.FileTransfer;

/**
 * A table in a CSV file, for data of your own: one example per line, after a line with the names of the columns. Cells
 * are separated by commas and may be quoted; the text is in UTF-8, with or without a byte order mark; empty lines are
 * skipped.
 *
 * <ul>
 *   <li>Every column except the label and the client is a feature: a finite decimal number in every line, kept as
 *       float32.
 *   <li>Labels that are all whole numbers are the numbers of the classes if none is negative, and stand for classes in
 *       ascending order otherwise. Labels that are words stand for classes in the order of their characters. Training
 *       and test labels are taken together, and the description of the data set lists the classes. A label with a
 *       fraction is refused: it is a number to predict, not a class.
 *   <li>A client column names the {@linkplain ExampleSet#group group} of each example.
 * </ul>
 *
 * A file may have {@value #MOST_BYTES} bytes, {@value #MOST_COLUMNS} columns and {@value #LONGEST} characters in a
 * cell.
 *
 * @param file the table
 * @param label the name of the column with the label
 * @param client the name of the column with the client, if there is one
 */
public record CsvFile(Path file, String label, Optional<String> client) {
    /** The limit of a file. */
    static final long MOST_BYTES = 1L << 34;

    /** The limit of a line, and so of the memory that is allocated for one. */
    static final int MOST_COLUMNS = 1 << 16;

    /** The limit of a cell. */
    static final int LONGEST = 1 << 12;

    /**
     * Reads a table for training and one for testing, which has the same columns.
     *
     * @throws MalformedFileException when a file is not such a table, or the two do not fit together
     * @throws IOException when a file is missing or cannot be read; every message is one line that names the file
     */
    public static LabelledDataset load(CsvFile train, CsvFile test) throws IOException {
        var digest = new ContentDigest();
        Both<Table> tables = Both.of(() -> train.read(digest), () -> test.read(digest));
        Table trained = tables.train();
        Table tested = tables.test();
        if (!trained.features.equals(tested.features)) {
            throw new MalformedFileException(
                    test.file,
                    "the features are %s, but those of %s are %s; they have to be equal, in the same order"
                            .formatted(quote(tested.features), train.file, quote(trained.features)));
        }
        LabelNames classes = LabelNames.of(train, trained.labels, tested.labels);
        return Holdout.dataset(
                trained.examples(classes), tested.examples(classes), classes.describe(train.file), digest.hex());
    }

    /**
     * Reads a table and holds back a share of each class for testing.
     *
     * @param testShare between 0 and 1
     * @param seed equal seeds hold back the same examples
     * @throws MalformedFileException when the file is not such a table
     * @throws IOException when the file is missing or cannot be read; every message is one line that names the file
     * @throws IllegalArgumentException when the share is not possible
     */
    public static LabelledDataset load(CsvFile train, double testShare, long seed) throws IOException {
        var digest = new ContentDigest();
        Table table = train.read(digest);
        LabelNames classes = LabelNames.of(train, table.labels);
        return Holdout.of(table.examples(classes), testShare, seed, classes.describe(train.file), digest.hex());
    }

    private Table read(ContentDigest digest) throws IOException {
        FileTransfer.requireRegular(file, "a CSV file");
        try {
            long size = Files.size(file);
            if (size > MOST_BYTES) {
                throw refused("%d bytes; at most %d are possible".formatted(size, MOST_BYTES));
            }
            try (InputStream in = digest.reading(Files.newInputStream(file));
                    Reader reader =
                            new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8.newDecoder()))) {
                skipByteOrderMark(reader);
                return read(reader);
            } catch (UncheckedIOException e) {
                throw e.getCause();
            }
        } catch (CharacterCodingException e) {
            throw new MalformedFileException(file, "not in UTF-8; convert it", e);
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }

    private static void skipByteOrderMark(Reader reader) throws IOException {
        reader.mark(1);
        if (reader.read() != '\ufeff') {
            reader.reset();
        }
    }

    private Table read(Reader whole) throws IOException {
        var reader = new QuoteCounter(whole);
        CsvRecordHandler records = CsvRecordHandler.of(
                limits -> limits.maxFields(MOST_COLUMNS).maxFieldSize(LONGEST).maxRecordSize(MOST_COLUMNS * LONGEST));
        CsvReader<CsvRecord> lines = CsvReader.builder()
                .skipEmptyLines(true)
                .allowExtraFields(true) // refused below, with the numbers of cells
                .allowMissingFields(true)
                .maxBufferSize(4 * LONGEST)
                .build(records, reader);
        try {
            Iterator<CsvRecord> each = lines.iterator();
            if (!each.hasNext()) {
                throw refused("the file is empty; a line with the names of the columns is needed");
            }
            var table = new Builder(this, each.next().getFields());
            while (each.hasNext()) {
                table.add(each.next());
            }
            if (reader.quotes % 2 != 0) {
                throw refused("a quote is not closed, or the file is truncated; every quoted cell ends with a quote");
            }
            return table.table();
        } catch (CsvParseException e) {
            throw new MalformedFileException(
                    file,
                    "not a table: %s"
                            .formatted(FileTransfer.clip(
                                    e.getCause() == null
                                            ? "" + e.getMessage()
                                            : e.getMessage() + ", "
                                                    + e.getCause().getMessage(),
                                    200)),
                    e);
        }
    }

    MalformedFileException refused(String problem) {
        return new MalformedFileException(file, problem);
    }

    private static String quote(List<String> names) {
        return FileTransfer.clip(names.stream().collect(joining(", ")), 120);
    }

    /** Returns a decimal number, or NaN for any other text. */
    static double number(String text) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if ((c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E') {
                return Double.NaN; // Double.parseDouble would accept hexadecimal numbers, suffixes and names
            }
        }
        try {
            return Double.parseDouble(text);
        } catch (NumberFormatException _) {
            return Double.NaN;
        }
    }

    /** Counts quotes: the parser takes the end of the file for the end of a quoted cell. */
    private static final class QuoteCounter extends FilterReader {
        long quotes;

        QuoteCounter(Reader in) {
            super(in);
        }

        @Override
        public int read(char[] into, int offset, int length) throws IOException {
            int count = super.read(into, offset, length);
            for (int i = offset; i < offset + count; i++) {
                if (into[i] == '"') {
                    quotes++;
                }
            }
            return count;
        }
    }

    /** What is read from one file. */
    private record Table(List<String> features, MemorySegment values, List<String> labels, List<String> groups) {
        ExampleSet examples(LabelNames classes) {
            int[] numbers = labels.stream().mapToInt(classes::number).toArray();
            return new ArraySet(List.of(features.size()), classes.count(), values, numbers, groups);
        }
    }

    /** Collects the lines of one file. */
    private static final class Builder {
        private static final int CHUNK = 1 << 16;

        private final CsvFile from;
        private final List<String> columns;
        private final int label;
        private final int client;
        private final List<String> labels = new ArrayList<>();
        private final List<String> groups = new ArrayList<>();
        /** Each name once: there are as many labels as examples, but few different ones. */
        private final Map<String, String> names = new HashMap<>();

        private final List<MemorySegment> chunks = new ArrayList<>();
        private long count;

        Builder(CsvFile from, List<String> header) throws MalformedFileException {
            this.from = from;
            columns = header.stream().map(String::strip).toList();
            Set<String> seen = new HashSet<>();
            for (String column : columns) {
                if (!seen.add(column)) {
                    throw from.refused("the column '%s' is there twice; every column has a name of its own"
                            .formatted(FileTransfer.clip(column)));
                }
            }
            label = column("label", from.label);
            client = from.client.isPresent() ? column("client", from.client.get()) : -1;
            if (label == client) {
                throw from.refused("the column '%s' is the label and the client; each has a column of its own"
                        .formatted(FileTransfer.clip(from.label)));
            }
            if (columns.size() <= (client < 0 ? 1 : 2)) {
                throw from.refused("no column is a feature; its columns are %s".formatted(quote(columns)));
            }
        }

        private int column(String what, String name) throws MalformedFileException {
            int index = columns.indexOf(name);
            if (index < 0) {
                throw from.refused("no column '%s' for the %s; the first line has %s"
                        .formatted(FileTransfer.clip(name), what, quote(columns)));
            }
            return index;
        }

        void add(CsvRecord line) throws MalformedFileException {
            if (line.getFieldCount() != columns.size()) {
                throw from.refused("line %d has %d cells, but the first line has %d columns"
                        .formatted(line.getStartingLineNumber(), line.getFieldCount(), columns.size()));
            }
            for (int i = 0; i < columns.size(); i++) {
                String cell = line.getField(i).strip();
                if (cell.indexOf('\n') >= 0 || cell.indexOf('\r') >= 0) {
                    throw refused(line, i, "has a line end; is a quote not closed?");
                }
                if (cell.isEmpty()) {
                    throw refused(line, i, "is empty; every cell needs a value");
                }
                if (i == label) {
                    double value = number(cell);
                    if (!Double.isNaN(value) && value != Math.rint(value)) {
                        throw refused(
                                line,
                                i,
                                "is '%s'; a label is a whole number or a word".formatted(FileTransfer.clip(cell)));
                    }
                    labels.add(once(cell));
                } else if (i == client) {
                    groups.add(once(cell));
                } else {
                    float value = (float) number(cell);
                    if (!Float.isFinite(value)) {
                        throw refused(
                                line,
                                i,
                                "is '%s'; a feature is a decimal number in the range of float32"
                                        .formatted(FileTransfer.clip(cell)));
                    }
                    add(value);
                }
            }
        }

        private String once(String name) {
            String known = names.putIfAbsent(name, name);
            return known == null ? name : known;
        }

        private void add(float value) {
            if (count / CHUNK == chunks.size()) {
                chunks.add(NativeHeap.allocate((long) CHUNK * Float.BYTES));
            }
            chunks.getLast().setAtIndex(ValueLayout.JAVA_FLOAT, count % CHUNK, value);
            count++;
        }

        private MalformedFileException refused(CsvRecord line, int column, String problem) {
            return from.refused("line %d, column '%s' %s"
                    .formatted(line.getStartingLineNumber(), FileTransfer.clip(columns.get(column)), problem));
        }

        Table table() throws MalformedFileException {
            if (labels.isEmpty()) {
                throw from.refused("no line follows the names of the columns; every line is an example");
            }
            MemorySegment values = NativeHeap.allocate(count * Float.BYTES);
            for (int i = 0; i < chunks.size(); i++) {
                long at = (long) i * CHUNK * Float.BYTES;
                long bytes = Math.min((long) CHUNK * Float.BYTES, values.byteSize() - at);
                MemorySegment.copy(chunks.get(i), 0, values, at, bytes);
            }
            var features = new ArrayList<>(columns);
            features.remove(from.label);
            from.client.ifPresent(features::remove);
            return new Table(List.copyOf(features), values, labels, groups);
        }
    }
}
