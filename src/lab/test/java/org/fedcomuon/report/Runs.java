package org.fedcomuon.report;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.RunRecord.Evaluation;

/** Runs as tests like them. */
final class Runs {
    private Runs() {}

    static Map<String, String> config(String method, int seed) {
        var config = new LinkedHashMap<String, String>();
        config.put("preset", "mnist-robust");
        config.put("method", method);
        config.put("seed", Integer.toString(seed));
        config.put("iterations", "500");
        config.put("tau", "5");
        return config;
    }

    static Map<String, Object> summary(Object... more) {
        var summary = new LinkedHashMap<String, Object>();
        summary.put("method", "as in the settings");
        summary.put("sha256", "0123456789abcdef".repeat(4));
        summary.put("diverged", false);
        summary.put("stopped", false);
        summary.put("java", "25.0.3");
        summary.put("devices", List.of("cpu:0", "cpu:1"));
        for (int i = 0; i < more.length; i += 2) {
            summary.put((String) more[i], more[i + 1]);
        }
        return summary;
    }

    /** Losses fall from 2 by a half each evaluation, and accuracy rises to the one given. */
    static List<Evaluation> evaluations(int count, double accuracy) {
        var evaluations = new ArrayList<Evaluation>();
        for (int i = 0; i < count; i++) {
            double loss = 2 * Math.pow(0.5, i);
            var metrics = new LinkedHashMap<String, Double>();
            metrics.put("train_loss", loss);
            metrics.put("train_objective", Math.exp(loss));
            metrics.put("test_loss", loss + 0.1);
            metrics.put("test_accuracy", accuracy * (i + 1) / count);
            metrics.put("worst_client_loss", loss + 0.2);
            metrics.put("worst_client_accuracy", 0.9 * accuracy * (i + 1) / count);
            metrics.put("seconds", 2.0 * i);
            metrics.put("gradient_seconds", 1.0 * i);
            metrics.put("orthogonalize_seconds", 0.5 * i);
            metrics.put("exchange_seconds", 0.0);
            metrics.put("evaluate_seconds", 0.25 * i);
            metrics.put("communicated_bytes", 1e6 * i);
            metrics.put("gradient_evaluations", 100.0 * i);
            metrics.put("unknown", -1.0);
            evaluations.add(new Evaluation(10L * i, 2L * i, metrics));
        }
        return evaluations;
    }

    static RunRecord run(String method, int seed, double accuracy) {
        return new RunRecord(
                "run-%s-%s".formatted(method, seed),
                config(method, seed),
                evaluations(6, accuracy),
                Optional.of(summary()));
    }

    /** One metric only, at steps 0, 1, 2, ... */
    static RunRecord of(String name, boolean diverged, String metric, double... values) {
        var evaluations = new ArrayList<Evaluation>();
        for (double value : values) {
            evaluations.add(new Evaluation(evaluations.size(), 0, Map.of(metric, value)));
        }
        return new RunRecord(
                name, Map.of("method", name), evaluations, Optional.of(Map.<String, Object>of("diverged", diverged)));
    }
}
