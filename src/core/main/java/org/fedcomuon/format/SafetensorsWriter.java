package org.fedcomuon.format;

import static org.fedcomuon.internal.file.FileTransfer.clip;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
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
import org.fedcomuon.internal.file.FileTransfer;
import org.fedcomuon.internal.file.SteadyChannel;

/**
 * Writes safetensors files that are larger than memory, or whose parts are on several threads. The layout is fixed
 * first; then the data is written in any order and by any thread; {@link #commit} finally makes the complete file
 * visible, with a checksum for {@link SafetensorsFile#verify}. The final name always refers to the previous file or to
 * the complete new one, even after a crash.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="safetensors"}
 *
 * <p>The checksum is the metadata {@code sha256}: of the whole file, with its own 64 digits taken as zeros. Other
 * readers of safetensors ignore it.
 *
 * <p>Thread-safe: any number of threads may write at once. A thread that is interrupted completes its write and stays
 * interrupted.
 */
public final class SafetensorsWriter implements AutoCloseable {
    /** The file of a writer that did not finish; it contains the final name. */
    private static final Pattern PART = Pattern.compile("\\.(.+)\\.[0-9a-f]{16}\\.safetensors-part", Pattern.DOTALL);

    /** Names of this process's own unfinished files; they are random, so that no two writers share one. */
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
     * Starts a file beside {@code target}, in the same directory. A symbolic link will be replaced, not followed.
     *
     * @param metadata of the file, in the order of the map; the checksum is added
     * @param tensors of the file, in the order of the data
     * @throws IOException when no file can be created there; like all messages here, this one is a line that names the
     *     target
     * @throws IllegalArgumentException when two tensors have the same name, the metadata has a {@code sha256} or is not
     *     Unicode, or all that is too much for a header
     */
    public static SafetensorsWriter create(Path target, Map<String, String> metadata, List<Tensor> tensors)
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

    /** Returns the path that the file will have. */
    public Path target() {
        return target;
    }

    /**
     * Writes all of {@code from}, little-endian, to a tensor from {@code offsetBytes} on. Threads may do so
     * concurrently if their ranges do not overlap.
     *
     * @throws IOException when it cannot be written; this range may be tried again
     * @throws IllegalArgumentException when there was no such tensor in {@link #create}
     * @throws IndexOutOfBoundsException when the range is not within the tensor
     * @throws IllegalStateException when the writer is committed or closed
     */
    public void write(String name, long offsetBytes, MemorySegment from) throws IOException {
        SafetensorsFile.Tensor tensor = header.tensors().get(name);
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
     * Makes the file visible: writes the checksum, forces all of it to the disk, renames it to its final name, and
     * forces that to the disk as well.
     *
     * @throws IOException when that fails; unless it was the last step, the previous file is unchanged
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

    /** Deletes what was written so far unless it was committed. */
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
     * Deletes from {@code directory} the unfinished files of writers that crashed, for targets whose file names match
     * {@code whose}. Unfinished files of writers in this process are kept; those of other processes are not, so a
     * directory is for one process at a time.
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
        for (SafetensorsFile.Tensor tensor : header.tensors().values()) {
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

    /**
     * A tensor to be written. The layout of a safetensors file is fixed before its data is written.
     *
     * @param name any text but {@code __metadata__}, which the format reserves
     * @param dtype of the elements
     * @param shape the number of elements along each dimension, the last index running fastest; empty for a single
     *     number
     */
    public record Tensor(String name, Dtype dtype, List<Long> shape) {
        /**
         * Checks that such a tensor is possible.
         *
         * @throws IllegalArgumentException when the name is taken or not Unicode, a dimension is negative, or the size
         *     overflows
         */
        public Tensor {
            Objects.requireNonNull(dtype);
            shape = List.copyOf(shape);
            if (name.equals(SafetensorsHeader.METADATA)) {
                throw new IllegalArgumentException(
                        "no tensor can be called %s; this is where the metadata is".formatted(name));
            }
            SafetensorsHeader.requireUnicode(name, "the name of a tensor");
            byteSize(name, dtype, shape);
        }

        /** Creates a tensor of a given shape. */
        public static Tensor of(String name, Dtype dtype, long... shape) {
            return new Tensor(name, dtype, Arrays.stream(shape).boxed().toList());
        }

        /** Returns the length of the data in bytes. */
        public long bytes() {
            return byteSize(name, dtype, shape);
        }

        static long byteSize(String name, Dtype dtype, List<Long> shape) {
            return Shapes.byteSize(
                    dtype.bytes(),
                    shape,
                    () -> "tensor '%s' with shape %s of %s"
                            .formatted(FileTransfer.clip(name), Shapes.list(shape), dtype));
        }
    }
}
