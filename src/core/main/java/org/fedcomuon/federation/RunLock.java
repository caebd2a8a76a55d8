package org.fedcomuon.federation;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.fedcomuon.file.MalformedFileException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The right to write the files of a run in a directory, which one process has at a time, on all hosts that share the
 * directory. A federation with {@link Federation.Builder#record} or {@link Federation.Builder#checkpoints} takes it by
 * itself and closes it when it ends; take it before that to be refused before data are read, and give it to the
 * federation by {@link Federation.Builder#lock}.
 *
 * <p>The file {@value #FILE} says who holds it, and counts up every few seconds; the kernel's lock on {@value #KERNEL}
 * ends with the process, also by {@code kill -9}. The lock of a process that has ended on this host is taken over at
 * once. That of another host is taken over when its file has not changed for longer than two beats, as measured here:
 * the kernel's lock may not reach the other host. A process that was taken for dead finds out by {@link #requireHeld},
 * and writes nothing more.
 *
 * <p>Thread-safe. Has a thread of its own until it is closed.
 */
public final class RunLock implements AutoCloseable {
    /** The file that says who holds the lock. */
    public static final String FILE = "run.lock";

    /** Apart from {@link #FILE}, because a process that closes any channel of a file loses its locks on it. */
    static final String KERNEL = ".run.lock";

    private static final Logger LOG = LoggerFactory.getLogger(RunLock.class);

    /** The directories of the locks of this JVM, where locks of files exclude no one. */
    private static final Set<Path> HELD = ConcurrentHashMap.newKeySet();

    /** How often a directory is made again that another process has found empty and deleted. */
    private static final int ATTEMPTS = 10;

    /**
     * Times of the protocol, the same on all hosts.
     *
     * @param beat between two changes of the file
     * @param watch the time without a change after which an owner on another host is taken for dead
     * @param patience the time that a new owner may take to write its name
     */
    record Pace(Duration beat, Duration watch, Duration patience) {
        static final Pace USUAL = new Pace(Duration.ofSeconds(3), Duration.ofSeconds(7), Duration.ofSeconds(1));
    }

    /** How the kernel is asked; tests replace it. */
    interface KernelLocks {
        /** What {@link FileChannel#tryLock()} does. */
        @Nullable
        FileLock tryLock(FileChannel channel, boolean shared) throws IOException;

        /** The whole file. */
        static @Nullable FileLock tryAll(FileChannel channel, boolean shared) throws IOException {
            return channel.tryLock(0, Long.MAX_VALUE, shared);
        }
    }

    /** The directory is in use by another run. The message is one line that names its process. */
    public static final class InUseException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        InUseException(Path directory, Optional<RunOwner> owner) {
            super(MalformedFileException.oneLine("%s is in use by %s; wait until it ends, or name another directory"
                    .formatted(directory, owner.map(RunOwner::toString).orElse("another process"))));
        }
    }

    /** Another process has taken the lock over. The message is one line that names it. */
    public static final class LostException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        LostException(Path directory, Optional<RunOwner> owner) {
            super(MalformedFileException.oneLine("%s belongs to another run now: %s; this one writes nothing more"
                    .formatted(
                            directory,
                            owner.map(each -> each + " has taken it over, because this process did not answer")
                                    .orElse("its %s was deleted".formatted(FILE)))));
        }
    }

    private final Path directory; // as it was named
    private final Path real;
    private final LockFile file;
    private final RunOwner me = RunOwner.current();
    private final Pace pace;
    private final Deque<Path> made;
    private final List<String> notes = new ArrayList<>();
    private final FileChannel channel; // its kernel's lock ends when it is closed
    private final Thread heart;
    private boolean interrupted; // while it was taken
    private long beats;
    private boolean closed;
    private boolean lost;
    private Optional<RunOwner> successor = Optional.empty();
    private Runnable onLoss = () -> {};

    private RunLock(Path directory, Path real, Deque<Path> made, Pace pace, KernelLocks locks) throws IOException {
        this.directory = directory;
        this.real = real;
        this.made = made;
        this.pace = pace;
        file = new LockFile(real.resolve(FILE));
        try {
            boolean locked;
            try (FileChannel alone = open(StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                locked = isLocked(alone, locks);
                claim(locked);
            }
            channel = open(StandardOpenOption.READ);
            if (locked) {
                share(locks);
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
        heart = Thread.ofPlatform().daemon().name("run-lock").start(this::beat);
    }

    /**
     * Takes the lock of a directory, and makes the directory if it does not exist. Takes seconds where the last owner
     * was on another host and has not closed its lock. An interrupt does not end that.
     *
     * @throws InUseException when another run has it, in this process or another
     * @throws IOException when the directory cannot be made or written; its message is one line that names the file
     */
    public static RunLock take(Path directory) throws IOException {
        return take(directory, Pace.USUAL, KernelLocks::tryAll);
    }

    /**
     * Takes the lock of a directory that holds no run and that no other process is given: that of this name or, if it
     * exists, the first of {@code NAME-2}, {@code NAME-3} and so on.
     *
     * @throws IOException as {@link #take} does
     */
    public static RunLock takeUnused(Path directory) throws IOException {
        while (true) {
            RunLock lock;
            try {
                lock = take(RunFiles.unused(directory));
            } catch (InUseException e) {
                continue; // another process was faster, so the next free name is another
            }
            if (!new RunFiles(lock.directory).areTaken()) {
                return lock;
            }
            lock.close();
        }
    }

    static RunLock take(Path directory, Pace pace, KernelLocks locks) throws IOException {
        boolean interrupted = Thread.interrupted(); // it would close the channel, and the kernel's lock with it
        try {
            for (int attempt = 1; ; attempt++) {
                try {
                    return open(directory, pace, locks);
                } catch (NoSuchFileException e) {
                    if (attempt == ATTEMPTS) {
                        throw explained(directory, e);
                    }
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static RunLock open(Path directory, Pace pace, KernelLocks locks) throws IOException {
        Deque<Path> made = makeDirectories(directory);
        Path real = directory.toRealPath();
        if (!HELD.add(real)) {
            throw new InUseException(directory, new LockFile(real.resolve(FILE)).owner());
        }
        try {
            return new RunLock(directory, real, made, pace, locks);
        } catch (NoSuchFileException e) { // the directory is gone: take makes it again
            release(real, made);
            throw e;
        } catch (IOException e) {
            release(real, made);
            throw explained(directory.resolve(FILE), e);
        } catch (RuntimeException | Error e) {
            release(real, made);
            throw e;
        }
    }

    private static void release(Path real, Deque<Path> made) {
        HELD.remove(real);
        deleteEmpty(made);
    }

    /** Returns the directories that were made, the lowest first. */
    private static Deque<Path> makeDirectories(Path directory) throws IOException {
        try {
            return makeMissing(directory);
        } catch (NoSuchFileException e) {
            throw e;
        } catch (IOException e) {
            throw explained(directory, e);
        }
    }

    private static IOException explained(Path file, IOException error) {
        var explained = new FileSystemException(
                MalformedFileException.oneLine(file.toString()), null, MalformedFileException.reason(error));
        explained.initCause(error);
        return explained;
    }

    private static Deque<Path> makeMissing(Path directory) throws IOException {
        var missing = new ArrayDeque<Path>();
        for (Path each = directory.toAbsolutePath(); each != null && !Files.exists(each); each = each.getParent()) {
            missing.push(each);
        }
        var made = new ArrayDeque<Path>();
        for (Path each : missing) {
            try {
                Files.createDirectory(each);
                made.push(each);
            } catch (FileAlreadyExistsException e) { // another process was faster
                if (!Files.isDirectory(each)) {
                    throw e;
                }
            }
        }
        return made;
    }

    private static void deleteEmpty(Deque<Path> directories) {
        try {
            for (Path each : directories) {
                Files.deleteIfExists(each);
            }
        } catch (DirectoryNotEmptyException e) {
            // It holds the files of a run, and those above are not empty either.
        } catch (IOException e) {
            LOG.warn("{} stays: {}", directories.peek(), e.toString());
        }
    }

    /** Returns whether the kernel keeps others out, as far as its locks reach; false if it has none here. */
    private boolean isLocked(FileChannel alone, KernelLocks locks) throws IOException {
        try {
            if (locks.tryLock(alone, false) == null) {
                throw new InUseException(directory, newOwner());
            }
            return true;
        } catch (OverlappingFileLockException e) { // by another path to the same directory
            throw new InUseException(directory, newOwner());
        } catch (IOException e) {
            notes.add("the file system of %s has no locks (%s); its file %s alone keeps other runs out"
                    .formatted(directory, MalformedFileException.reason(e), FILE));
            return false;
        }
    }

    private FileChannel open(OpenOption... how) throws IOException {
        var options = new HashSet<>(Set.of(how));
        options.add(LinkOption.NOFOLLOW_LINKS);
        return FileChannel.open(real.resolve(KERNEL), options);
    }

    /**
     * Keeps the kernel's lock as a reader, who excludes all that want the file for themselves: while a file is open for
     * writing, its disk cannot be made read-only. Others may have the lock for a moment, until they have seen the name
     * of this process.
     */
    private void share(KernelLocks locks) throws IOException {
        long start = System.nanoTime();
        while (locks.tryLock(channel, true) == null && !isPast(start, pace.patience)) {
            pause(pace.patience.dividedBy(20));
        }
    }

    /** Returns who has the kernel's lock. It may be about to write its name over that of a process that has ended. */
    private Optional<RunOwner> newOwner() throws IOException {
        long start = System.nanoTime();
        Optional<RunOwner> owner = file.owner();
        while (owner.map(each -> each.isHere(me) && !each.isAlive()).orElse(true) && !isPast(start, pace.patience)) {
            pause(pace.patience.dividedBy(20));
            owner = file.owner();
        }
        return owner;
    }

    private void claim(boolean locked) throws IOException {
        while (true) {
            try {
                file.create(me.text(beats));
                return;
            } catch (FileAlreadyExistsException e) {
                Optional<String> before = settled();
                if (before.isPresent()) {
                    takeOver(before.get(), locked);
                    return;
                }
            } catch (IOException e) {
                Files.deleteIfExists(real.resolve(KERNEL));
                throw e;
            }
        }
    }

    /** Returns what the file says when its owner has had the time to write it; empty if it is gone. */
    private Optional<String> settled() throws IOException {
        long start = System.nanoTime();
        Optional<String> text = file.read();
        while (text.isPresent() && RunOwner.of(text.get()).isEmpty() && !isPast(start, pace.patience)) {
            pause(pace.patience.dividedBy(20));
            text = file.read();
        }
        return text;
    }

    private void takeOver(String before, boolean locked) throws IOException {
        Optional<RunOwner> owner = RunOwner.of(before);
        boolean here = owner.map(each -> each.isHere(me)).orElse(false);
        if (here && owner.orElseThrow().isAlive() && owner.orElseThrow().pid() != me.pid()) {
            throw new InUseException(directory, owner);
        }
        if (!here) {
            requireSilent(before);
        }
        file.write(me.text(beats));
        if (!(here && locked)) {
            pause(pace.beat); // for another that has found it silent at the same moment, and writes its name now
        }
        Optional<String> now = file.read();
        if (!now.map(this::isMine).orElse(false)) {
            throw new InUseException(directory, now.flatMap(RunOwner::of));
        }
        notes.add("%s was locked by %s, which %s; its lock was taken over"
                .formatted(
                        directory,
                        owner.map(RunOwner::toString).orElse("a process that has not left its name"),
                        here ? "has ended" : "has not answered for %d s".formatted(pace.watch.toSeconds())));
    }

    private void requireSilent(String before) throws IOException {
        long start = System.nanoTime();
        while (!isPast(start, pace.watch)) {
            pause(pace.watch.dividedBy(20));
            Optional<String> now = file.read();
            if (!now.equals(Optional.of(before))) {
                throw new InUseException(directory, now.flatMap(RunOwner::of));
            }
        }
    }

    private boolean isMine(String text) {
        return RunOwner.of(text).map(owner -> owner.id().equals(me.id())).orElse(false);
    }

    private void beat() {
        while (true) {
            LockSupport.parkNanos(pace.beat.toNanos()); // until close, at most
            Runnable loss;
            synchronized (this) {
                if (closed) {
                    return;
                }
                try {
                    if (isHeld()) {
                        file.write(me.text(++beats));
                        continue;
                    }
                } catch (IOException e) {
                    LOG.debug("no beat for {}", directory, e); // a server may be away for a while
                    continue;
                }
                loss = onLoss;
            }
            loss.run();
            return;
        }
    }

    private boolean isHeld() throws IOException {
        if (!lost) {
            Optional<String> text = file.read();
            if (!text.map(this::isMine).orElse(false)) {
                lost = true;
                successor = text.flatMap(RunOwner::of);
            }
        }
        return !lost;
    }

    /**
     * Checks that no other process has taken the lock over. To be called before files are written.
     *
     * @throws LostException when one has, or the file was deleted
     */
    public synchronized void requireHeld() {
        try {
            if (closed || isHeld()) {
                return;
            }
        } catch (IOException e) {
            LOG.debug("the lock of {} cannot be read", directory, e); // nor can anything be written there
            return;
        }
        throw new LostException(directory, successor);
    }

    /** Sets what to do when another process has taken the lock over; called once, by a thread of the lock. */
    synchronized void onLoss(Runnable action) {
        onLoss = action;
    }

    /** Returns the directory, as it was named. */
    public Path directory() {
        return directory;
    }

    /** Returns a sentence for each thing to know about how the lock was taken, such as that another was taken over. */
    public List<String> notes() {
        return List.copyOf(notes);
    }

    /** Ends it, and deletes its files, and the directory if this lock has made it and nothing is in it. */
    @Override
    public void close() {
        synchronized (this) {
            if (closed) {
                return;
            }
            try {
                if (isHeld()) {
                    file.delete();
                    Files.deleteIfExists(real.resolve(KERNEL));
                }
            } catch (IOException e) {
                LOG.warn("the lock of {} stays: {}", directory, e.toString());
            }
            closed = true;
        }
        LockSupport.unpark(heart);
        try {
            channel.close();
        } catch (IOException e) {
            LOG.debug("a lock does not close", e);
        }
        release(real, made);
    }

    private static boolean isPast(long start, Duration time) {
        return System.nanoTime() - start > time.toNanos();
    }

    /** Waits, also where the thread is interrupted. */
    private void pause(Duration time) {
        long start = System.nanoTime();
        while (!isPast(start, time)) {
            try {
                Thread.sleep(time.minusNanos(System.nanoTime() - start));
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
    }
}
