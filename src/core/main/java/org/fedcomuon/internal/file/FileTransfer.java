package org.fedcomuon.internal.file;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.fedcomuon.file.MalformedFileException;

/** The common part of all formats: transfers that are complete or fail, and messages of one line that name the file. */
public final class FileTransfer {
    /** A byte buffer ends at 2 GiB, an array does not. */
    private static final long CHUNK = 1 << 20;

    private static final int LONGEST_QUOTE = 60;

    private FileTransfer() {}

    /** {@code kind} is what the file should be, as "an NPY file". */
    public static void requireRegular(Path file, String kind) throws IOException {
        refuseDirectory(file, kind);
        if (Files.exists(file) && !Files.isRegularFile(file)) {
            // A pipe has no length to check against, and opening one can take for ever.
            throw new IOException(MalformedFileException.oneLine(file + " is not a regular file"));
        }
    }

    public static void refuseDirectory(Path file, String kind) throws IOException {
        if (Files.isDirectory(file)) {
            throw new IOException(MalformedFileException.oneLine(file + " is a directory; name " + kind));
        }
    }

    /** Fills {@code into} with what is at {@code position}; several threads may do so at once. */
    public static void read(FileChannel channel, long position, MemorySegment into) throws IOException {
        if (into.isNative()) {
            for (long at = 0; at < into.byteSize(); at += CHUNK) {
                fill(channel, position + at, chunk(into, at).asByteBuffer());
            }
            return;
        }
        // On the heap, where a channel cannot reach.
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stage = arena.allocate(Math.min(CHUNK, into.byteSize()));
            for (long at = 0; at < into.byteSize(); at += CHUNK) {
                MemorySegment to = chunk(into, at);
                MemorySegment from = stage.asSlice(0, to.byteSize());
                fill(channel, position + at, from.asByteBuffer());
                to.copyFrom(from);
            }
        }
    }

    /** Writes all of {@code from} to {@code position}; several threads may do so at once. */
    public static void write(FileChannel channel, long position, MemorySegment from) throws IOException {
        if (from.isNative()) {
            for (long at = 0; at < from.byteSize(); at += CHUNK) {
                drain(channel, position + at, chunk(from, at).asByteBuffer());
            }
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stage = arena.allocate(Math.min(CHUNK, from.byteSize()));
            for (long at = 0; at < from.byteSize(); at += CHUNK) {
                MemorySegment piece = chunk(from, at);
                MemorySegment to = stage.asSlice(0, piece.byteSize()).copyFrom(piece);
                drain(channel, position + at, to.asByteBuffer());
            }
        }
    }

    /** Returns a few bytes, for a header; little-endian. */
    public static ByteBuffer bytes(FileChannel channel, long position, int length) throws IOException {
        ByteBuffer buffer = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
        fill(channel, position, buffer);
        return buffer.flip();
    }

    private static MemorySegment chunk(MemorySegment whole, long at) {
        return whole.asSlice(at, Math.min(CHUNK, whole.byteSize() - at));
    }

    /** Several threads may do so at once. */
    public static void fill(FileChannel channel, long position, ByteBuffer buffer) throws IOException {
        long at = position;
        while (buffer.hasRemaining()) {
            int count = channel.read(buffer, at);
            if (count < 0) {
                throw new IOException("the file became shorter while it was read");
            }
            at += count;
        }
    }

    private static void drain(FileChannel channel, long position, ByteBuffer buffer) throws IOException {
        long at = position;
        while (buffer.hasRemaining()) {
            at += channel.write(buffer, at);
        }
    }

    public static IOException explainRead(Path file, IOException error) {
        return explain(file, "no such file", error);
    }

    public static IOException explainWrite(Path file, IOException error) {
        return explain(file, "the directory does not exist", error);
    }

    /**
     * Explains an error with the name of the file, because the operating system's messages name no file, or the
     * temporary one.
     */
    private static IOException explain(Path file, String missing, IOException error) {
        String name = MalformedFileException.oneLine("" + file);
        return switch (error) {
            case MalformedFileException e -> e;
            case NoSuchFileException e -> explained(new NoSuchFileException(name, null, missing), e);
            case AccessDeniedException e ->
                explained(new AccessDeniedException(name, null, MalformedFileException.reason(e)), e);
            default ->
                explained(
                        new FileSystemException(
                                name, null, MalformedFileException.oneLine(MalformedFileException.reason(error))),
                        error);
        };
    }

    private static IOException explained(IOException explanation, IOException cause) {
        explanation.initCause(cause);
        return explanation;
    }

    /** Clips a quotation from a file, so that a message stays short. */
    public static String clip(String text) {
        return clip(text, LONGEST_QUOTE);
    }

    public static String clip(String text, int length) {
        return text.length() <= length ? text : text.substring(0, length) + "...";
    }
}
