package org.fedcomuon.dashboard;

import static java.util.stream.Collectors.joining;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.chart.Look;
import org.fedcomuon.chart.Markup;
import org.fedcomuon.chart.Numbers;
import org.fedcomuon.chart.Plot;
import org.fedcomuon.chart.Scale;

/** The charts of the page as markup, drawn as those of the reports are; the page puts each figure into its place. */
final class Charts {
    /** Lines of more clients cannot be told apart; the page shows them as a map instead. */
    private static final int MOST_LINES = 12;

    private static final int WIDTH = 420;
    private static final int HEIGHT = 260;

    private static final String BARS = "bars";
    private static final String NOTHING = "–";

    /**
     * What the reader of the page has chosen.
     *
     * @param logarithmic ids of charts that have a logarithmic scale whatever their values are
     * @param linear ids of charts that have a linear scale whatever their values are
     * @param byLoss whether clients are ordered by their loss instead of their number
     */
    record Choices(Set<String> logarithmic, Set<String> linear, boolean byLoss) {
        static final Choices NONE = new Choices(Set.of(), Set.of(), false);
    }

    /** Metrics that share a chart. */
    private record Kind(String id, String title, boolean share, Predicate<String> has) {
        static Kind of(String id, boolean share, String pattern) {
            return new Kind(id, capitalized(id), share, Pattern.compile(pattern).asPredicate());
        }
    }

    private static final List<Kind> KINDS = List.of(
            Kind.of("loss", false, "(^|_)loss(_|$)"),
            Kind.of("accuracy", true, "accuracy$"),
            Kind.of("AUC", true, "_auc$"),
            Kind.of("objective", false, "objective$"),
            Kind.of("perplexity", false, "perplexity$"));

    private static final Pattern KIND = Pattern.compile("_?(loss|accuracy|auc|objective|perplexity)");

    /** A metric looks the same in every chart. */
    private static final List<String> ORDER = List.of("train", "test", "train_objective", "worst", "train_loss_pooled");

    /**
     * A line of a chart.
     *
     * @param key by which the page finds its values
     * @param last the last value, as the legend has it
     */
    private record Series(String key, String name, Look look, List<Plot.Point> points, String last) {
        static Series of(String key, String name, Look look, List<Plot.Point> points, boolean share) {
            double last = points.isEmpty() ? Double.NaN : points.getLast().y();
            String text = points.isEmpty() ? NOTHING : share ? Numbers.percent(last, 1) : plain(last);
            return new Series(key, name, look, points, text);
        }
    }

    private final History.Courses courses;
    private final Choices choices;

    private Charts(History.Courses courses, Choices choices) {
        this.courses = courses;
        this.choices = choices;
    }

    /** All charts. An element with {@code data-into} names the element of the page that its figures belong into. */
    static String html(History.Courses courses, Choices choices) {
        var charts = new Charts(courses, choices);
        return "<div data-into=\"curves\">\n%s%s</div>\n<div data-into=\"client-charts\">\n%s%s</div>\n"
                .formatted(charts.rounds(), charts.evaluations(), charts.lastLosses(), charts.lossesOverTime());
    }

    private String rounds() {
        // Without rounds, or with several inner values, which are no losses, only evaluations have something to show.
        if (courses.rounds().stream().noneMatch(one -> Scale.drawable(one.mean()))
                && !courses.evaluations().isEmpty()) {
            return "";
        }
        var outline = new ArrayList<Plot.Point>();
        var means = new ArrayList<Plot.Point>();
        for (History.Rounds one : courses.rounds()) {
            means.add(new Plot.Point(one.step(), one.mean(), "step %d: %s".formatted(one.step(), plain(one.mean()))));
            if (Scale.drawable(one.least()) && Scale.drawable(one.greatest())) {
                outline.add(new Plot.Point(one.step(), one.greatest(), ""));
            }
        }
        courses.rounds().reversed().stream()
                .filter(one -> Scale.drawable(one.least()) && Scale.drawable(one.greatest()))
                .forEach(one -> outline.add(new Plot.Point(one.step(), one.least(), "")));
        Look look = Look.of(0, false);
        return figure(
                "rounds",
                "Mean loss of a round",
                false,
                List.of(new Series("rounds", "mean", look, means, lastOfRounds())),
                List.of(new Plot.Line(0, look.band(), outline)),
                "On the samples drawn; the area is from the least to the greatest of all clients.");
    }

    private String lastOfRounds() {
        if (courses.rounds().isEmpty()) {
            return NOTHING;
        }
        History.Rounds last = courses.rounds().getLast();
        return "%s, clients %s to %s".formatted(plain(last.mean()), plain(last.least()), plain(last.greatest()));
    }

