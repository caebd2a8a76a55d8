package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;
import org.fedcomuon.cluster.spark.Message.Piece;

/**
 * What members were answered since the last checkpoint, for members that start again from there: in a file, because it
 * may be many times as large as the model. The file has no name, so that nothing is left of it, however the driver
 * ends.
 *
 * <p>Thread-safe.
 */
final class ReplyFile implements AutoCloseable {
    private final Path directory;
    private final FileChannel file;

    // The following fields are guarded by this.
    private final Map<Piece, Place> places = new HashMap<>();
    private long end;

    private record Place(long at, int bytes) {}

    ReplyFile(Path directory) {
        this.directory = directory;
        try {
            Path path = Files.createTempFile(directory, ".replies", ".bin");
            file = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
            Files.delete(path);
        } catch (IOException e) {
            throw failed(e);
        }
    }

    private UncheckedIOException failed(IOException e) {
        return new UncheckedIOException(new IOException(
                "the means since the last checkpoint cannot be kept in %s: %s".formatted(directory, e.getMessage()),
                e));
    }

    /** Keeps the answer about a piece, if it is not there yet. */
    void put(Piece piece, MemorySegment answer) {
        long at;
        synchronized (this) {
            if (places.containsKey(piece)) {
                return;
            }
            at = end;
            end += answer.byteSize();
        }
        try {
            ByteBuffer bytes = answer.asByteBuffer();
            while (bytes.hasRemaining()) {
                file.write(bytes, at + bytes.position());
            }
        } catch (IOException e) {
            throw failed(e);
        }
        synchronized (this) {
            places.put(piece, new Place(at, Math.toIntExact(answer.byteSize())));
        }
    }

    synchronized boolean has(Piece piece) {
        return places.containsKey(piece);
    }

    /** Returns the number of bytes of an answer that is there. */
    synchronized int size(Piece piece) {
        return place(piece).bytes();
    }

    /** Reads an answer that is there. */
    void read(Piece piece, MemorySegment into) {
        Place place;
        synchronized (this) {
            place = place(piece);
        }
        try {
            ByteBuffer bytes = into.asSlice(0, place.bytes()).asByteBuffer();
            while (bytes.hasRemaining()) {
                if (file.read(bytes, place.at() + bytes.position()) < 0) {
                    throw new IOException("it has ended");
                }
            }
        } catch (IOException e) {
            throw failed(e);
        }
    }

    private Place place(Piece piece) {
        Place place = places.get(piece);
        if (place == null) {
            throw new IllegalStateException("no answer about %s is kept".formatted(piece));
        }
        return place;
    }

    /** Forgets everything. */
    synchronized void clear() {
        places.clear();
        end = 0;
        try {
            file.truncate(0);
        } catch (IOException e) {
            throw failed(e);
        }
    }

    @Override
    public void close() {
        try {
            file.close();
        } catch (IOException e) {
            throw failed(e);
        }
    }
}
