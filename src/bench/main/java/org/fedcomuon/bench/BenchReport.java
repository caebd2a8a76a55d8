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
     */
    public record Row(String name, double seconds, double spread, long bytes, double ratio, Map<String, Double> parts) {
        /** Creates a row whose time is not divided into parts. */
        public Row(String name, double seconds, double spread, long bytes, double ratio) {
            this(name, seconds, spread, bytes, ratio, Map.of());
        }

        /** Returns the bandwidth in 1e9 bytes per second. */
        public double gigabytesPerSecond() {
            return bytes / seconds * 1e-9;
        }
    }
}