    private String evaluations() {
        Set<String> keys = new LinkedHashSet<>();
        courses.evaluations().forEach(one -> keys.addAll(one.metrics().keySet()));
        Map<Kind, List<String>> kinds = new LinkedHashMap<>();
        KINDS.forEach(kind -> kinds.put(kind, keys.stream().filter(kind.has()).toList()));
        keys.stream()
                .filter(key -> KINDS.stream().noneMatch(kind -> kind.has().test(key)))
                .forEach(key -> kinds.put(
                        new Kind(
                                key.replaceAll("[^A-Za-z0-9_]", "-"),
                                capitalized(key.replace('_', ' ')),
                                false,
                                key::equals),
                        List.of(key)));
        var html = new StringBuilder();
        kinds.forEach((kind, members) -> {
            if (!members.isEmpty()) {
                html.append(evaluated(kind, members));
            }
        });
        return html.toString();
    }

    private String evaluated(Kind kind, List<String> members) {
        boolean share = kind.share()
                && courses.evaluations().stream()
                        .flatMap(one -> one.metrics().entrySet().stream())
                        .noneMatch(one -> members.contains(one.getKey()) && (one.getValue() < 0 || one.getValue() > 1));
        var series = new ArrayList<Series>();
        for (String key : members) {
            String name = KIND.matcher(key).replaceFirst("").replace('_', ' ').strip();
            String shown = name.isEmpty() ? kind.title().toLowerCase(Locale.ROOT) : name;
            int number = Stream.of(key, key.split("_", 2)[0])
                    .map(ORDER::indexOf)
                    .filter(i -> i >= 0)
                    .findFirst()
                    .orElse(ORDER.size() + series.size());
            List<Plot.Point> points = courses.evaluations().stream()
                    .filter(one -> one.metrics().containsKey(key))
                    .map(one -> point(shown, one.step(), one.metrics().getOrDefault(key, Double.NaN)))
                    .toList();
            series.add(Series.of(key, shown, Look.of(number, false), points, share));
        }
        return figure(
                kind.id(),
                kind.title() + ", evaluated",
                share,
                series,
                List.of(),
                "Of the average model, at step %s%s."
                        .formatted(
                                courses.evaluations().getLast().step(),
                                members.stream().anyMatch(key -> key.startsWith("worst_client"))
                                        ? "; the worst client is judged by its own training data"
                                        : ""));
    }

    private static Plot.Point point(String name, long step, double value) {
        return new Plot.Point(step, value, "%s, step %d: %s".formatted(name, step, plain(value)));
    }

    /** One bar per client, or per group of them where there are many. */
    private String lastLosses() {
        ClientLosses.Last last = courses.losses();
        List<Integer> known = IntStream.range(0, last.losses().size())
                .filter(row -> !last.losses().get(row).isNaN())
                .boxed()
                .sorted(
                        choices.byLoss
                                ? Comparator.comparingDouble(
                                                (Integer row) -> last.losses().get(row))
                                        .reversed()
                                : Comparator.naturalOrder())
                .toList();
        if (known.isEmpty()) {
            return "";
        }
        int worst = known.stream()
                .max(Comparator.comparingDouble(row -> last.losses().get(row)))
                .orElseThrow();
        double most = known.stream()
                .mapToDouble(row -> last.losses().get(row))
                .filter(Scale::drawable)
                .max()
                .orElse(1);
        List<Double> values = new ArrayList<>();
        Map<String, List<Plot.Point>> bars = new LinkedHashMap<>();
        Stream.of("c1", "c1 old", "c2").forEach(style -> bars.put(style, new ArrayList<>()));
        var ticks = new ArrayList<Scale.Tick>();
        int columns = choices.byLoss ? known.size() : last.losses().size();
        for (int i = 0; i < known.size(); i++) {
            int row = known.get(i);
            double loss = last.losses().get(row);
            values.add(loss);
            long age = last.ages().get(row);
            String ago = age > 0 ? ", %d %s ago".formatted(age, age == 1 ? "round" : "rounds") : "";
            String text = "%s: %s%s".formatted(last.name(row), plain(loss), ago);
            int at = choices.byLoss ? i : row;
            bars.getOrDefault(row == worst ? "c2" : age > 0 ? "c1 old" : "c1", new ArrayList<>())
                    .add(new Plot.Point(at, Scale.drawable(loss) ? loss : loss > 0 ? most : 0, text));
            ticks.add(new Scale.Tick(at, Integer.toString(row * last.group())));
        }
        var lines = new ArrayList<Plot.Line>();
        bars.forEach((style, points) -> lines.add(new Plot.Line(lines.size(), Look.columns(style), points)));
        boolean logarithmic = isLogarithmic(BARS, values);
        String title = "Loss of each client, last round";
        var plot = new Plot(
                BARS,
                "",
                title,
                "One bar per client.",
                WIDTH,
                HEIGHT,
                new Plot.Axis("client", new Scale(false, -0.5, columns - 0.5, thinned(ticks))),
                logarithmic ? axis(true, "", values) : new Plot.Axis("", Scale.linear(values)), // a bar begins at 0
                lines);
        long old = known.stream().filter(row -> last.ages().get(row) > 0).count();
        String note = "%s%s%s."
                .formatted(
                        choices.byLoss ? "The worst first" : "By number of the client; the worst is orange",
                        last.group() > 1 ? "; each bar is the worst of %d clients".formatted(last.group()) : "",
                        old > 0 ? "; %d pale ones are from an earlier round".formatted(old) : "");
        String sort =
                "<button type=\"button\" class=\"sort\" aria-pressed=\"%s\">by loss</button>".formatted(choices.byLoss);
        return figure(BARS, title, button(logarithmic) + " " + sort, plot.svg(), "", note);
    }

