package org.fedcomuon.federation;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * What was put on the streams of simulated GPUs, and what of it must run before what: a stream runs in order, and a
 * wait holds it up until another stream is where it says. Everything else may run at the same time.
 */
final class StreamTrace {
    /**
     * A piece of work.
     *
     * @param line when it was put there, among all
     * @param before by stream, up to where each has come for certain when this begins
     */
    record Work(int line, int device, long stream, long position, String what, Map<Long, Long> before) {
        boolean isCopy() {
            return what.startsWith("copy of ");
        }

        /** Whether this cannot begin before {@code other} has ended. */
        boolean runsAfter(Work other) {
            return before.getOrDefault(other.stream, 0L) >= other.position;
        }
    }

    private final List<Work> all = new ArrayList<>();

    static StreamTrace read(Path file) throws IOException {
        var trace = new StreamTrace();
        var streams = new HashMap<Long, Work>(); // the last of each
        var at = new HashMap<List<Long>, Work>();
        for (String line : Files.readAllLines(file)) {
            String[] words = line.split(" ", 6);
            long stream = Long.parseLong(words[1]);
            long position = Long.parseLong(words[2]);
            var before = new HashMap<Long, Long>();
            Stream.of(streams.get(stream), at.get(List.of(Long.parseLong(words[3]), Long.parseLong(words[4]))))
                    .filter(work -> work != null)
                    .forEach(work -> {
                        work.before.forEach((other, reached) -> before.merge(other, reached, Math::max));
                        before.merge(work.stream, work.position, Math::max);
                    });
            var work = new Work(trace.all.size(), Integer.parseInt(words[0]), stream, position, words[5], before);
            trace.all.add(work);
            streams.put(stream, work);
            at.put(List.of(stream, position), work);
        }
        return trace;
    }

    /** The kernels of this name on a device, as they were put there. */
    List<Work> launches(int device, String kernel) {
        return all.stream()
                .filter(work -> work.device == device && work.what.contains(kernel))
                .toList();
    }

    /** The copies on streams of the device of {@code work} that it waits for, but those on its own stream. */
    List<Work> copiesFor(Work work) {
        return all.stream()
                .filter(copy -> copy.device == work.device
                        && copy.stream != work.stream
                        && work.before.containsKey(copy.stream)
                        && copy.isCopy())
                .toList();
    }
}
