package org.fedcomuon.method;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.BitSet;

/**
 * What clients keep while they sit out: their private state, and how many samples they have drawn. It is a file that is
 * mapped into memory, with a place for each client and nothing in it for one that has never taken part, so that a
 * million clients take as much of the disk as those that have been here, and of the memory what the system spares. The
 * file has no name any more when it is in use: it ends with the process. What must outlast it is in checkpoints.
 *
 * <p>Thread-safe, as long as a client is with one thread at a time.
 */
public final class ClientStore implements AutoCloseable {
    private static final long COUNTERS = 2 * Long.BYTES;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment memory;
    private final long recordBytes;
    private final int members;
    private final BitSet present = new BitSet(); // guarded by itself

    /**
     * @param directory that has room for the file
     * @param clients all of them
     * @param members how many processes divide the clients among them: those here have numbers that are so far apart,
     *     and their records are not
     * @param floats the private state of a client
     * @throws UncheckedIOException when the file cannot be made
     */
    public ClientStore(Path directory, int clients, int members, long floats) {
        this.members = members;
        recordBytes = recordBytes(floats);
        long records = Math.ceilDiv(clients, members);
        try {
            Path file = Files.createTempFile(directory, ".clients", ".state");
            try (FileChannel channel = FileChannel.open(
                    file, StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.SPARSE)) {
                memory = channel.map(FileChannel.MapMode.READ_WRITE, 0, records * recordBytes, arena);
            } finally {
                Files.delete(file);
            }
        } catch (IOException e) {
            arena.close();
            throw new UncheckedIOException(
                    "no room for the private state of %d clients, %d bytes each, in %s: %s"
                            .formatted(records, recordBytes, directory, e.getMessage()),
                    e);
        }
    }

    /** Returns how many bytes a client takes. */
    public static long recordBytes(long floats) {
        return (COUNTERS + floats * Float.BYTES + Long.BYTES - 1) / Long.BYTES * Long.BYTES;
    }

    /** Returns whether a client has been here. */
    public boolean has(int client) {
        synchronized (present) {
            return present.get(client);
        }
    }

    /** Returns the clients that have been here, ascending. */
    public int[] clients() {
        synchronized (present) {
            return present.stream().toArray();
        }
    }

    /** Says that what a client keeps is here. */
    public void put(int client) {
        synchronized (present) {
            present.set(client);
        }
    }

    /** Returns the numbers of samples that a client has drawn, of g and of f: two integers of 64 bits. */
    public MemorySegment draws(int client) {
        return memory.asSlice(start(client), COUNTERS);
    }

    /** Returns a part of a client's private state, from one of its floats on. */
    public MemorySegment values(int client, long from, long count) {
        return memory.asSlice(start(client) + COUNTERS + from * Float.BYTES, count * Float.BYTES);
    }

    private long start(int client) {
        return client / members * recordBytes;
    }

    void putDraws(int client, long inner, long outer) {
        MemorySegment counters = draws(client);
        counters.setAtIndex(ValueLayout.JAVA_LONG, 0, inner);
        counters.setAtIndex(ValueLayout.JAVA_LONG, 1, outer);
    }

    @Override
    public void close() {
        arena.close();
    }
}
