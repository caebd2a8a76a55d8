package org.fedcomuon.federation;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.format.SafetensorsWriter;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The checkpoints of a run: a directory of safetensors files, one per step, of which the newest two are kept. A crash
 * at any moment leaves every checkpoint that was committed before; two are kept in case the disk damages the newest.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="checkpoint"}
 *
 * <p>What is in a checkpoint is its writer's business; the store adds to the metadata what the file is ({@code format =
 * fedcomuon-checkpoint}, {@code version = 1}), and opens nothing else.
 *
 * <p>Everything that goes wrong is a {@link CheckpointException}. Thread-safe; a directory belongs to one process at a
 * time.
 */
public final class CheckpointStore {
    private static final Logger LOG = LoggerFactory.getLogger(CheckpointStore.class);

    private static final String FORMAT_KEY = "format";
    private static final String FORMAT = "fedcomuon-checkpoint";

    /** Checked in this order, because the version of another format has no meaning. */
    static final List<Map.Entry<String, String>> OURS =
            List.of(Map.entry(FORMAT_KEY, FORMAT), Map.entry("version", "1"));

    private static final int KEPT = 2;
    private static final int LONGEST_QUOTE = 60;

    /** So that every name can be read back as a number. */
    private static final long LAST_STEP = 999_999_999_999_999_999L;

    private static final Pattern NAME = Pattern.compile("checkpoint-([0-9]{10}|[1-9][0-9]{10,17})\\.safetensors");

    private final Path directory;

    /** A store in {@code directory}, which need not exist before the first checkpoint. */
    public CheckpointStore(Path directory) {
        this.directory = directory;
    }

    /** Returns where the checkpoints are. */
    public Path directory() {
        return directory;
    }

    /**
     * Starts the checkpoint of {@code step}, and the directory if need be. Nothing of it is visible before
     * {@link Pending#commit}, which replaces an earlier checkpoint of the same step.
     *
     * @param metadata what the checkpoint is to say about itself, in the order of the map
     * @param tensors what it is to hold, in the order of the data
     * @throws CheckpointException when nothing can be written there
     * @throws IllegalArgumentException when the step is negative, or the metadata or the tensors are impossible, as in
     *     {@link SafetensorsWriter#create}
     */
    public Pending begin(long step, Map<String, String> metadata, List<SafetensorsWriter.Tensor> tensors) {
        if (step < 0 || step > LAST_STEP) {
            throw new IllegalArgumentException("step %d is not between 0 and %d".formatted(step, LAST_STEP));
        }
        var described = new LinkedHashMap<String, String>();
        OURS.forEach(entry -> described.put(entry.getKey(), entry.getValue()));
        metadata.forEach((key, value) -> {
            if (described.put(key, value) != null) {
                throw new IllegalArgumentException("the metadata '%s' is the store's own".formatted(key));
            }
        });
        try {
            Files.createDirectories(directory);
        } catch (IOException e) {
            throw new CheckpointException.Unwritten(
                    "the directory %s cannot be made: %s".formatted(directory, MalformedFileException.reason(e)), e);
        }
        deleteAbandoned(); // first, because the space may be needed
        Path file = file(step);
        try {
            return new Pending(step, SafetensorsWriter.create(file, described, tensors));
        } catch (IOException e) {
            throw unwritten(e);
        }
    }

    /** Returns the file of a step's checkpoint, whether it exists or not. */
    public Path file(long step) {
        return directory.resolve("checkpoint-%010d.safetensors".formatted(step));
    }

    /** Returns the checkpoint of the latest step, if there is any. {@link #open} checks that it is complete. */
    public Optional<Path> newest() {
        List<Path> all = all();
        return all.isEmpty() ? Optional.empty() : Optional.of(all.getLast());
    }

    /** Returns all checkpoints, from the earliest step to the latest; none if the directory does not exist. */
    public List<Path> all() {
        try {
            return list(directory);
        } catch (IOException e) {
            throw new CheckpointException(
                    "%s cannot be read: %s".formatted(directory, MalformedFileException.reason(e)), e);
        }
    }

    /**
     * Opens the checkpoint of the latest step, to resume from after a crash.
     *
     * @throws CheckpointException when there is none, or as {@link #open} does
     */
    public SafetensorsFile openNewest() {
        Path newest = newest().orElseThrow(() -> new CheckpointException(
                Files.isDirectory(directory)
                        ? directory
                                + " holds no checkpoint; one is called checkpoint-0000000100.safetensors or the like"
                        : directory + " does not exist; name a directory that holds checkpoints"));
        return open(newest);
    }

    /**
     * Opens a checkpoint, of this directory or another, after reading all of it to verify that it is complete.
     *
     * @throws CheckpointException when it is damaged, is no checkpoint, or cannot be read; if an earlier one in the
     *     same directory is whole, the exception offers it
     */
    public SafetensorsFile open(Path checkpoint) {
        try {
            return openWhole(checkpoint);
        } catch (CheckpointException e) {
            Optional<Path> previous = wholeBefore(checkpoint);
            if (previous.isEmpty()) {
                throw e;
            }
            throw new CheckpointException(e, previous.get());
        }
    }

