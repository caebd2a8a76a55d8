package org.fedcomuon.report;

import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.toList;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.fedcomuon.chart.Look;
import org.fedcomuon.chart.Plot;
import org.fedcomuon.experiment.CompareReport;
import org.fedcomuon.experiment.CompareReport.Curve;
import org.fedcomuon.experiment.CompareReport.Entry;
import org.fedcomuon.experiment.CompareReport.Subject;

/** The results of a comparison by matrix and by method; a method is a series, and looks the same in all plots. */
final class CompareSeries {
    private static final Comparator<Subject> BY_SHAPE =
            Comparator.comparing(Shape::of).thenComparingDouble(Subject::condition);

    private final Map<Subject, List<Entry>> cases = new LinkedHashMap<>();
    /** In the order of the entries, which is also that of the legends. */
    private final Map<String, Look> looks = new LinkedHashMap<>();

    private final List<String> sets;

    CompareSeries(CompareReport report) {
        Map<Subject, List<Entry>> bySubject =
                report.entries().stream().collect(groupingBy(Entry::subject, LinkedHashMap::new, toList()));
        Stream<Subject> ordered = bySubject.keySet().stream();
        // matrices of a run keep the order of its model
        (report.ofRun() ? ordered : ordered.sorted(BY_SHAPE)).forEach(one -> cases.put(one, bySubject.get(one)));
        sets = Stream.concat(
                        report.entries().stream().map(Entry::set).filter(name -> !name.isEmpty()),
                        report.curves().stream().map(Curve::set))
                .distinct()
                .toList();
        for (Entry entry : report.entries()) {
            looks.put(entry.label(), look(entry));
        }
    }

    /** A shape of matrices; shapes are ordered by the number of multiplications. */
    record Shape(int rows, int cols) implements Comparable<Shape> {
        private static final Comparator<Shape> ORDER = Comparator.comparingDouble(Shape::side)
                .thenComparingInt(Shape::rows)
                .thenComparingInt(Shape::cols);

        static Shape of(Subject subject) {
            return new Shape(subject.rows(), subject.cols());
        }

        /** Returns the side of the square matrix that takes as many multiplications. */
        double side() {
            return Math.cbrt((double) rows * cols * Math.min(rows, cols));
        }

        String label() {
            return rows + "×" + cols;
        }

        @Override
        public int compareTo(Shape other) {
            return ORDER.compare(this, other);
        }
    }

    private Look look(Entry entry) {
        if (entry.isExact()) {
            return entry.method().equals(CompareReport.EXACT) ? Look.EXACT : Look.EXACT_TOO;
        }
        return Look.of(sets.indexOf(entry.set()), !entry.method().equals("newton-schulz"));
    }

    /** Returns how the curve of a set of coefficients looks: as the results of its plain iteration do. */
    Look look(Curve curve) {
        return Look.of(sets.indexOf(curve.set()), false);
    }

    /** Returns the matrices, the smallest first, or in the order of the model. */
    List<Subject> subjects() {
        return List.copyOf(cases.keySet());
    }

    /** Returns the results on one matrix. */
    List<Entry> of(Subject subject) {
        return cases.getOrDefault(subject, List.of());
    }

    /** Returns a legend of the methods that have such results. */
    List<Figure.Key> keys(Predicate<Entry> shown) {
        var keys = new ArrayList<Figure.Key>();
        int number = 0;
        for (Map.Entry<String, Look> look : looks.entrySet()) {
            if (cases.values().stream()
                    .flatMap(List::stream)
                    .anyMatch(entry -> entry.label().equals(look.getKey()) && shown.test(entry))) {
                keys.add(new Figure.Key(number, look.getKey(), look.getValue()));
            }
            number++;
        }
        return keys;
    }

    /** The values of a result. */
    interface Points {
        Stream<Plot.Point> of(Entry entry);
    }

    /** Returns a line for each method that has such results on these matrices; of several paths the fastest. */
    List<Plot.Line> lines(List<Subject> which, Predicate<Entry> shown, Points values) {
        var lines = new ArrayList<Plot.Line>();
        int series = 0;
        for (String label : looks.keySet()) {
            List<Plot.Point> points = which.stream()
                    .flatMap(one -> of(one).stream()
                            .filter(entry -> entry.label().equals(label) && shown.test(entry))
                            .min(Comparator.comparingDouble(Entry::seconds))
                            .stream())
                    .flatMap(values::of)
                    .toList();
            if (!points.isEmpty()) {
                lines.add(new Plot.Line(series, looks.get(label), points));
            }
            series++;
        }
        return lines;
    }
}
