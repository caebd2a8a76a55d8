package org.example.embedding;

import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Optional;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.FederationRun;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.observe.FederationMeters;

/**
 * A training job with its directory, which holds its specification, its status and its checkpoints. After a restart or a
 * crash, {@link #open} and {@link #start} continue from the last checkpoint. Whatever is wrong with the directory is the
 * failure of this job and of no other. Thread-safe.
 */
final class Job implements AutoCloseable {
    private static final String FILE = "job.json";
    private static final int LONGEST_FILE = 10_000;
    private static final int ROUNDS_BETWEEN_CHECKPOINTS = 50;

    enum State {
        RUNNING,
        STOPPED,
        DONE,
        FAILED
    }

    /** The status on disk and in responses; there is no specification if the file of the job cannot be read. */
    record Status(String id, Optional<JobSpec> spec, State state, long step, double loss, String sha256, String failure) {}

    private final Path directory;
    private final MeterRegistry registry;
    private final String id;
    private final Optional<JobSpec> spec;
    private State state;
    private volatile long step;
    private volatile double loss;
    private String sha256;
    private String failure;
    private Optional<FederationRun> run = Optional.empty(); // while RUNNING
    private Optional<FederationMeters> meters = Optional.empty();
    private boolean closing;

    private Job(Path directory, MeterRegistry registry, Status last) {
        this.directory = directory;
        this.registry = registry;
        id = last.id();
        spec = last.spec();
        state = last.state();
        step = last.step();
        loss = last.loss();
        sha256 = last.sha256();
        failure = last.failure();
    }

    /** Makes a job in {@code directory}, which is empty, for {@link #open}. */
    static void prepare(Path directory, String id, JobSpec spec) throws IOException {
        write(directory, new Status(id, Optional.of(spec), State.STOPPED, 0, 0, "", ""));
    }

    /** Opens the job in a directory. It does not run yet, but its state is RUNNING if it was running. */
    static Job open(Path directory, MeterRegistry registry) {
        String id = directory.getFileName().toString();
        try {
            Files.deleteIfExists(unfinished(directory));
            return new Job(directory, registry, read(directory, id));
        } catch (IOException | IllegalArgumentException e) {
            String reason = "%s cannot be read: %s".formatted(FILE, e.getMessage());
            return new Job(directory, registry, new Status(id, Optional.empty(), State.FAILED, 0, 0, "", reason));
        }
    }

    private static Status read(Path directory, String id) throws IOException {
        Path file = directory.resolve(FILE);
        if (!Files.isRegularFile(file)) {
            throw new IllegalArgumentException("it is not there, or not a file");
        }
        byte[] text;
        try (InputStream in = Files.newInputStream(file)) {
            text = in.readNBytes(LONGEST_FILE + 1);
        }
        if (text.length > LONGEST_FILE) {
            throw new IllegalArgumentException("it has more than %d bytes".formatted(LONGEST_FILE));
        }
        Status status = Json.read(text, Status.class);
        if (status.spec().isEmpty() || !status.id().equals(id)) {
            throw new IllegalArgumentException("it is not of this job");
        }
        return status;
    }

    private static void write(Path directory, Status status) throws IOException {
        Path fresh = unfinished(directory);
        Files.writeString(
                fresh,
                Json.write(status),
                StandardOpenOption.CREATE,
                StandardOpenOption.TRUNCATE_EXISTING,
                StandardOpenOption.WRITE,
                StandardOpenOption.SYNC);
        Files.move(fresh, directory.resolve(FILE), StandardCopyOption.ATOMIC_MOVE);
    }

    private static Path unfinished(Path directory) {
        return directory.resolve(FILE + ".new");
    }

    /** Starts or resumes the job, unless it is running or done. What prevents it is the job's failure. */
    synchronized void start() {
        if (run.isPresent() || state == State.DONE || spec.isEmpty()) {
            return;
        }
        try {
            release();
            state = State.RUNNING;
            failure = "";
            write(directory, status());
            FederationRun started = federation(spec.get()).build().start();
            run = Optional.of(started);
            started.result().whenComplete(this::ended);
        } catch (IOException | RuntimeException | Error e) {
            fail(e);
        }
    }

    private Federation.Builder federation(JobSpec wanted) {
        Path checkpoints = directory.resolve("checkpoints");
        var fresh = new FederationMeters(registry);
        meters = Optional.of(fresh);
        Federation.Builder builder = Demand.run(wanted.shops())
                .name(id)
                .iterations(wanted.iterations())
                .tau(wanted.tau())
                .seed(wanted.seed())
                .checkpoints(checkpoints, ROUNDS_BETWEEN_CHECKPOINTS)
                .listener(fresh)
                .listener(new Listener() {
                    @Override
                    public void onRound(Round round) {
                        step = round.step();
                        loss = round.meanLoss();
                    }
                });
        return new CheckpointStore(checkpoints).newest().isPresent() ? builder.resume(checkpoints) : builder;
    }

    private synchronized void ended(Result result, Throwable thrown) {
        run = Optional.empty();
        if (thrown != null) {
            fail(thrown);
            return;
        }
        step = result.step();
        if (result.stopped()) {
            state = closing ? State.RUNNING : State.STOPPED; // a running job continues when the service starts again
        } else {
            sha256 = result.sha256();
            state = State.DONE;
        }
        save();
    }

    private void fail(Throwable thrown) {
        state = State.FAILED;
        failure = String.valueOf(thrown.getMessage() == null ? thrown : thrown.getMessage());
        save();
    }

    private void save() {
        try {
            write(directory, status());
        } catch (IOException e) { // the file has the state of before, from which the job can continue
            failure = e.toString();
        }
    }

    /** Stops after the current step, with a checkpoint; {@link #start} continues with bit-identical results. */
    void stop() {
        Optional<FederationRun> mine;
        synchronized (this) {
            mine = run;
        }
        mine.ifPresent(FederationRun::close);
    }

    synchronized Status status() {
        return new Status(id, spec, state, step, loss, sha256, failure);
    }

    private void release() {
        meters.ifPresent(FederationMeters::close);
        meters = Optional.empty();
    }

    @Override
    public void close() {
        synchronized (this) {
            closing = true;
        }
        stop();
        synchronized (this) {
            release();
        }
    }
}
