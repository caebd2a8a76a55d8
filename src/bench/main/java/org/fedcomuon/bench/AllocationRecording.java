package org.fedcomuon.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Round;

/**
 * Measures the heap allocations of all rounds of a run but the first, with a JFR recording of these rounds. The
 * recorder allocates too, so it has its own thread, and only the threads of the federation are counted.
 */
final class AllocationRecording implements Listener, AutoCloseable {
    private static final String EVENT = "jdk.ThreadAllocationStatistics";

    private final long lastRound;
    private final ExecutorService recorder = Executors.newSingleThreadExecutor(
            Thread.ofPlatform().daemon().name("recorder").factory());
    private final Recording recording = new Recording();

    /** @param rounds the number of rounds of the run, including the first */
    AllocationRecording(long rounds) {
        lastRound = rounds - 1;
        recording.enable(EVENT).with("period", "everyChunk"); // at the beginning and at the end
    }

    @Override
    public void onRound(Round round) {
        if (round.number() == 0) {
            await(recording::start);
        } else if (round.number() == lastRound) {
            await(recording::stop);
        }
    }

    private void await(Runnable work) {
        try {
            recorder.submit(work).get();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        } catch (ExecutionException e) {
            throw new IllegalStateException("no recording can be made: " + e.getCause(), e);
        }
    }

    /** Returns the allocated bytes of all threads of the federation. Called after the run. */
    long allocatedBytes() {
        Map<Long, Long> first = new HashMap<>();
        Map<Long, Long> last = new HashMap<>();
        try {
            Path file = Files.createTempFile("fedcomuon-allocations", ".jfr");
            try {
                recording.dump(file);
                for (RecordedEvent event : RecordingFile.readAllEvents(file)) {
                    if (!event.getEventType().getName().equals(EVENT)) {
                        continue; // our own event of a round
                    }
                    String name = event.getThread("thread").getJavaName();
                    if (name != null && isOfFederation(name)) {
                        long thread = event.getThread("thread").getJavaThreadId();
                        first.merge(thread, event.getLong("allocated"), Math::min);
                        last.merge(thread, event.getLong("allocated"), Math::max);
                    }
                }
            } finally {
                Files.deleteIfExists(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("a recording of allocations cannot be read", e);
        }
        if (first.isEmpty()) {
            throw new IllegalStateException("the recording has no thread of a federation");
        }
        return last.values().stream().mapToLong(bytes -> bytes).sum()
                - first.values().stream().mapToLong(bytes -> bytes).sum();
    }

    private static boolean isOfFederation(String thread) {
        return thread.startsWith("federation-") || thread.contains("-worker-");
    }

    @Override
    public void close() {
        recording.close();
        recorder.close();
    }
}
