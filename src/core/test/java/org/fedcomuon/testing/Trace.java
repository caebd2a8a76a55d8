package org.fedcomuon.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What was submitted to the streams of simulated GPUs, what of it must run before what, and where the host waited: a
 * stream runs in order, and waits for another where it is told to. Everything else may run at the same time. Immutable.
 *
 * @see Simulator#traced
 */
public final class Trace {
    private static final Pattern KERNEL = Pattern.compile("kernel (\\w+),.*");
    private static final String WAIT = "wait ";

    /**
     * A task of a stream.
     *
     * @param line when it was submitted, among all lines of the trace
     * @param before by stream, the position that each has certainly reached when this begins
     */
    public record Work(int line, int device, long stream, long position, String what, Map<Long, Long> before) {
        public boolean isCopy() {
            return what.startsWith("copy of ") || what.startsWith("staged copy of ");
        }

        /** The name of the kernel, if this is a launch. */
        public Optional<String> kernel() {
            Matcher launch = KERNEL.matcher(what);
            return launch.matches() ? Optional.of(launch.group(1)) : Optional.empty();
        }

        /** Whether this cannot begin before {@code other} has ended. */
        public boolean runsAfter(Work other) {
            return before.getOrDefault(other.stream, 0L) >= other.position;
        }
    }

    /**
     * A call in which the host waited for a device, or might have by the documentation of CUDA.
     *
     * @param line when it was made, among all lines of the trace
     * @param function the function, and what made it wait if its name does not say so
     */
    public record Wait(int line, int device, String function) {}

    private final List<Work> work = new ArrayList<>();
    private final List<Wait> waits = new ArrayList<>();

    private Trace() {}

    public static Trace read(Path file) throws IOException {
        var trace = new Trace();
        var last = new HashMap<Long, Work>(); // by stream
        var at = new HashMap<List<Long>, Work>();
        List<String> lines = Files.readAllLines(file);
        for (int i = 0; i < lines.size(); i++) {
            String[] words = lines.get(i).split(" ", 6);
            int device = Integer.parseInt(words[0]);
            long stream = Long.parseLong(words[1]);
            if (stream == 0) { // the host
                if (!words[5].startsWith(WAIT)) {
                    throw new IOException("%s, line %d: work of no stream: %s".formatted(file, i + 1, lines.get(i)));
                }
                trace.waits.add(new Wait(i, device, words[5].substring(WAIT.length())));
                continue;
            }
            long position = Long.parseLong(words[2]);
            var before = new HashMap<Long, Long>();
            Stream.of(last.get(stream), at.get(List.of(Long.parseLong(words[3]), Long.parseLong(words[4]))))
                    .filter(Objects::nonNull)
                    .forEach(earlier -> {
                        earlier.before.forEach((other, reached) -> before.merge(other, reached, Math::max));
                        before.merge(earlier.stream, earlier.position, Math::max);
                    });
            var each = new Work(i, device, stream, position, words[5], before);
            trace.work.add(each);
            last.put(stream, each);
            at.put(List.of(stream, position), each);
        }
        return trace;
    }

    /** All tasks of all streams, in the order of their submission. */
    public List<Work> work() {
        return List.copyOf(work);
    }

    /** The launches of a kernel on a device. */
    public List<Work> launches(int device, String kernel) {
        return work.stream()
                .filter(each -> each.device == device && each.kernel().equals(Optional.of(kernel)))
                .toList();
    }

    /** All launches on a device. */
    public List<Work> launchesOn(int device) {
        return work.stream()
                .filter(each -> each.device == device && each.kernel().isPresent())
                .toList();
    }

    /** The copies in other streams of the same device that {@code work} waits for. */
    public List<Work> copiesFor(Work later) {
        return copies(later.device).stream()
                .filter(copy -> copy.stream != later.stream && later.before.containsKey(copy.stream))
                .toList();
    }

    /** The number of launches on a device by the names of the kernels. */
    public Map<String, Long> launches(int device) {
        var counts = new TreeMap<String, Long>();
        for (Work each : work) {
            if (each.device == device) {
                each.kernel().ifPresent(kernel -> counts.merge(kernel, 1L, Math::addExact));
            }
        }
        return counts;
    }

    /** The copies in the streams of a device. */
    public List<Work> copies(int device) {
        return work.stream()
                .filter(each -> each.device == device && each.isCopy())
                .toList();
    }

    /** The waits of the host for a device. */
    public List<Wait> waits(int device) {
        return waits.stream().filter(wait -> wait.device == device).toList();
    }
}
