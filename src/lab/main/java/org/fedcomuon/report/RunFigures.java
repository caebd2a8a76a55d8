package org.fedcomuon.report;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.fedcomuon.chart.Look;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.chart.Plot;
import org.fedcomuon.chart.Scale;
import org.fedcomuon.experiment.Comparison;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.RunRecord.Evaluation;
import org.fedcomuon.experiment.RunRecord.State;
import org.fedcomuon.experiment.statistics.Interval;
import org.fedcomuon.experiment.statistics.Summary;

/** Metrics of runs as figures: one line per run, or one line per group of runs that differ by their seeds. */
final class RunFigures {
    /** One plot. */
    record Panel(Metric y, Metric x) {}

    private static final int WIDTH = 340;
    private static final int HEIGHT = 270;
    /** A run that diverged is drawn up to this multiple of all others, which would otherwise lie on the axis. */
    private static final double DIVERGED_UP_TO = 3;

    /** With more lines than this, each has fewer marks, so that they do not cover other lines. */
    private static final int CROWD = 4;

    /** Of the bands around means. */
    private static final double CONFIDENCE = Comparison.CONFIDENCE;

    private static final int FEWEST_MARKS = 2;

    private static final String CUT =
            " A run that diverged is drawn until it first exceeds three times the greatest value of the others.";

    private RunFigures() {}

    /** Returns each metric against the step. */
    static List<Panel> byStep(Metric... metrics) {
        return Stream.of(metrics).map(metric -> new Panel(metric, Metric.STEP)).toList();
    }

    /**
     * Returns one line per run. A panel without values is left out.
     *
     * @param id prefix of the ids within
     * @param heading markup
     * @param caption markup
     */
    static Figure each(String id, String heading, String caption, List<Panel> panels, List<RunSeries> runs) {
        List<RunRecord> all = runs.stream().map(RunSeries::run).toList();
        var plots = new ArrayList<Plot>();
        boolean cuts = false;
        for (Panel panel : drawable(panels, all)) {
            double limit = limit(panel, all);
            var lines = new ArrayList<Plot.Line>();
            for (int i = 0; i < runs.size(); i++) {
                RunSeries series = runs.get(i);
                List<Plot.Point> whole = points(panel, series.run(), series.label());
                List<Plot.Point> points = diverged(series.run())
                        ? whole.stream()
                                .takeWhile(point -> !(point.y() > limit))
                                .toList()
                        : whole;
                cuts |= points.size() < whole.size();
                lines.add(new Plot.Line(i, series.look(), points));
            }
            plots.add(plot(id + plots.size(), panel, lines, "One line per run"));
        }
        var keys = new ArrayList<Figure.Key>();
        if (runs.size() > 1) {
            runs.forEach(series -> keys.add(new Figure.Key(keys.size(), series.label(), series.look())));
        }
        return new Figure(heading, caption + (cuts ? CUT : ""), keys, plots, "many");
    }

