package org.fedcomuon.bench;

import java.util.List;
import java.util.Map;

/**
 * The results of a suite, for the table and for JSON.
 *
 * @param suite its name
 * @param device the device that was measured
 * @param explanation the meaning of the ratio, in one sentence
 * @param rows one per contender
 * @param notes conclusions, one sentence each
 */
public record BenchReport(String suite, String device, String explanation, List<Row> rows, List<String> notes) {
    private static final String SEPARATOR = ": ";

    /** Creates a report without notes. */
    public BenchReport(String suite, String device, String explanation, List<Row> rows) {
        this(suite, device, explanation, rows, List.of());
    }

    /**
     * The result of one contender.
     *
     * @param name what was measured
     * @param seconds the median time of a call
     * @param spread half the distance between the quartiles, relative to the median
     * @param bytes the bytes that a call must move between memory and the cores, or 0 if not applicable
     * @param ratio the headline: the time relative to ours, or the fraction of the limit that is reached
     * @param parts the shares of the parts in the time; empty where they were not measured
     * @param aims what the row had to reach, and whether it has; empty for most rows
     */
    public record Row(
            String name,
            double seconds,
            double spread,
            long bytes,
            double ratio,
            Map<String, Double> parts,
            List<Judgement> aims) {
        public Row {
            aims = List.copyOf(aims);
        }

        /** Creates a row without aims whose time is not divided into parts. */
        public Row(String name, double seconds, double spread, long bytes, double ratio) {
            this(name, seconds, spread, bytes, ratio, Map.of(), List.of());
        }

        /** Creates a row from the time and the ratio of a contender, judged by the aims of its suite. */
        static Row of(String name, Timing timing, Figure ratio, Aims aims) {
            return new Row(name, timing.median(), timing.spread(), 0, ratio.median())
                    .judged(aims, Map.of(Aim.RATIO, ratio));
        }

        /** Returns the row with its figures judged by the aims of its suite. */
        Row judged(Aims all, Map<String, Figure> figures) {
            return new Row(name, seconds, spread, bytes, ratio, parts, all.judge(name, figures));
        }

        /** Returns the name up to its first colon: what was measured. */
        String subject() {
            int colon = name.indexOf(SEPARATOR);
            return colon < 0 ? name : name.substring(0, colon);
        }

        /** Returns the name after its first colon: how or by whom; empty if there is no colon. */
        String contender() {
            int colon = name.indexOf(SEPARATOR);
            return colon < 0 ? "" : name.substring(colon + SEPARATOR.length());
        }

        /** Returns the bandwidth in 1e9 bytes per second. */
        public double gigabytesPerSecond() {
            return bytes / seconds * 1e-9;
        }
    }
}
