package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.util.ShutdownHookManager;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.federation.RunLock;
import scala.runtime.BoxedUnit;

/**
 * Training in the executors of Apache Spark; this process, the driver, has no clients.
 *
 * <p>A run that cannot go on ends with one exception, which names the checkpoint to resume from, within the time limit
 * of the job.
 */
public final class SparkTraining implements TrainingEngine {
    /**
     * The priority of our shutdown hook: Spark's own would end its context before a run has written its last
     * checkpoint.
     */
    private static final int BEFORE_SPARK = 1000;

    private final CountDownLatch done = new CountDownLatch(1);
    private volatile boolean stopping;

    @Override
    public boolean isMeantBy(String cluster) {
        return SparkSettings.areMeantBy(cluster);
    }

    @Override
    public String names() {
        return SparkSettings.NAMES;
    }

    @Override
    public void stop() {
        stopping = true;
    }

    @Override
    public void run(Job job, Supplier<View> view, Consumer<MemberFailedException> abandon)
            throws IOException, InterruptedException {
        View shown = view.get();
        Path directory = shown.directory().toAbsolutePath().normalize();
        SparkConf settings = SparkSettings.of(job.cluster(), String.valueOf(directory.getFileName()));
        try (var errors = new DriverErrors(job.cluster().equals(SparkSettings.SUBMITTED));
                var log = SparkLog.open(errors::report)) {
            errors.onUncaught(log::add);
            try {
                run(job, directory, settings, shown, errors, log);
            } catch (ConfigurationException | InterruptedException e) {
                errors.fail();
                throw e;
            } catch (IOException e) {
                errors.fail();
                log.keep(directory);
                throw e;
            } catch (Throwable e) { // Scala does not declare checked exceptions
                RuntimeException explained = errors.explained(e);
                errors.fail();
                log.keep(directory);
                throw explained instanceof MemberFailedException failed ? resumable(failed, directory) : explained;
            }
        }
    }

    /** Returns a failure with the command that continues the run. */
    private static MemberFailedException resumable(MemberFailedException failure, Path directory) {
        return SparkFailures.failed("%s; %s".formatted(failure.getMessage(), Training.afterwards(directory)), failure);
    }

    private void run(Job job, Path directory, SparkConf settings, View shown, DriverErrors errors, SparkLog log)
            throws IOException, InterruptedException {
        JavaSparkContext spark =
                new SparkStart(settings, job.timeout(), log, errors, () -> stopping, shown.notes()).start();
        boolean isClosed = false;
        try {
            ShutdownHookManager.addShutdownHook(BEFORE_SPARK, this::awaitEnd);
            var losses = new Losses(shown.notes());
            Runnable check = () -> {
                errors.check();
                if (spark.sc().isStopped()) {
                    throw new MemberFailedException(losses.explain(ExchangeLoop.ENDED));
                }
            };
            try (var executors = new SparkExecutors(spark, losses, log, shown.notes())) {
                run(
                        job,
                        directory,
                        spark,
                        executors,
                        shown,
                        new ExchangeLoop.Health(losses, errors::report, check, job.timeout()));
            } finally {
                done.countDown();
            }
            spark.close();
            isClosed = true;
        } finally {
            if (!isClosed) {
                SparkStart.abandon(spark);
            }
        }
    }

    private BoxedUnit awaitEnd() {
        try {
            done.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return BoxedUnit.UNIT;
    }

    private void run(
            Job job,
            Path directory,
            JavaSparkContext spark,
            SparkExecutors executors,
            View shown,
            ExchangeLoop.Health health)
            throws IOException, InterruptedException {
        executors.await(health.limit(), () -> {
            health.check().run();
            if (stopping) {
                throw new MemberFailedException("stopped before the run began");
            }
        });
        // How many clients a column has, members find out; more members than clients are refused by all of them.
        int members = Math.min(executors.count(), job.configuration().clients().orElse(executors.count()));
        TrainingProgram training =
                TrainingProgram.of(job, directory, job.threads().orElse(executors.cores()));
        shown.notes()
                .accept("%d members on %s, %d threads each".formatted(members, spark.master(), training.threads()));
        shown.notes()
                .accept(
                        ("heaps: %d MiB of the driver, %s of each executor; outside of them the driver needs about 300 MiB,"
                                        + " and an executor 200 MiB and what its clients take")
                                .formatted(
                                        Runtime.getRuntime().maxMemory() >> 20,
                                        SparkSettings.executorMemory(spark.getConf())));
        RunSpec run = RunSpec.of(SparkSettings.tree(spark.getConf(), members), training);
        Optional<Path> checkpoint = job.resumes() ? Training.lastCheckpoint(directory) : Optional.empty();
        StartPoint start = new StartPoint(checkpoint.map(CheckpointStore::step).orElse(0L), 0);
        Training.prepare(job.configuration(), directory);
        try (var exchanges =
                new ExchangeLoop(spark, executors, run, start, directory, shown.listeners(), shown.notes(), health)) {
            HostCheckTask.requireHosts(
                    spark,
                    members,
                    directory,
                    training.dataDirectory(),
                    training.devices(),
                    exchanges.port(),
                    exchanges::requirePossible);
            exchanges.run(() -> {
                shown.lock().ifPresent(RunLock::requireHeld); // before members go on to write
                return stopping;
            });
        } catch (ConfigurationException e) {
            if (!job.resumes()) { // only a member can determine whether it can start
                Training.discard(directory);
            }
            throw e;
        }
    }
}