    /**
     * Returns one line per group with the mean over its runs, in a band: the 95 % interval for the mean, or from the
     * least to the greatest where that is narrower. It ends where not all runs of the group have a finite value,
     * because a mean over the others would be too good.
     *
     * @param id prefix of the ids within
     * @param heading markup
     * @param caption markup
     * @param groups by the names in the legend; a method's name has that method's colour
     */
    static Figure means(
            String id, String heading, String caption, List<Panel> panels, Map<String, List<RunRecord>> groups) {
        List<String> names = List.copyOf(groups.keySet());
        List<Look> looks = RunSeries.numbers(names).stream()
                .map(number -> Look.of(number, false))
                .toList();
        List<RunRecord> all = groups.values().stream().flatMap(List::stream).toList();
        var plots = new ArrayList<Plot>();
        boolean cuts = false;
        for (Panel panel : drawable(panels, all)) {
            double limit = limit(panel, all);
            var bands = new ArrayList<Plot.Line>();
            var means = new ArrayList<Plot.Line>();
            for (int i = 0; i < names.size(); i++) {
                List<RunRecord> runs = groups.getOrDefault(names.get(i), List.of());
                List<Spread> whole = spreads(panel, runs);
                List<Spread> spreads = runs.stream().anyMatch(RunFigures::diverged)
                        ? whole.stream()
                                .takeWhile(spread -> !(spread.greatest > limit))
                                .toList()
                        : whole;
                cuts |= spreads.size() < whole.size();
                for (List<Plot.Point> band : bands(spreads)) {
                    bands.add(new Plot.Line(i, looks.get(i).band(), band));
                }
                means.add(new Plot.Line(i, looks.get(i), means(panel, spreads, names.get(i))));
            }
            // all bands first, so that none covers a line
            List<Plot.Line> lines =
                    Stream.concat(bands.stream(), means.stream()).toList();
            plots.add(plot(id + plots.size(), panel, lines, "One line per mean, in a band of its interval"));
        }
        var keys = new ArrayList<Figure.Key>();
        names.forEach(name -> keys.add(new Figure.Key(keys.size(), name, looks.get(keys.size()))));
        return new Figure(heading, caption + (cuts ? CUT : ""), keys, plots, "many");
    }

    /** Values of all runs of a group at the same step: their mean, and the ends of its band. */
    private record Spread(double x, double least, double mean, double greatest, int count) {
        static Spread of(List<Plot.Point> points) {
            List<Double> values = points.stream().map(Plot.Point::y).toList();
            double x = points.stream().mapToDouble(Plot.Point::x).average().orElse(Double.NaN);
            double least = Collections.min(values);
            double greatest = Collections.max(values);
            if (!values.stream().allMatch(Double::isFinite)) {
                return new Spread(x, least, Double.NaN, greatest, values.size());
            }
            Summary summary = Summary.of(values);
            Interval band = summary.interval(CONFIDENCE).orElse(new Interval(CONFIDENCE, least, greatest));
            return new Spread(
                    x, Math.max(least, band.low()), summary.mean(), Math.min(greatest, band.high()), values.size());
        }

        boolean isFinite() {
            return Double.isFinite(mean);
        }
    }

    private static List<Spread> spreads(Panel panel, List<RunRecord> runs) {
        var bySteps = new TreeMap<Long, List<Plot.Point>>();
        for (RunRecord run : runs) {
            for (Evaluation evaluation : run.evaluations()) {
                point(panel, evaluation, "")
                        .forEach(point -> bySteps.computeIfAbsent(evaluation.step(), step -> new ArrayList<>())
                                .add(point));
            }
        }
        return bySteps.values().stream()
                .filter(points -> points.size() == runs.size())
                .map(Spread::of)
                .toList();
    }

    private static List<Plot.Point> means(Panel panel, List<Spread> spreads, String name) {
        return spreads.stream()
                .map(spread -> {
                    String text = text(panel, name, spread.x, spread.mean);
                    return new Plot.Point(
                            spread.x,
                            spread.mean,
                            spread.count == 1
                                    ? text
                                    : "%s, mean of %s, band %s to %s"
                                            .formatted(
                                                    text,
                                                    spread.count,
                                                    panel.y.text(spread.least),
                                                    panel.y.text(spread.greatest)));
                })
                .toList();
    }

    /** Returns the outlines of the bands, one per interval of finite values. */
    private static List<List<Plot.Point>> bands(List<Spread> spreads) {
        var bands = new ArrayList<List<Plot.Point>>();
        int from = 0;
        for (int i = 0; i <= spreads.size(); i++) {
            if (i < spreads.size() && spreads.get(i).isFinite()) {
                continue;
            }
            List<Spread> stretch = spreads.subList(from, i);
            from = i + 1;
            if (stretch.size() > 1 && stretch.getFirst().count > 1) {
                bands.add(Stream.concat(
                                stretch.stream().map(spread -> new Plot.Point(spread.x, spread.greatest, "")),
                                stretch.reversed().stream().map(spread -> new Plot.Point(spread.x, spread.least, "")))
                        .toList());
            }
        }
        return bands;
    }

