package org.fedcomuon.internal.file;

import java.io.Closeable;
import java.io.IOException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.EnumSet;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A file that interrupts do not close. Any other channel is closed for all threads by an interrupt of one, and what was
 * being written is lost: here the file is opened again and the work done again, and the thread has its interrupt
 * afterwards. So work must be such that it may be done twice.
 *
 * <p>Thread-safe.
 */
public final class SteadyChannel implements Closeable {
    /** An operation that may be repeated. */
    public interface Work<T> {
        /** Does it. */
        T on(FileChannel channel) throws IOException;
    }

    private final Path file;
    private final Set<OpenOption> again;
    private final @Nullable Object key;
    private FileChannel channel;
    private boolean closed;

    private SteadyChannel(Path file, Set<OpenOption> again, FileChannel channel) throws IOException {
        this.file = file;
        this.again = again;
        this.channel = channel;
        this.key = key();
    }

    /** Opens a file for reading. */
    public static SteadyChannel read(Path file) throws IOException {
        return open(file, EnumSet.of(StandardOpenOption.READ), StandardOpenOption.READ);
    }

    /** Opens a file that is there for writing and reading. */
    public static SteadyChannel write(Path file) throws IOException {
        return open(
                file,
                EnumSet.of(StandardOpenOption.READ, StandardOpenOption.WRITE),
                StandardOpenOption.READ,
                StandardOpenOption.WRITE);
    }

    /** Makes a file that must not be there yet, for writing and reading. */
    public static SteadyChannel create(Path file) throws IOException {
        return open(
                file,
                EnumSet.of(StandardOpenOption.READ, StandardOpenOption.WRITE),
                StandardOpenOption.CREATE_NEW,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE);
    }

    private static SteadyChannel open(Path file, Set<StandardOpenOption> again, OpenOption... first)
            throws IOException {
        FileChannel channel = FileChannel.open(file, first);
        try {
            return new SteadyChannel(file, Set.copyOf(again), channel);
        } catch (IOException e) {
            channel.close();
            throw e;
        }
    }

    private @Nullable Object key() throws IOException {
        return Files.readAttributes(file, BasicFileAttributes.class).fileKey();
    }

    /** Does something, to its end whatever interrupts. */
    public <T> T on(Work<T> work) throws IOException {
        boolean interrupted = false;
        try {
            while (true) {
                interrupted |= Thread.interrupted(); // it would close the channel at once
                FileChannel now = current();
                try {
                    return work.on(now);
                } catch (ClosedChannelException e) { // by an interrupt, of this thread or another, or by close
                    interrupted |= Thread.interrupted();
                    reopen(e);
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Waits until all is on the disk. */
    public void force() throws IOException {
        on(now -> {
            now.force(true);
            return now;
        });
    }

    /** Returns whether it has not been closed. */
    public synchronized boolean isOpen() {
        return !closed;
    }

    private synchronized FileChannel current() {
        return channel;
    }

    private synchronized void reopen(ClosedChannelException why) throws IOException {
        if (closed) {
            throw why;
        }
        if (!channel.isOpen()) { // or another thread has opened it again
            FileChannel another = FileChannel.open(file, again);
            if (!Objects.equals(key, key())) {
                another.close();
                throw new IOException("another file has taken its place");
            }
            channel = another;
        }
    }

    @Override
    public synchronized void close() throws IOException {
        closed = true;
        channel.close();
    }
}
