package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.fedcomuon.experiment.Reproduction.Form;

/** The figures of the paper: their rows, and what is claimed about them. */
final class PaperFigures {
    private static final List<String> PROPOSED = List.of("fedcomuon", "fedcomuon-vr");

    /** The rows of the paper where models are judged without adaptation. */
    private static final List<String> ROBUST = without("fedmaml");

    /** The rows of the paper where models are judged after adaptation. */
    private static final List<String> META = without("fedavg");

    /** One baseline of each kind (plain, Muon, compositional), and the two proposed methods. */
    private static final List<String> FEW_ROBUST =
            List.of("fedavg", "fedmuon", "local-scgdm", "fedcomuon", "fedcomuon-vr");

    private static final List<String> FEW_META =
            List.of("fedmaml", "fedmuon", "local-scgdm", "fedcomuon", "fedcomuon-vr");

    /** What the paper calls comparable accuracy, without a figure: a point. */
    private static final double ON_PAR = 0.01;

    private static final String ACCURACY = "test_accuracy";
    private static final String LOSS = "test_loss";

    private PaperFigures() {}

    static Reproduction of(String name, Form form) {
        boolean few = form == Form.QUICK;
        return switch (name) {
            case "robust-mnist" ->
                new Figure(name, "mnist-robust", form)
                        .methods(MethodChoice.PAPER, "", Map.of())
                        .beatsAll("", ACCURACY, LOSS, "train_loss")
                        .steadiest()
                        .done();
            case "tau-mnist" -> new Figure(name, "mnist-robust", form).taus().done();
            case "wikitext2" ->
                new Figure(name, "wikitext2-robust", form)
                        .methods(few ? FEW_ROBUST : ROBUST, "", Map.of())
                        .beatsAll("", LOSS, "test_perplexity")
                        .done();
            case "maml-cnn" -> mamlCnn(form);
            case "tau-maml" -> new Figure(name, "cifar-maml-cnn", form).taus().done();
            case "maml-vit" -> mamlVit(form);
            case "auc" ->
                new Figure(name, "mnist-auc", form)
                        .methods(
                                List.of("fedavg", "fedmuon", "local-scgdm", "fgdro-kl", "fedcomuon", "fedcomuon-vr"),
                                "",
                                Map.of())
                        .beatsAll("", "test_auc", "worst_client_auc")
                        .done();
            default -> throw new ConfigurationException(Nearest.unknown("figure", name, Reproduction.NAMES));
        };
    }

    // The smaller forms: the same code on the same data, small enough for two cores.

    private static final Map<String, String> SHORTER = changes("iterations=60 evaluateEvery=20");

    private static final Map<String, Map<String, String>> QUICK = Map.of(
            "mnist-robust",
            SHORTER,
            "mnist-auc",
            SHORTER,
            "wikitext2-robust",
            changes("iterations=120 evaluateEvery=20 length=32 depth=2 width=64 heads=4 hidden=128 batch=4"
                    + " judgedTrain=32 judgedTest=400 checkpointEvery=100"),
            "cifar-maml-cnn",
            changes(
                    "iterations=100 evaluateEvery=20 wide=16 wider=32 dense=128 perClient=1000 testPerClient=300 batch=16"
                            + " judgedTrain=100 checkpointEvery=100"),
            "cifar-maml-vit",
            changes("iterations=120 evaluateEvery=20 patch=8 depth=3 width=48 perClient=1000 testPerClient=300 batch=16"
                    + " judgedTrain=100 checkpointEvery=100"));

    private static final Map<String, Map<String, String>> MEDIUM = Map.of(
            "wikitext2-robust",
            changes("iterations=200 evaluateEvery=50 length=64 depth=4 width=192 heads=4 hidden=256 batch=8"
                    + " judgedTrain=32 judgedTest=400 checkpointEvery=10"),
            "cifar-maml-cnn",
            changes("iterations=200 evaluateEvery=50 wide=48 wider=98 dense=500 batch=32 judgedTest=2000"
                    + " checkpointEvery=10"),
            "cifar-maml-vit",
            changes("iterations=200 evaluateEvery=50 depth=6 width=96 batch=16 judgedTest=2000 checkpointEvery=10"));

