package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkExecutorInfo;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.util.ShutdownHookManager;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.sweep.TrialCluster;
import scala.runtime.BoxedUnit;

/** A context of Spark in which trials run. Thread-safe, but for {@link #close}. */
final class SparkTrialSession implements TrialCluster.Session {
    /** Spark's own hook would end its context before trials have written their last checkpoints. */
    private static final int BEFORE_SPARK = 1000;

    /** How long the step and the checkpoint may take with which a trial ends. */
    private static final long END_SECONDS = 130;

    private static final long TURN = 100; // milliseconds

    private final TrialCluster.Job job;
    private final DriverErrors errors;
    private final SparkLog log;
    private final JavaSparkContext spark;
    private final Losses losses;
    private final SparkExecutors executors;
    private final CountDownLatch done = new CountDownLatch(1);
    private long lastSeen = System.nanoTime(); // any executor

    private SparkTrialSession(
            TrialCluster.Job job, DriverErrors errors, SparkLog log, JavaSparkContext spark, Losses losses) {
        this.job = job;
        this.errors = errors;
        this.log = log;
        this.spark = spark;
        this.losses = losses;
        executors = new SparkExecutors(spark, losses, log, job.notes());
    }

    static SparkTrialSession start(TrialCluster.Job job, SparkConf settings, BooleanSupplier stopping)
            throws IOException, InterruptedException {
        var errors = new DriverErrors(job.cluster().equals(SparkSettings.SUBMITTED));
        SparkLog log = SparkLog.open(errors::report);
        errors.onUncaught(log::add);
        try {
            JavaSparkContext spark =
                    new SparkStart(settings, job.timeout(), log, errors, stopping, job.notes()).start();
            var session = new SparkTrialSession(job, errors, log, spark, new Losses(job.notes()));
            try {
                session.begin(stopping);
                return session;
            } catch (Throwable e) { // Scala does not declare checked exceptions
                session.done.countDown();
                session.executors.close();
                SparkStart.abandon(spark);
                throw e;
            }
        } catch (ConfigurationException | InterruptedException e) {
            end(errors, log);
            throw e;
        } catch (Throwable e) {
            RuntimeException explained = errors.explained(e);
            log.keep(job.directory());
            end(errors, log);
            throw explained;
        }
    }

    private static void end(DriverErrors errors, SparkLog log) {
        errors.fail();
        log.close();
        errors.close();
    }

    private void begin(BooleanSupplier stopping) throws IOException, InterruptedException {
        ShutdownHookManager.addShutdownHook(BEFORE_SPARK, this::awaitEnd);
        Runnable check = () -> {
            requirePossible();
            if (stopping.getAsBoolean()) {
                throw new MemberFailedException("stopped before the first trial began");
            }
        };
        executors.await(job.timeout(), check);
        if (perExecutor() == 0) {
            throw new ConfigurationException(
                    "--threads %d: the executors have %d cores".formatted(job.threads(), executors.cores()));
        }
        HostCheckTask.requireHosts(
                spark,
                executors.count(),
                job.directory(),
                job.dataDirectory()
                        .map(data -> data.toAbsolutePath().toString())
                        .orElse(""),
                job.devices(),
                0,
                check);
        job.notes()
                .accept("%d executors of %s, %d trials at a time"
                        .formatted(executors.count(), spark.master(), slots()));
    }

    private BoxedUnit awaitEnd() {
        try {
            done.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return BoxedUnit.UNIT;
    }

    private int perExecutor() {
        return executors.cores() / job.threads();
    }

    @Override
    public int slots() {
        int room = Math.max(1, executors.count() * perExecutor());
        return job.parallel().isPresent() ? Math.min(room, job.parallel().getAsInt()) : room;
    }

    @Override
    public TrialCluster.Slot open(int number, int atATime) {
        return new SparkTrialSlot(
                spark,
                new TrialTask(new ArrayList<>(job.arguments(number).toList()), perExecutor()),
                this::requirePossible);
    }

    /**
     * Returns if trials can go on.
     *
     * @throws MemberFailedException otherwise
     */
    private synchronized void requirePossible() {
        errors.check();
        if (spark.sc().isStopped()) {
            throw new MemberFailedException(losses.explain(ExchangeLoop.ENDED));
        }
        long now = System.nanoTime();
        if (executors.count() > 0) {
            lastSeen = now;
        } else if (now - lastSeen > job.timeout().toNanos()) {
            throw new MemberFailedException(losses.explain("there has been no executor for %d s (--cluster-timeout)"
                    .formatted(job.timeout().toSeconds())));
        }
    }

    /** Trials that were stopped end with a checkpoint, for which the context has to be there. */
    private void awaitTrials() {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(END_SECONDS);
        try {
            while (!spark.sc().isStopped()
                    && Arrays.stream(spark.statusTracker().getExecutorInfos())
                                    .mapToInt(SparkExecutorInfo::numRunningTasks)
                                    .sum()
                            > 0
                    && System.nanoTime() < deadline) {
                Thread.sleep(TURN);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        try {
            awaitTrials();
            executors.close();
        } finally {
            done.countDown();
            try {
                SparkStart.abandon(spark);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            log.close();
            errors.close();
        }
    }
}
