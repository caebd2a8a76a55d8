package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

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

    private PaperFigures() {}

    static Reproduction of(String name, boolean quick) {
        Map<String, String> shorter = Map.of("iterations", "60", "evaluateEvery", "20");
        return switch (name) {
            case "robust-mnist" ->
                new Figure(name, "mnist-robust", quick ? shorter : Map.of())
                        .methods(MethodChoice.PAPER, "", Map.of())
                        .beatsAll("", "test_accuracy", "test_loss", "train_loss")
                        .steadiest()
                        .done();
            case "tau-mnist" ->
                new Figure(name, "mnist-robust", quick ? shorter : Map.of())
                        .taus()
                        .done();
            case "wikitext2" ->
                new Figure(name, "wikitext2-robust", quick ? QUICK_TEXT : Map.of())
                        .methods(quick ? FEW_ROBUST : ROBUST, "", Map.of())
                        .beatsAll("", "test_loss", "test_perplexity")
                        .done();
            case "maml-cnn" -> mamlCnn(quick);
            case "tau-maml" ->
                new Figure(name, "cifar-maml-cnn", quick ? QUICK_CNN : Map.of())
                        .taus()
                        .done();
            case "maml-vit" -> mamlVit(quick);
            case "auc" ->
                new Figure(name, "mnist-auc", quick ? shorter : Map.of())
                        .methods(
                                List.of("fedavg", "fedmuon", "local-scgdm", "fgdro-kl", "fedcomuon", "fedcomuon-vr"),
                                "",
                                Map.of())
                        .beatsAll("", "test_auc", "worst_client_auc")
                        .done();
            default -> throw new ConfigurationException(Nearest.unknown("figure", name, Reproduction.NAMES));
        };
    }

    // The quick forms: the same code on the same data, small enough for two cores.

    private static final Map<String, String> QUICK_TEXT = changes(
            "iterations=120 evaluateEvery=20 length=32 depth=2 width=64 heads=4 hidden=128 batch=4 judgedTrain=32"
                    + " judgedTest=400 checkpointEvery=100");

    private static final Map<String, String> QUICK_CNN = changes(
            "iterations=100 evaluateEvery=20 wide=16 wider=32 dense=128 perClient=1000 testPerClient=300 batch=16"
                    + " judgedTrain=100 checkpointEvery=100");

    private static final Map<String, String> QUICK_VIT =
            changes("iterations=120 evaluateEvery=20 patch=8 depth=3 width=48 perClient=1000 testPerClient=300 batch=16"
                    + " judgedTrain=100 checkpointEvery=100");

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

    private static Reproduction mamlCnn(boolean quick) {
        List<String> shares = List.of("0.3", "0.5", "0.7");
        var figure = new Figure("maml-cnn", "cifar-maml-cnn", quick ? QUICK_CNN : Map.of());
        for (String chi : shares) {
            String suffix = ", chi = " + chi;
            figure.methods(quick ? FEW_META : META, suffix, Map.of("chi", chi));
            figure.beatsAll(suffix, "test_accuracy", "test_loss");
        }
        for (String method : PROPOSED) {
            figure.claims.add(new Claim.Growth(
                    "%s: its lead in test accuracy grows from chi = 0.3 to 0.7".formatted(method),
                    figure.leads(method, ", chi = 0.3"),
                    figure.leads(method, ", chi = 0.7")));
        }
        return figure.done();
    }

    private static Reproduction mamlVit(boolean quick) {
        var figure = new Figure("maml-vit", "cifar-maml-vit", quick ? QUICK_VIT : Map.of());
        figure.methods(quick ? FEW_META : META, "", Map.of());
        List<String> muons = figure.rowsOf("", method -> method.startsWith("fedmuon"));
        List<String> others = figure.rowsOf("", method -> !method.startsWith("fedmuon") && !PROPOSED.contains(method));
        for (String method : PROPOSED) {
            figure.claim("%s: higher test accuracy than %s", "test_accuracy", true, method, others);
            figure.claim("%s: lower test loss than %s", "test_loss", false, method, others);
            figure.claims.add(new Claim.OnPar(
                    "%s: test accuracy within %s of %s".formatted(method, ON_PAR, String.join(", ", muons)),
                    "test_accuracy",
                    ON_PAR,
                    method,
                    muons));
        }
        return figure.done();
    }

    static Reproduction orthogonalizers() {
        var figure = new Figure("orthogonalizers", "mnist-robust", Map.of());
        for (String method : PROPOSED) {
            for (String orthogonalizer : List.of("exact", "newton-schulz", "gram")) {
                figure.rows.add(new Reproduction.Row(
                        "%s, %s".formatted(method, orthogonalizer),
                        Map.of("method", method, "orthogonalizer", orthogonalizer),
                        method));
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

        Figure(String name, String preset, Map<String, String> changes) {
            this.name = name;
            this.preset = preset;
            this.changes = changes;
        }

        Reproduction done() {
            return new Reproduction(name, preset, changes, rows, claims);
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
            return metric.equals("test_accuracy") || metric.endsWith("_auc");
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
                    "lead", "test_accuracy", true, method + suffix, rowsOf(suffix, other -> !PROPOSED.contains(other)));
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
                        "%s: tau = 1 has the highest test accuracy".formatted(method),
                        "test_accuracy",
                        true,
                        best,
                        others));
                claims.add(new Claim.Better(
                        "%s: tau = 1 has the lowest test loss".formatted(method), "test_loss", false, best, others));
            }
            return this;
        }
    }
}