    /** Returns the changes of a preset that make it smaller. */
    private static Map<String, String> changes(String preset, Form form) {
        Map<String, Map<String, String>> all = switch (form) {
            case PAPER -> Map.of(preset, Map.of());
            case MEDIUM -> MEDIUM;
            case QUICK -> QUICK;
        };
        return Optional.ofNullable(all.get(preset))
                .orElseThrow(() -> new ConfigurationException("%s has no %s form: %s"
                        .formatted(preset, form.label(), "a whole run of it takes seconds, so leave the option out")));
    }

    private static Map<String, String> changes(String text) {
        var all = new LinkedHashMap<String, String>();
        for (String change : text.split(" ", -1)) {
            String[] parts = change.split("=", -1);
            all.put(parts[0], parts[1]);
        }
        return Collections.unmodifiableMap(all);
    }

    private static List<String> without(String method) {
        return MethodChoice.PAPER.stream()
                .filter(other -> !other.equals(method))
                .toList();
    }

    private static Reproduction mamlCnn(Form form) {
        List<String> shares = List.of("0.3", "0.5", "0.7");
        var figure = new Figure("maml-cnn", "cifar-maml-cnn", form);
        for (String chi : shares) {
            String suffix = ", chi = " + chi;
            figure.methods(form == Form.QUICK ? FEW_META : META, suffix, Map.of("chi", chi));
            figure.beatsAll(suffix, ACCURACY, LOSS);
        }
        for (String method : PROPOSED) {
            figure.claims.add(new Claim.Growth(
                    "%s: its lead in test accuracy grows from chi = 0.3 to 0.7".formatted(method),
                    figure.leads(method, ", chi = 0.3"),
                    figure.leads(method, ", chi = 0.7")));
        }
        return figure.done();
    }

    private static Reproduction mamlVit(Form form) {
        var figure = new Figure("maml-vit", "cifar-maml-vit", form);
        figure.methods(form == Form.QUICK ? FEW_META : META, "", Map.of());
        List<String> muons = figure.rowsOf("", method -> method.startsWith("fedmuon"));
        List<String> others = figure.rowsOf("", method -> !method.startsWith("fedmuon") && !PROPOSED.contains(method));
        for (String method : PROPOSED) {
            figure.claim("%s: higher test accuracy than %s", ACCURACY, true, method, others);
            figure.claim("%s: lower test loss than %s", LOSS, false, method, others);
            figure.claims.add(new Claim.OnPar(
                    "%s: test accuracy within %s of %s".formatted(method, ON_PAR, String.join(", ", muons)),
                    ACCURACY,
                    ON_PAR,
                    method,
                    muons));
        }
        return figure.done();
    }

    /** The differences that would not matter to anybody who trains: a point of accuracy, 2 % of perplexity. */
    private static final Map<String, Double> IMMATERIAL = Map.of(ACCURACY, ON_PAR, LOSS, 0.02);

    /** The metrics by which orthogonalizers are compared, by preset. */
    private static final Map<String, String> JUDGED_BY = Map.of(
            "mnist-robust", ACCURACY, "cifar-maml-cnn", ACCURACY, "cifar-maml-vit", ACCURACY, "wikitext2-robust", LOSS);

    static Reproduction orthogonalizers(String preset, Form form) {
        if (!JUDGED_BY.containsKey(preset)) {
            throw new ConfigurationException(
                    Nearest.unknown("preset to compare by", preset, new TreeSet<>(JUDGED_BY.keySet())));
        }
        String name = preset.equals("mnist-robust") ? "orthogonalizers" : "orthogonalizers-" + preset;
        var figure = new Figure(name, preset, form);
        String metric = JUDGED_BY.get(preset);
        double margin = IMMATERIAL.get(metric);
        for (String method : PROPOSED) {
            String exact = figure.orthogonalizer(method, "exact", "fp32");
            for (String other : List.of(
                    figure.orthogonalizer(method, "newton-schulz", "fp32"),
                    figure.orthogonalizer(method, "gram", "fp32"),
                    figure.orthogonalizer(method, "newton-schulz", "bf16"))) {
                figure.claims.add(new Claim.OnPar(
                        "%s: %s within %s of exact".formatted(other, metric.replace('_', ' '), margin),
                        metric,
                        margin,
                        other,
                        List.of(exact)));
            }
        }
        return figure.done();
    }

