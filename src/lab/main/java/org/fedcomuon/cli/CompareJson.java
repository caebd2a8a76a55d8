package org.fedcomuon.cli;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.experiment.CompareReport;
import org.fedcomuon.experiment.CompareReport.Entry;
import org.fedcomuon.experiment.CompareReport.Subject;

/** The content of {@code compare.json}. */
final class CompareJson {
    private CompareJson() {}

    static Map<String, Object> of(CompareReport report) {
        List<Subject> subjects = report.subjects();
        var matrices = new ArrayList<Map<String, Object>>();
        var entries = new ArrayList<Map<String, Object>>();
        var equal = new ArrayList<Map<String, Object>>();
        for (int i = 0; i < subjects.size(); i++) {
            Subject subject = subjects.get(i);
            matrices.add(matrix(subject));
            for (Entry entry : report.of(subject)) {
                entries.add(entry(i, entry));
            }
            for (double wanted : report.wanted()) {
                equal.add(equal(report, i, wanted));
            }
        }
        var all = new LinkedHashMap<String, Object>();
        all.put("title", report.title());
        all.put("device", report.device());
        all.put("library", report.library());
        all.put("matrices", matrices);
        all.put("entries", entries);
        all.put("equal_error", equal);
        return all;
    }

    private static Map<String, Object> matrix(Subject subject) {
        var map = new LinkedHashMap<String, Object>();
        if (!subject.name().isEmpty()) {
            map.put("name", subject.name());
        }
        map.put("rows", subject.rows());
        map.put("cols", subject.cols());
        map.put("condition", subject.condition());
        map.put("directions", Math.min(subject.rows(), subject.cols()));
        map.put("directions_above_rounding", subject.directions());
        map.put("singular_values", subject.singularValues());
        return map;
    }

    /** @param matrix its place in the list of matrices */
    private static Map<String, Object> entry(int matrix, Entry entry) {
        Subject subject = entry.subject();
        var map = new LinkedHashMap<String, Object>();
        map.put("matrix", matrix);
        map.put("rows", subject.rows());
        map.put("cols", subject.cols());
        map.put("condition", subject.condition());
        map.put("method", entry.method());
        map.put("coefficients", entry.coefficients());
        map.put("steps", entry.steps());
        map.put("path", entry.path());
        map.put("seconds", entry.seconds());
        map.put("error", entry.error());
        map.put("orthogonality_error", entry.orthogonalityError());
        map.put("alignment", entry.alignment());
        map.put("smallest_singular_value", entry.smallestSingularValue());
        map.put("largest_singular_value", entry.largestSingularValue());
        entry.kept().ifPresent(kept -> {
            map.put("directions_kept", kept);
            map.put("directions_dropped", Math.min(subject.rows(), subject.cols()) - kept);
        });
        return map;
    }

    private static Map<String, Object> equal(CompareReport report, int matrix, double wanted) {
        Subject subject = report.subjects().get(matrix);
        var map = new LinkedHashMap<String, Object>();
        map.put("matrix", matrix);
        map.put("wanted_error", wanted);
        report.fastest(subject, wanted).ifPresent(entry -> map.put("fastest", brief(entry)));
        report.exact(subject).ifPresent(entry -> map.put("exact", brief(entry)));
        report.fiveSteps(subject).ifPresent(entry -> map.put("five_steps", brief(entry)));
        return map;
    }

    private static Map<String, Object> brief(Entry entry) {
        var map = new LinkedHashMap<String, Object>();
        map.put("method", entry.method());
        map.put("coefficients", entry.coefficients());
        map.put("steps", entry.steps());
        map.put("seconds", entry.seconds());
        map.put("error", entry.error());
        return map;
    }
}
