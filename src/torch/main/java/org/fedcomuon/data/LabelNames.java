package org.fedcomuon.data;

import static java.util.stream.Collectors.joining;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.file.FileTransfer;

/** The classes that the labels of a table stand for, by the rules of {@link CsvFile}. Immutable. */
final class LabelNames {
    private static final int LISTED = 20;

    private final Map<String, Integer> numbers;
    /** By class; empty if labels are the numbers of their classes. */
    private final List<String> names;

    private final int count;

    private LabelNames(Map<String, Integer> numbers, List<String> names, int count) {
        this.numbers = numbers;
        this.names = names;
        this.count = count;
    }

    /**
     * Finds the classes of all labels together; none of them has a fraction.
     *
     * @param file for messages
     * @throws MalformedFileException when there are too many
     */
    @SafeVarargs
    static LabelNames of(CsvFile file, Collection<String>... labels) throws MalformedFileException {
        Set<String> distinct = new HashSet<>();
        for (Collection<String> each : labels) {
            distinct.addAll(each);
        }
        Map<String, Integer> numbers = new HashMap<>();
        if (distinct.stream().anyMatch(label -> Double.isNaN(CsvFile.number(label)))) {
            List<String> names = distinct.stream().sorted().toList();
            requireFew(file, names.size() - 1, names.getLast());
            names.forEach(name -> numbers.put(name, numbers.size()));
            return new LabelNames(numbers, names, names.size());
        }
        List<String> ascending = distinct.stream()
                .sorted(Comparator.comparingDouble(CsvFile::number).thenComparing(Comparator.naturalOrder()))
                .toList();
        boolean ownNumbers = CsvFile.number(ascending.getFirst()) >= 0;
        var names = new ArrayList<String>();
        double last = Double.NaN;
        for (String label : ascending) { // 1 and 1.0 are one class
            double value = CsvFile.number(label);
            if (value != last) {
                names.add(label);
                last = value;
            }
            requireFew(file, ownNumbers ? value : names.size() - 1, label);
            numbers.put(label, ownNumbers ? (int) value : names.size() - 1);
        }
        return ownNumbers
                ? new LabelNames(numbers, List.of(), (int) last + 1)
                : new LabelNames(numbers, List.copyOf(names), names.size());
    }

    private static void requireFew(CsvFile file, double number, String label) throws MalformedFileException {
        if (number >= Labels.MOST_CLASSES) {
            throw file.refused("column '%s' has the label '%s'; at most %d classes are possible, numbered from 0"
                    .formatted(FileTransfer.clip(file.label()), FileTransfer.clip(label), Labels.MOST_CLASSES));
        }
    }

    /** Returns the class of one of the labels. */
    int number(String label) {
        Integer number = numbers.get(label);
        if (number == null) {
            throw new IllegalArgumentException("'%s' is not one of the labels".formatted(label));
        }
        return number;
    }

    /** Returns the number of classes. */
    int count() {
        return count;
    }

    /** Returns what the data set is, with the names of its first classes. */
    String describe(Path file) {
        String table = "table %s".formatted(file.getFileName());
        if (!names.isEmpty()) {
            table += names.stream().limit(LISTED).map(FileTransfer::clip).collect(joining(", ", " with classes ", ""));
            table += names.size() > LISTED ? ", ..." : "";
        }
        return MalformedFileException.oneLine(table);
    }
}