    /** Builds a reproduction. */
    private static final class Figure {
        private final String name;
        private final String preset;
        private final Map<String, String> changes;
        private final List<Reproduction.Row> rows = new ArrayList<>();
        private final List<Claim> claims = new ArrayList<>();

        Figure(String name, String preset, Form form) {
            this.name = name;
            this.preset = preset;
            this.changes = changes(preset, form);
        }

        Reproduction done() {
            return new Reproduction(name, preset, changes, Map.of(), rows, claims);
        }

        /** Adds a row, and returns its label. */
        String orthogonalizer(String method, String orthogonalizer, String precision) {
            String label =
                    "%s, %s%s".formatted(method, orthogonalizer, precision.equals("fp32") ? "" : " in " + precision);
            rows.add(new Reproduction.Row(
                    label, Map.of("method", method, "orthogonalizer", orthogonalizer, "precision", precision), method));
            return label;
        }

        /** Adds a row for each method. */
        Figure methods(List<String> methods, String suffix, Map<String, String> more) {
            for (String method : methods) {
                var all = new LinkedHashMap<>(more);
                all.put("method", method);
                rows.add(new Reproduction.Row(method + suffix, all, suffix.replaceFirst("^, ", "")));
            }
            return this;
        }

        List<String> rowsOf(String suffix, Predicate<String> methods) {
            return rows.stream()
                    .map(Reproduction.Row::label)
                    .filter(label -> label.endsWith(suffix)
                            && methods.test(label.substring(0, label.length() - suffix.length())))
                    .toList();
        }

        void claim(String text, String metric, boolean higher, String winner, List<String> others) {
            claims.add(new Claim.Better(
                    text.formatted(winner, String.join(", ", others)), metric, higher, winner, others));
        }

        private static boolean isHigherBetter(String metric) {
            return metric.equals(ACCURACY) || metric.endsWith("_auc");
        }

        private static String words(String metric) {
            return (isHigherBetter(metric) ? "higher " : "lower ") + metric.replace('_', ' ');
        }

        /** Claims that both proposed methods are better than every baseline, and FedCoMuon-VR better than all. */
        Figure beatsAll(String suffix, String... metrics) {
            List<String> baselines = rowsOf(suffix, method -> !PROPOSED.contains(method));
            for (String method : PROPOSED) {
                for (String metric : metrics) {
                    String text = "%s: " + words(metric) + " than every baseline";
                    claim(text, metric, isHigherBetter(metric), method + suffix, baselines);
                }
            }
            String best = "fedcomuon-vr";
            for (String metric : metrics) {
                claim(
                        "%s: the " + words(metric).replace("er ", "est ") + " of all",
                        metric,
                        isHigherBetter(metric),
                        best + suffix,
                        rowsOf(suffix, method -> !method.equals(best)));
            }
            return this;
        }

        Claim.Better leads(String method, String suffix) {
            return new Claim.Better(
                    "lead", ACCURACY, true, method + suffix, rowsOf(suffix, other -> !PROPOSED.contains(other)));
        }

        Figure steadiest() {
            String best = "fedcomuon-vr";
            claim(
                    "%s: the steadiest test loss of all",
                    Claim.UNSTEADINESS, false, best, rowsOf("", method -> !method.equals(best)));
            return this;
        }

        /** Adds rows for both proposed methods with four values of tau. */
        Figure taus() {
            for (String method : PROPOSED) {
                var others = new ArrayList<String>();
                for (String tau : List.of("1", "5", "10", "20")) {
                    String label = "%s, tau = %s".formatted(method, tau);
                    rows.add(new Reproduction.Row(label, Map.of("method", method, "tau", tau), method));
                    others.add(label);
                }
                String best = others.removeFirst();
                claims.add(new Claim.Better(
                        "%s: tau = 1 has the highest test accuracy".formatted(method), ACCURACY, true, best, others));
                claims.add(new Claim.Better(
                        "%s: tau = 1 has the lowest test loss".formatted(method), LOSS, false, best, others));
            }
            return this;
        }
    }
}
