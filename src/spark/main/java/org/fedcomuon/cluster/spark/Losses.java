package org.fedcomuon.cluster.spark;

import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * What has become of executors that were lost. Each is told once; of those that are lost for the same reason on the
 * same host, the first few, the tenth, the hundredth and so on. Thread-safe.
 */
final class Losses {
    private static final int FEW = 3;
    private static final int EVERY = 10;
    private static final int MOST_HOSTS = 4; // in the line that ends a run

    private final Consumer<String> notes;
    private final Set<String> told = new HashSet<>(); // executors
    private final Map<String, Integer> counts = new HashMap<>(); // by kind
    private final Map<String, String> last = new LinkedHashMap<>(); // explanation, by host
    private boolean ending;

    /** @param notes receives a line for what is worth one */
    Losses(Consumer<String> notes) {
        this.notes = notes;
    }

    /** Notes a loss; returns whether it was not known before. */
    synchronized boolean add(ExecutorLoss loss) {
        if (ending || !told.add(loss.executor())) {
            return false; // Spark reports a loss again when it learns more of it
        }
        last.remove(loss.host());
        last.put(loss.host(), loss.explanation());
        int count = counts.merge(loss.kind(), 1, Integer::sum);
        if (count <= FEW || isPower(count)) {
            notes.accept("executor %s is lost: %s: %s%s"
                    .formatted(
                            loss.executor(),
                            loss.host(),
                            loss.explanation(),
                            count <= FEW ? "" : " (%d times so far)".formatted(count)));
        }
        return true;
    }

    private static boolean isPower(int count) {
        int rest = count;
        while (rest % EVERY == 0) {
            rest /= EVERY;
        }
        return rest == 1;
    }

    /** From now on executors end because the run does. */
    synchronized void end() {
        ending = true;
    }

    /** Returns why executors were lost last, by host; empty if none was. */
    synchronized String summary() {
        return last.entrySet().stream()
                .skip(Math.max(0, last.size() - MOST_HOSTS))
                .map(each -> "the last executor lost on %s: %s".formatted(each.getKey(), each.getValue()))
                .collect(Collectors.joining("; "));
    }

    /** Returns a message, followed by the summary if there is one. */
    String explain(String message) {
        String summary = summary();
        return summary.isEmpty() ? message : message + "; " + summary;
    }
}
