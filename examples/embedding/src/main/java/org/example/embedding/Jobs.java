package org.example.embedding;

import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The jobs in a directory, each in a directory of its own that has its ID as its name. One service at a time has them:
 * the lock on the file {@code lock} ends with its process, however that ends. Thread-safe.
 */
final class Jobs implements AutoCloseable {
    static final int MOST = 100;
    static final int MOST_RUNNING = 4;

    private static final Pattern ID = Pattern.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"); // UUIDs
    private static final String UNFINISHED = ".new"; // what is being made or deleted has this at the end of its name

    private final Map<String, Job> jobs = new ConcurrentSkipListMap<>();
    private final Path directory;
    private final MeterRegistry registry;
    private final FileChannel lock;

    /** Opens the jobs of earlier processes and removes what these have left unfinished; nothing runs yet. */
    Jobs(Path directory, MeterRegistry registry) throws IOException {
        this.directory = Files.createDirectories(directory);
        this.registry = registry;
        lock = FileChannel.open(directory.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        try {
            if (!isLocked(lock)) {
                throw new IOException("another service has the jobs in " + directory);
            }
            for (Path each : list(directory)) {
                String name = each.getFileName().toString();
                boolean unfinished = name.endsWith(UNFINISHED);
                String id = unfinished ? name.substring(0, name.length() - UNFINISHED.length()) : name;
                if (!ID.matcher(id).matches() || !Files.isDirectory(each, LinkOption.NOFOLLOW_LINKS)) {
                    continue; // not ours
                }
                if (unfinished) {
                    delete(each);
                } else {
                    jobs.put(id, Job.open(each, registry));
                }
            }
        } catch (IOException | RuntimeException e) {
            lock.close();
            throw e;
        }
    }

    private static boolean isLocked(FileChannel lock) throws IOException {
        try {
            return lock.tryLock() != null;
        } catch (OverlappingFileLockException e) {
            return false; // by another service of this process
        }
    }

    private static List<Path> list(Path directory) throws IOException {
        try (Stream<Path> found = Files.list(directory)) {
            return found.toList();
        }
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(each);
            }
        }
    }

    /** Continues the jobs that were running when the last service ended. */
    void proceed() {
        jobs.values().stream()
                .filter(job -> job.status().state() == Job.State.RUNNING)
                .forEach(Job::start);
    }

    List<Job.Status> statuses() {
        return jobs.values().stream().map(Job::status).toList();
    }

    long running() {
        return statuses().stream()
                .filter(status -> status.state() == Job.State.RUNNING)
                .count();
    }

    /** Returns a job; an ID that is unknown is never used as a path. */
    Job get(String id) {
        return Optional.ofNullable(jobs.get(id)).orElseThrow(() -> new Refused(404, "there is no job " + id));
    }

    synchronized Job create(JobSpec spec) throws IOException {
        if (jobs.size() >= MOST) {
            throw new Refused(429, "there are %d jobs; delete one".formatted(MOST));
        }
        requireRoom();
        String id = UUID.randomUUID().toString();
        Path fresh = directory.resolve(id + UNFINISHED);
        Path own = directory.resolve(id);
        try {
            Job.prepare(Files.createDirectory(fresh), id, spec);
            Files.move(fresh, own, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            delete(fresh);
            throw e;
        }
        Job job = Job.open(own, registry);
        jobs.put(id, job);
        job.start();
        return job;
    }

    private void requireRoom() {
        if (running() >= MOST_RUNNING) {
            throw new Refused(429, "%d jobs are running; stop one, or wait".formatted(MOST_RUNNING));
        }
    }

    synchronized Job resume(String id) {
        Job job = get(id);
        Job.State before = job.status().state();
        if (before != Job.State.RUNNING && before != Job.State.DONE) {
            requireRoom();
            job.start();
        }
        return requireWell(job);
    }

    /** Stops a job; not synchronized, because it waits for the current step. */
    Job stop(String id) {
        Job job = get(id);
        job.stop();
        return requireWell(job);
    }

    private static Job requireWell(Job job) {
        if (job.status().state() == Job.State.FAILED) {
            throw new Refused(409, "the job has failed: " + job.status().failure());
        }
        return job;
    }

    /** Deletes a job that does not run, with its checkpoints. */
    synchronized void delete(String id) throws IOException {
        Job job = get(id);
        if (job.status().state() == Job.State.RUNNING) {
            throw new Refused(409, "the job is running; stop it first");
        }
        Path gone = directory.resolve(id + UNFINISHED); // a kill leaves nothing that looks like a job
        Files.move(directory.resolve(id), gone, StandardCopyOption.ATOMIC_MOVE);
        jobs.remove(id);
        job.close();
        delete(gone);
    }

    /** Stops all jobs with a checkpoint each. */
    @Override
    public void close() throws IOException {
        jobs.values().forEach(Job::close);
        lock.close();
    }
}
