package org.fedcomuon.format;

import static org.fedcomuon.format.FileTransfer.clip;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Writes safetensors files that are larger than memory, or whose parts are on several threads. The layout is fixed
 * first; then the data comes in any order and from any thread; {@link #commit} at last makes the file appear, whole and
 * with a checksum that {@link SafetensorsFile#verify} knows. Under its final name there is what was there before, or
 * all of the new file, never a part of it, not even after a crash.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="safetensors"}
 *
 * <p>The checksum is the metadata {@code sha256}: of the whole file, with its own 64 digits taken as zeros. Other
 * readers of safetensors pass over it.
 *
 * <p>Thread-safe: any number may write at once. Interrupts do not disturb them: a thread that is interrupted has done
 * its part all the same, and finds the interrupt afterwards.
 */
public final class SafetensorsWriter implements AutoCloseable {
    /** What is left of a writer that came to no end; the final name is within. */
    private static final Pattern PART = Pattern.compile("\\.(.+)\\.[0-9a-f]{16}\\.safetensors-part", Pattern.DOTALL);

    /** File names of this process's own unfinished ones; they are random, so that no two writers share one. */
    private static final Set<String> LIVE = ConcurrentHashMap.newKeySet();

    private final Path target;
    private final Path part;
    private final SteadyChannel channel;
    private final SafetensorsHeader header;
    private final Ranges written = new Ranges();

    /** Writes share it; finishing has it alone. */
    private final ReadWriteLock lock = new ReentrantReadWriteLock();

    private boolean finished;

    private SafetensorsWriter(Path target, Path part, SteadyChannel channel, SafetensorsHeader header) {
        this.target = target;
        this.part = part;
        this.channel = channel;
        this.header = header;
    }

    /**
     * Starts a file beside {@code target}, in the same directory. A symbolic link is going to be replaced, not
     * followed.
     *
     * @param metadata what the file is to say about itself, in the order of the map; the checksum is added
     * @param tensors what it is to hold, in the order of the data
     * @throws IOException when no file can be there; like all messages here, this one is a line that names the target
     * @throws IllegalArgumentException when two tensors have the same name, the metadata has a {@code sha256} or is not
     *     Unicode, or all that is too much for a header
     */
    public static SafetensorsWriter create(Path target, Map<String, String> metadata, List<TensorSpec> tensors)
            throws IOException {
        byte[] bytes = SafetensorsHeader.compose(metadata, tensors);
        SafetensorsHeader header = SafetensorsHeader.composed(target, bytes);
        FileTransfer.refuseDirectory(target, SafetensorsFile.KIND);
        // Not by Files.createTempFile, whose files are for their owner only.
        Path part = target.resolveSibling(".%s.%016x.safetensors-part"
                .formatted(target.getFileName(), ThreadLocalRandom.current().nextLong()));
        LIVE.add(name(part));
        try {
            SteadyChannel channel = SteadyChannel.create(part);
            var writer = new SafetensorsWriter(target, part, channel, header);
            try {
                writer.put(0, MemorySegment.ofArray(bytes));
            } catch (IOException e) {
                try (writer) {
                    throw e;
                }
            }
            return writer;
        } catch (IOException e) {
            LIVE.remove(name(part));
            throw FileTransfer.explainWrite(target, e);
        }
    }

    /** Where the file is going to be. */
    public Path target() {
        return target;
    }

    /**
     * Puts all of {@code from}, little-endian, into a tensor from {@code offsetBytes} on. Two threads may do so at once
     * if their ranges do not overlap.
     *
     * @throws IOException when it cannot be written; this range may be tried again
     * @throws IllegalArgumentException when there was no such tensor in {@link #create}
     * @throws IndexOutOfBoundsException when the tensor has not so much room
     * @throws IllegalStateException when the writer is committed or closed
     */
    public void write(String name, long offsetBytes, MemorySegment from) throws IOException {
        TensorInfo tensor = header.tensors().get(name);
        if (tensor == null) {
            throw new IllegalArgumentException("no tensor '%s' was announced for %s".formatted(clip(name), target));
        }
        tensor.requireWithin(offsetBytes, from.byteSize());
        lock.readLock().lock();
        try {
            requireUnfinished();
            long start = tensor.offset() + offsetBytes;
            put(header.dataAt() + start, from);
            written.add(start, start + from.byteSize());
        } catch (IOException e) {
            throw FileTransfer.explainWrite(target, e);
        } finally {
            lock.readLock().unlock();
        }
    }

    /**
     * Makes the file appear: writes the checksum, waits until all of it is on the disk, gives it its final name, and
     * waits until that is on the disk as well.
     *
     * @throws IOException when that fails; unless it was the very last step, what was there before is still there
     * @throws IllegalStateException when the writer is committed or closed, or when a part of a tensor was never
     *     written
     */
    public void commit() throws IOException {
        lock.writeLock().lock();
        try {
            requireUnfinished();
            requireAllWritten();
            String seal = channel.on(header::seal);
            put(header.sealAt(), MemorySegment.ofArray(seal.getBytes(StandardCharsets.US_ASCII)));
            channel.force(); // or else a crash may leave the new name without the data
            Files.move(part, target, StandardCopyOption.ATOMIC_MOVE);
            finished = true;
            LIVE.remove(name(part));
            channel.close();
            forceDirectory(target);
        } catch (IOException e) {
            throw FileTransfer.explainWrite(target, e);
        } finally {
            lock.writeLock().unlock();
        }
    }

    /** Without {@link #commit}, gives up and deletes what was written so far; after it, does nothing. */
    @Override
    public void close() throws IOException {
        lock.writeLock().lock();
        try {
            if (!finished) {
                finished = true;
                try (channel) {
                    Files.deleteIfExists(part);
                } finally {
                    LIVE.remove(name(part));
                }
            }
        } catch (IOException e) {
            throw FileTransfer.explainWrite(target, e);
        } finally {
            lock.writeLock().unlock();
        }
    }

    /**
     * Deletes from {@code directory} what writers that crashed have left, for targets whose file names pass
     * {@code whose}. Unfinished files of writers in this process stay; of writers in another process nothing is known,
     * so a directory is for one process at a time.
     */
    public static void deleteAbandoned(Path directory, Predicate<String> whose) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Matcher name = PART.matcher(name(file));
                if (name.matches() && whose.test(name.group(1)) && !LIVE.contains(name(file))) {
                    Files.deleteIfExists(file);
                }
            }
        } catch (NoSuchFileException e) {
            // No directory, nothing left in it.
        } catch (IOException e) {
            throw FileTransfer.explainRead(directory, e);
        }
    }

    private void put(long position, MemorySegment from) throws IOException {
        channel.on(now -> {
            FileTransfer.write(now, position, from);
            return from;
        });
    }

    private void requireUnfinished() {
        if (finished) {
            throw new IllegalStateException("the writer of %s is committed or closed".formatted(target));
        }
    }

    private void requireAllWritten() {
        long missing = written.firstMissing();
        for (TensorInfo tensor : header.tensors().values()) {
            if (missing < tensor.end()) {
                throw new IllegalStateException("tensor '%s' of %s is not complete: byte %d of %d was never written"
                        .formatted(clip(tensor.name()), target, missing - tensor.offset(), tensor.bytes()));
            }
        }
    }

    private static void forceDirectory(Path file) throws IOException {
        Path directory = file.toAbsolutePath().getParent();
        if (directory != null) {
            try (SteadyChannel channel = SteadyChannel.read(directory)) {
                channel.force();
            }
        }
    }

    private static String name(Path file) {
        return "" + file.getFileName();
    }

    /** Which bytes were written. Neighbours are merged: what was written from start to end is a single range. */
    private static final class Ranges {
        private final NavigableMap<Long, Long> ends = new TreeMap<>();

        synchronized void add(long from, long to) {
            if (from == to) {
                return;
            }
            long start = from;
            long end = to;
            Map.Entry<Long, Long> before = ends.floorEntry(from);
            if (before != null && before.getValue() >= from) {
                start = before.getKey();
            }
            NavigableMap<Long, Long> touched = ends.subMap(start, true, end, true);
            if (!touched.isEmpty()) {
                end = Math.max(end, touched.lastEntry().getValue());
                touched.clear();
            }
            ends.put(start, end);
        }

        synchronized long firstMissing() {
            return ends.getOrDefault(0L, 0L);
        }
    }
}