    private static List<Scale.Tick> thinned(List<Scale.Tick> ticks) {
        int every = Math.ceilDiv(ticks.size(), 12);
        return IntStream.range(0, ticks.size())
                .filter(i -> i % every == 0)
                .mapToObj(ticks::get)
                .toList();
    }

    private String lossesOverTime() {
        int rows = courses.losses().losses().size();
        if (rows > MOST_LINES || courses.columns().isEmpty()) {
            return "";
        }
        var series = new ArrayList<Series>();
        for (int row = 0; row < rows; row++) {
            int client = row;
            String name = Integer.toString(row);
            List<Plot.Point> points = courses.columns().stream()
                    .filter(column -> !Float.isNaN(column.row(client)))
                    .map(column -> point("client " + name, column.step(), column.row(client)))
                    .toList();
            series.add(Series.of(name, name, Look.of(row, false), points, false));
        }
        if (courses.columns().stream()
                .allMatch(column -> IntStream.range(0, rows).allMatch(row -> Float.isNaN(column.row(row))))) {
            return "";
        }
        return figure(
                "clients-over-time",
                "Loss of each client, all rounds",
                false,
                series,
                List.of(),
                "Each point is the mean of one or more rounds.");
    }

    private String figure(
            String id, String title, boolean share, List<Series> series, List<Plot.Line> behind, String note) {
        var lines = new ArrayList<>(behind);
        int marks = Math.max(2, Plot.MARKS * 2 / series.size());
        double unit = share ? 0.01 : 1;
        for (Series one : series) {
            List<Plot.Point> points = share
                    ? one.points.stream()
                            .map(point -> new Plot.Point(point.x(), point.y() / unit, point.text()))
                            .toList()
                    : one.points;
            lines.add(new Plot.Line(lines.size() - behind.size(), one.look, points, marks));
        }
        List<Double> values = Plot.values(lines, Plot.Point::y);
        boolean logarithmic = !share && isLogarithmic(id, values);
        var plot = new Plot(
                id,
                "",
                title,
                "One line per " + (series.size() == 1 ? "run" : "name in the legend") + ", against steps.",
                WIDTH,
                HEIGHT,
                new Plot.Axis(
                        "step",
                        Scale.linear(Stream.concat(
                                        Plot.values(lines, Plot.Point::x).stream(), Stream.of((double) courses.step()))
                                .toList())),
                axis(logarithmic, share ? "%" : "", values),
                lines);
        String legend = series.stream()
                .map(one -> "<li data-key=\"%s\">%s%s <b>%s</b></li>\n"
                        .formatted(
                                Markup.escape(one.key),
                                one.look.key(),
                                Markup.escape(one.name),
                                Markup.escape(one.last)))
                .collect(joining());
        return figure(id, title, share ? "" : button(logarithmic), plot.svg(), legend, note);
    }

    private static String figure(String id, String title, String buttons, String svg, String legend, String note) {
        return """
                <figure id="chart-%s">
                <div class="top"><h3>%s</h3><span>%s</span></div>
                %s<ul class="legend">
                %s</ul>
                <figcaption>%s</figcaption>
                </figure>
                """.formatted(Markup.escape(id), Markup.escape(title), buttons, svg, legend, Markup.escape(note));
    }

    private static String button(boolean logarithmic) {
        return "<button type=\"button\" class=\"log\" title=\"logarithmic scale\" aria-pressed=\"%s\">log</button>"
                .formatted(logarithmic);
    }

    private boolean isLogarithmic(String id, List<Double> values) {
        boolean possible = values.stream().anyMatch(value -> value > 0 && Scale.drawable(value))
                && values.stream().noneMatch(value -> value < 0);
        return possible && (choices.logarithmic.contains(id) || (Scale.isWide(values) && !choices.linear.contains(id)));
    }

    private static Plot.Axis axis(boolean logarithmic, String unit, List<Double> values) {
        return logarithmic
                ? new Plot.Axis("logarithmic", Scale.logarithmic(values, Numbers::brief))
                : new Plot.Axis(unit, Scale.close(values));
    }

    private static String plain(double value) {
        return Numbers.nearOne(value);
    }

    private static String capitalized(String text) {
        return text.substring(0, 1).toUpperCase(Locale.ROOT) + text.substring(1);
    }
}