    private static List<Panel> drawable(List<Panel> panels, List<RunRecord> runs) {
        return panels.stream()
                .filter(panel -> runs.stream()
                        .flatMap(run -> run.evaluations().stream())
                        .anyMatch(evaluation -> !point(panel, evaluation, "").isEmpty()))
                .toList();
    }

    /**
     * Returns the points of a run. An evaluation without the metric is skipped; a value that is not finite leaves a
     * gap.
     */
    private static List<Plot.Point> points(Panel panel, RunRecord run, String label) {
        return run.evaluations().stream()
                .flatMap(evaluation -> point(panel, evaluation, label).stream())
                .toList();
    }

    /** Returns the point of an evaluation, if it has the metric. */
    private static List<Plot.Point> point(Panel panel, Evaluation evaluation, String label) {
        OptionalDouble x = panel.x.of(evaluation);
        OptionalDouble y = panel.y.of(evaluation);
        return x.isEmpty() || y.isEmpty()
                ? List.of()
                : List.of(new Plot.Point(
                        x.getAsDouble(), y.getAsDouble(), text(panel, label, x.getAsDouble(), y.getAsDouble())));
    }

    private static String text(Panel panel, String label, double x, double y) {
        String at = panel.x.unit() == Metric.Unit.COUNT ? panel.x.name() + " " + panel.x.text(x) : panel.x.text(x);
        return "%s, %s: %s %s".formatted(label, at, panel.y.name(), panel.y.text(y));
    }

    private static boolean diverged(RunRecord run) {
        return run.state() == State.DIVERGED;
    }

    private static double limit(Panel panel, List<RunRecord> runs) {
        return runs.stream()
                .filter(run -> !diverged(run))
                .flatMap(run -> points(panel, run, "").stream())
                .mapToDouble(Plot.Point::y)
                .filter(Scale::drawable)
                .map(value -> DIVERGED_UP_TO * value)
                .max()
                .orElse(Double.POSITIVE_INFINITY);
    }

    private static Plot plot(String id, Panel panel, List<Plot.Line> lines, String what) {
        List<Double> across = Plot.values(lines, Plot.Point::x);
        List<Double> up = Plot.values(lines, Plot.Point::y);
        Metric.Measure x = panel.x.measure(across);
        Metric.Measure y = panel.y.measure(up);
        boolean logarithmic = panel.y.unit() == Metric.Unit.PLAIN && Scale.isWide(up);
        long marked =
                lines.stream().filter(line -> !line.look().mark().isEmpty()).count();
        int marks = Math.clamp(Plot.MARKS * CROWD / Math.max(1, marked), FEWEST_MARKS, Plot.MARKS);
        List<Plot.Line> measured = lines.stream()
                .map(line -> new Plot.Line(
                        line.series(),
                        line.look(),
                        line.points().stream()
                                .map(point -> new Plot.Point(point.x() / x.size(), point.y() / y.size(), point.text()))
                                .toList(),
                        marks))
                .toList();
        List<Double> values = Plot.values(measured, Plot.Point::y);
        return new Plot(
                id,
                panel.y.name(),
                "%s against %s".formatted(panel.y.name(), panel.x.name()),
                "%s, %s axis.".formatted(what, logarithmic ? "logarithmic" : "linear"),
                WIDTH,
                HEIGHT,
                new Plot.Axis(
                        x.name().isEmpty() ? panel.x.name() : panel.x.name() + ", " + x.name(),
                        Scale.linear(Plot.values(measured, Plot.Point::x))),
                new Plot.Axis(
                        logarithmic ? "logarithmic" : y.name(),
                        logarithmic ? Scale.logarithmic(values, Numbers::brief) : Scale.close(values)),
                measured);
    }
}
