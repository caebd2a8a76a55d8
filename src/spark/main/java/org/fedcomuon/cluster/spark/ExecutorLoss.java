package org.fedcomuon.cluster.spark;

import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An executor that has ended. Immutable.
 *
 * @param executor by Spark's identifier
 * @param host where it was, or should have been
 * @param reason in Spark's words
 */
record ExecutorLoss(String executor, String host, String reason) {
    private static final String MEMORY = "-Dspark.executor.memory=...";

    private static final Pattern EXIT_CODE = Pattern.compile(
            "(?:exited with code|exit code|exit status|exitCode)[ :]+(-?\\d+)", Pattern.CASE_INSENSITIVE);

    /** Of these, 50 to 57 are Spark's own, and those above 128 are signals. */
    private static final Map<Integer, String> CODES = Map.ofEntries(
            Map.entry(
                    1, "its JVM did not start, or not as it should; its stderr, in the work directory there, says why"),
            Map.entry(50, "an error ended it; its stderr, in the work directory there, says which"),
            Map.entry(51, "an error ended it; its stderr, in the work directory there, says which"),
            Map.entry(52, "its heap is full; give executors more by " + MEMORY),
            Map.entry(53, "it cannot write to spark.local.dir; is that disk full, or not writable?"),
            Map.entry(56, "it did not reach the driver for long"),
            Map.entry(134, "it crashed in native code; its stderr, in the work directory there, says where"),
            Map.entry(
                    137,
                    "it was killed, by the kernel if the memory of the host was full: clients are outside of the heap, so a"
                            + " smaller " + MEMORY + ", fewer executors per host, or more hosts, leave more for them"),
            Map.entry(139, "it crashed in native code; its stderr, in the work directory there, says where"),
            Map.entry(
                    143,
                    "it was ended by somebody, or by what limits its memory there; if by the latter, give it a smaller heap by "
                            + MEMORY + ", or a larger limit"));

    /** Returns the reason with what can be done about it, in one line. */
    String explanation() {
        String words = reason.lines().findFirst().orElse("").strip();
        Matcher code = EXIT_CODE.matcher(words);
        if (code.find()) {
            String known = CODES.get(Integer.parseInt(code.group(1)));
            return known == null ? words : "exit code %s: %s".formatted(code.group(1), known);
        }
        String lower = words.toLowerCase(Locale.ROOT);
        if (lower.contains("no space left on device")
                || lower.contains("failed to create directory")
                || lower.contains("no subfolder can be created")) {
            return words + "; is the disk of its work directory full, or not writable?";
        }
        if (lower.contains("outofmemory") || lower.contains("java heap space")) {
            return "%s; give executors more by %s".formatted(words, MEMORY);
        }
        return words;
    }

    /** Returns what all losses for the same reason have in common: the names of directories have the executor's. */
    String kind() {
        return host + ": " + explanation().replaceAll("\\d+", "#");
    }
}
