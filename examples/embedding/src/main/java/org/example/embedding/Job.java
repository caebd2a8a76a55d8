package org.example.embedding;

import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.FederationRun;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.observe.FederationMeters;
import tools.jackson.databind.json.JsonMapper;

/**
 * A training job with its directory, which holds its specification, its status and its checkpoints. After a restart or a
 * crash, {@link #open} continues from the last checkpoint.
 */
final class Job implements AutoCloseable {
    private static final JsonMapper JSON = JsonMapper.shared();
    private static final int ROUNDS_BETWEEN_CHECKPOINTS = 50;

    enum State {
        RUNNING,
        STOPPED,
        DONE,
        FAILED
    }

    /** The status on disk and in responses. */
    record Status(String id, JobSpec spec, State state, long step, double loss, String sha256, String failure) {}

    private final Path directory;
    private final MeterRegistry registry;
    private final String id;
    private final JobSpec spec;
    private State state;
    private volatile long step;
    private volatile double loss;
    private String sha256;
    private String failure;
    private FederationRun run; // while RUNNING
    private FederationMeters meters;
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

    static Job create(Path directory, MeterRegistry registry, String id, JobSpec spec) throws IOException {
        Files.createDirectories(directory);
        var job = new Job(directory, registry, new Status(id, spec, State.STOPPED, 0, 0, "", ""));
        job.start();
        return job;
    }

    /** Opens the job of an earlier process; if it was running, it is started again. */
    static Job open(Path directory, MeterRegistry registry) throws IOException {
        Status last = JSON.readValue(Files.readString(directory.resolve("job.json")), Status.class);
        var job = new Job(directory, registry, last);
        if (last.state() == State.RUNNING) {
            job.start();
        }
        return job;
    }

    /** Starts or resumes the job. Does nothing if it is running or done. */
    synchronized void start() throws IOException {
        if (state == State.RUNNING && run != null || state == State.DONE) {
            return;
        }
        release();
        Path checkpoints = directory.resolve("checkpoints");
        meters = new FederationMeters(registry);
        Federation.Builder builder = Demand.run(spec.shops())
                .name(id)
                .iterations(spec.iterations())
                .tau(spec.tau())
                .seed(spec.seed())
                .checkpoints(checkpoints, ROUNDS_BETWEEN_CHECKPOINTS)
                .listener(meters)
                .listener(new Listener() {
                    @Override
                    public void onRound(Round round) {
                        step = round.step();
                        loss = round.meanLoss();
                    }
                });
        if (new CheckpointStore(checkpoints).newest().isPresent()) {
            builder.resume(checkpoints);
        }
        state = State.RUNNING;
        failure = "";
        save();
        run = builder.build().start();
        run.result().whenComplete(this::ended);
    }

    private synchronized void ended(Result result, Throwable thrown) {
        if (thrown != null) {
            state = State.FAILED;
            failure = String.valueOf(thrown.getMessage());
        } else if (result.stopped()) {
            step = result.step();
            state = closing ? State.RUNNING : State.STOPPED; // a running job continues when the service starts again
        } else {
            step = result.step();
            sha256 = result.sha256();
            state = State.DONE;
        }
        try {
            save();
        } catch (IOException e) {
            failure = e.toString();
        }
    }

    /** Stops after the current step, with a checkpoint; {@link #start} continues with bit-identical results. */
    void stop() {
        FederationRun mine;
        synchronized (this) {
            mine = run;
        }
        if (mine != null) {
            mine.close();
        }
    }

    synchronized Status status() {
        return new Status(id, spec, state, step, loss, sha256, failure);
    }

    private void save() throws IOException {
        Path fresh = directory.resolve("job.json.new");
        Files.writeString(fresh, JSON.writeValueAsString(status()));
        Files.move(fresh, directory.resolve("job.json"), StandardCopyOption.ATOMIC_MOVE);
    }

    private void release() {
        if (meters != null) {
            meters.close();
        }
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