    private static SafetensorsFile openWhole(Path checkpoint) {
        SafetensorsFile file = null;
        try {
            file = SafetensorsFile.open(checkpoint);
            boolean ours = FORMAT.equals(file.metadata().get(FORMAT_KEY));
            // Only the checksum shows whether the format was written like this or is damaged.
            if (ours || file.hasChecksum()) {
                file.verify();
            }
            requireOurs(file);
            SafetensorsFile whole = file;
            file = null; // now another's to close
            return whole;
        } catch (MalformedFileException e) {
            throw new CheckpointException("damaged: " + e.getMessage(), e);
        } catch (IOException e) {
            throw new CheckpointException("unreadable: " + e.getMessage(), e);
        } finally {
            closeQuietly(file);
        }
    }

    private static void requireOurs(SafetensorsFile file) {
        for (Map.Entry<String, String> entry : OURS) {
            String value = file.metadata().get(entry.getKey());
            if (!entry.getValue().equals(value)) {
                throw new CheckpointException("foreign: %s: %s; right would be '%s'"
                        .formatted(
                                file.path(),
                                value == null
                                        ? "the metadata has no '%s'".formatted(entry.getKey())
                                        : "the metadata '%s' is '%s'".formatted(entry.getKey(), clip(value)),
                                entry.getValue()));
            }
        }
    }

    private static Optional<Path> wholeBefore(Path checkpoint) {
        if (!isCheckpoint(checkpoint)) {
            return Optional.empty();
        }
        Path parent = checkpoint.getParent();
        List<Path> siblings;
        try {
            siblings = list(parent == null ? Path.of("") : parent);
        } catch (IOException e) {
            return Optional.empty(); // there is trouble enough to report
        }
        for (Path sibling : siblings.reversed()) {
            if (step(sibling) < step(checkpoint)) {
                try {
                    closeQuietly(openWhole(sibling));
                    return Optional.of(sibling);
                } catch (CheckpointException e) {
                    // Not this one, then.
                }
            }
        }
        return Optional.empty();
    }

    /** Considers only the run so far: a run that was resumed from an earlier step keeps the later checkpoints. */
    private void deleteAllButTheNewest(long step) {
        try {
            List<Path> soFar = all().stream().filter(file -> step(file) <= step).toList();
            for (Path file : soFar.subList(0, Math.max(soFar.size() - KEPT, 0))) {
                Files.deleteIfExists(file);
            }
        } catch (IOException | CheckpointException e) {
            // The new one is safe, and that is what was asked for.
            LOG.warn("old checkpoints in {} stay: {}", directory, e.toString());
        }
    }

    private void deleteAbandoned() {
        try {
            SafetensorsWriter.deleteAbandoned(
                    directory, name -> NAME.matcher(name).matches());
        } catch (IOException e) {
            LOG.warn("unfinished checkpoints in {} stay: {}", directory, e.toString());
        }
    }

    private static List<Path> list(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> isCheckpoint(file) && Files.isRegularFile(file))
                    .sorted(Comparator.comparingLong(CheckpointStore::step))
                    .toList();
        } catch (NoSuchFileException e) {
            return List.of();
        } catch (UncheckedIOException e) {
            throw e.getCause();
        }
    }

    private static boolean isCheckpoint(Path file) {
        return NAME.matcher("" + file.getFileName()).matches();
    }

    /**
     * Returns the step of a checkpoint, by its name. {@link #open} checks that it is complete.
     *
     * @throws IllegalArgumentException when the name is not that of a checkpoint
     */
    public static long step(Path checkpoint) {
        Matcher name = NAME.matcher("" + checkpoint.getFileName());
        if (!name.matches()) {
            throw new IllegalArgumentException(checkpoint + " is not the name of a checkpoint");
        }
        return Long.parseLong(name.group(1));
    }

    private static CheckpointException unwritten(IOException e) {
        return new CheckpointException.Unwritten("" + e.getMessage(), e);
    }

    private static String clip(String text) {
        return text.length() <= LONGEST_QUOTE ? text : text.substring(0, LONGEST_QUOTE) + "...";
    }

    private static void closeQuietly(@Nullable SafetensorsFile file) {
        if (file != null) {
            try {
                file.close();
            } catch (IOException e) {
                LOG.debug("a file that was only read does not close", e);
            }
        }
    }

    /**
     * A checkpoint that is being written: {@link #write} all its tensors, then {@link #commit}. Thread-safe: the
     * threads of all devices write to it. Closing one that was not committed removes it.
     */
    public final class Pending implements AutoCloseable {
        private final long step;
        private final SafetensorsWriter writer;

        private Pending(long step, SafetensorsWriter writer) {
            this.step = step;
            this.writer = writer;
        }

        /**
         * Writes all of {@code from}, little-endian, to a tensor from {@code offsetBytes} on; see
         * {@link SafetensorsWriter#write}.
         *
         * @throws CheckpointException when it cannot be written
         */
        public void write(String name, long offsetBytes, MemorySegment from) {
            try {
                writer.write(name, offsetBytes, from);
            } catch (IOException e) {
                throw unwritten(e);
            }
        }

        /**
         * Makes the checkpoint the newest of the run, safe from crashes from now on, then deletes all up to its step
         * but the newest two, and what crashed runs have left unfinished.
         *
         * @return where it is
         * @throws CheckpointException when it cannot be written; the earlier ones are all there still
         * @throws IllegalStateException when a part of a tensor was never written, or when this was done before
         */
        public Path commit() {
            try {
                writer.commit();
            } catch (IOException e) {
                throw unwritten(e);
            }
            deleteAllButTheNewest(step);
            deleteAbandoned();
            return writer.target();
        }

        /** Discards the checkpoint unless it was committed. */
        @Override
        public void close() {
            try {
                writer.close();
            } catch (IOException e) {
                throw unwritten(e);
            }
        }
    }
}
