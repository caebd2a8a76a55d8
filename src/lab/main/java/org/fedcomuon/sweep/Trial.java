package org.fedcomuon.sweep;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.OptionalDouble;

/**
 * A training run of a sweep that has ended.
 *
 * <p>Immutable.
 *
 * @param name of its directory below {@code trials}
 * @param method by name
 * @param settings that the sweep varies, as they were given
 * @param iterations steps that it was to do
 * @param ranked whether it is compared with others; one of an earlier rung of successive halving is not
 * @param minimized what its method minimizes: trials that minimize different objectives are not compared by losses
 * @param state how it ended
 * @param reason why it has no result, or why it ended early; empty otherwise
 * @param metrics of its last evaluation, and the sums of seconds and bytes
 * @param seconds of training and evaluations
 */
public record Trial(
        String name,
        String method,
        Map<String, String> settings,
        long seed,
        long iterations,
        boolean ranked,
        String minimized,
        State state,
        String reason,
        Map<String, Double> metrics,
        double seconds) {
    public Trial {
        settings = Collections.unmodifiableMap(new LinkedHashMap<>(settings));
        metrics = Collections.unmodifiableMap(new LinkedHashMap<>(metrics));
    }

    /** How a trial ended. */
    public enum State {
        DONE,
        /** The numbers have left the range of floats; it would diverge again. */
        DIVERGED,
        /** It could not be run or not be completed; the next start of the sweep tries again. */
        FAILED
    }

    /** Returns a metric; empty unless the trial is done and has it. */
    public OptionalDouble metric(String metric) {
        Double value = metrics.get(metric);
        return state == State.DONE && value != null ? OptionalDouble.of(value) : OptionalDouble.empty();
    }

    /** Returns the method, the settings and the seed, for readers. */
    public String label() {
        var text = new StringBuilder(method);
        settings.forEach(
                (name, value) -> text.append(", ").append(name).append(' ').append(value));
        return text.append(", seed ").append(seed).toString();
    }
}
