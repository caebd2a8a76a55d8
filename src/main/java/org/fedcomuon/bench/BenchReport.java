package org.fedcomuon.bench;

import java.util.List;
import java.util.Map;

/**
 * What a suite found, for the table and for JSON.
 *
 * @param suite its name
 * @param device what it ran on
 * @param explanation what the ratio is, in a sentence
 * @param rows one a contender
 * @param notes what follows from them, a sentence each
 */
public record BenchReport(String suite, String device, String explanation, List<Row> rows, List<String> notes) {
    /** One that speaks for itself. */
    public BenchReport(String suite, String device, String explanation, List<Row> rows) {
        this(suite, device, explanation, rows, List.of());
    }

    /**
     * One contender.
     *
     * @param name what was measured
     * @param seconds the median of a call
     * @param spread half the distance between the quartiles, relative to the median
     * @param bytes what must move between memory and the cores in a call, 0 where that is not the point
     * @param ratio the headline: how often we are as fast as the peer, or which part of the limit we reach
     * @param parts where the time goes, as shares of it; empty where that was not asked
     */
    public record Row(String name, double seconds, double spread, long bytes, double ratio, Map<String, Double> parts) {
        /** One whose time is not divided. */
        public Row(String name, double seconds, double spread, long bytes, double ratio) {
            this(name, seconds, spread, bytes, ratio, Map.of());
        }

        /** Bytes a second, in units of 1e9. */
        public double gigabytesPerSecond() {
            return bytes / seconds * 1e-9;
        }
    }
}
