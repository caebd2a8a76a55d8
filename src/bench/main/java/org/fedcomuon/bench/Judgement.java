package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import tools.jackson.databind.JsonNode;

/**
 * Whether a row of a benchmark has met an aim. A file has the verdict of the run that wrote it, whatever the aims are
 * today.
 *
 * @param aim what was to be reached
 * @param found the figure
 * @param better the quartile of the figure on the side of the aim, or the figure if that is better
 * @param verdict the conclusion
 */
public record Judgement(Aim aim, double found, double better, Verdict verdict) {
    /** Conclusions, the best first. */
    public enum Verdict {
        /** The figure meets the aim. */
        MET("met"),
        /** The figure misses the aim, but its better quartile meets it: the run cannot tell. */
        WITHIN_NOISE("within noise"),
        /** The figure and its better quartile miss the aim. */
        NOT_MET("not met");

        private final String words;

        Verdict(String words) {
            this.words = words;
        }

        @Override
        public String toString() {
            return words;
        }
    }

    /** Returns the verdict, with the figure if it is not the headline of its row. */
    String text() {
        return aim.isOfRatio() ? verdict.toString() : String.format(Locale.ROOT, "%s (%.3g)", verdict, found);
    }

    /** Returns the members of an object in JSON, by the names of the figures. */
    static Map<String, Object> json(List<Judgement> all) {
        var members = new LinkedHashMap<String, Object>();
        for (Judgement each : all) {
            var member = new LinkedHashMap<String, Object>();
            member.put(each.aim.bound().key(), each.aim.limit());
            member.put("found", each.found);
            member.put("better_quartile", each.better);
            member.put("verdict", each.verdict.toString());
            members.put(each.aim.figure(), member);
        }
        return members;
    }

    /**
     * Reads what {@link #json} returned, or the profiler of kernels wrote, whose figures are counts and have no
     * quartiles. A member that is missing is a {@link tools.jackson.core.JacksonException}.
     *
     * @throws IllegalArgumentException when a verdict is none
     */
    static List<Judgement> read(JsonNode object) {
        var all = new ArrayList<Judgement>();
        for (Map.Entry<String, JsonNode> entry : object.properties()) {
            JsonNode member = entry.getValue();
            Aim.Bound bound = member.has(Aim.Bound.AT_MOST.key()) ? Aim.Bound.AT_MOST : Aim.Bound.AT_LEAST;
            double found = member.required("found").doubleValue();
            String words = member.required("verdict").stringValue();
            all.add(new Judgement(
                    new Aim(entry.getKey(), bound, member.required(bound.key()).doubleValue()),
                    found,
                    member.path("better_quartile").asDouble(found),
                    verdict(words)));
        }
        return List.copyOf(all);
    }

    private static Verdict verdict(String words) {
        for (Verdict verdict : Verdict.values()) {
            if (verdict.toString().equals(words)) {
                return verdict;
            }
        }
        throw new IllegalArgumentException("no verdict: '%s'".formatted(words));
    }
}
