package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.util.ShutdownHookManager;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.experiment.TrainingEngine;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.federation.Listener;
import scala.runtime.BoxedUnit;

/**
 * Training in the executors of Apache Spark; this process, the driver, has no clients. One run at a time: make another
 * for another.
 */
public final class SparkTraining implements TrainingEngine {
    /**
     * Spark would end its context when the JVM is asked to end; a run that is to stop has a checkpoint to write first.
     */
    private static final int BEFORE_SPARK = 1000;

    private final CountDownLatch done = new CountDownLatch(1);
    private volatile boolean stopping;
    private volatile boolean ending; // executors that go now are not lost

    @Override
    public boolean isMeantBy(String cluster) {
        return cluster.equals(SparkSettings.SUBMITTED)
                || cluster.startsWith("spark://")
                || cluster.startsWith("local-cluster[");
    }

    @Override
    public String names() {
        return "spark://HOST:PORT, local-cluster[N,CORES,MB], %s under spark-submit".formatted(SparkSettings.SUBMITTED);
    }

    @Override
    public void stop() {
        stopping = true;
    }

    @Override
    public void run(Job job, Listener listener, Consumer<String> notes) throws IOException, InterruptedException {
        SparkConf settings =
                SparkSettings.of(job.cluster(), String.valueOf(job.directory().getFileName()));
        try (var spark = new JavaSparkContext(settings)) {
            ShutdownHookManager.addShutdownHook(BEFORE_SPARK, this::awaitEnd);
            spark.sc().addSparkListener(new SparkListener() {
                @Override
                public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
                    if (!ending) {
                        notes.accept(
                                "executor %s is lost: %s".formatted(removed.executorId(), firstLine(removed.reason())));
                    }
                }
            });
            try {
                run(job, spark, listener, notes);
            } finally {
                ending = true;
                done.countDown();
            }
        } catch (RuntimeException | IOException | InterruptedException e) {
            throw e;
        } catch (Exception e) { // Scala does not declare what it throws
            throw explained(e);
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

    private void run(Job job, JavaSparkContext spark, Listener listener, Consumer<String> notes)
            throws IOException, InterruptedException {
        SparkExecutors executors = SparkExecutors.await(spark);
        int clients = Integer.parseInt(
                Training.configurationOf(job.directory(), Map.of()).text("clients"));
        int members = Math.min(executors.count(), clients);
        TrainingProgram training = TrainingProgram.of(job, job.threads().orElse(executors.cores()));
        notes.accept("%d members on %s, %d threads each".formatted(members, spark.master(), training.threads()));
        JavaRDD<Integer> places = Meetings.places(spark, members);
        requireHosts(places, training);
        Order order = Order.of(members, training);
        Start start = new Start(job.resume().map(CheckpointStore::step).orElse(0L), 0);
        try (var meetings = new Meetings(spark, places, order, start, listener, notes)) {
            meetings.run(() -> stopping);
        } catch (MemberFailedException | ConfigurationException e) {
            places.foreachPartition(new End(order, String.valueOf(e.getMessage())));
            throw e;
        }
    }

    /** What a host lacks is said before anything begins, of all hosts at once. */
    private static void requireHosts(JavaRDD<Integer> places, TrainingProgram training) throws IOException {
        Path token = Files.createTempFile(training.path(), ".driver", ".check");
        try {
            List<String> missing =
                    places
                            .mapPartitions(new CheckHost(training, String.valueOf(token.getFileName())))
                            .collect()
                            .stream()
                            .distinct()
                            .toList();
            if (!missing.isEmpty()) {
                throw new ConfigurationException(String.join("; ", missing));
            }
        } finally {
            Files.deleteIfExists(token);
        }
    }

    /** Spark's messages are pages long; what goes wrong with members that never ran is one of a few things. */
    private static RuntimeException explained(Exception e) {
        String all = String.valueOf(e.getMessage());
        if (all.contains("UnsupportedClassVersionError")) {
            return new ConfigurationException(
                    "the executors' Java is too old; name a JDK >= 25.0.3 of theirs in spark.executorEnv.JAVA_HOME", e);
        }
        if (all.contains("ClassNotFoundException: org.fedcomuon")) {
            return new ConfigurationException(
                    "the executors do not see %s; use a path that all hosts share, or ship the jar by spark-submit"
                            .formatted(SparkSettings.classPath()),
                    e);
        }
        return new MemberFailedException("Spark gave up: " + firstLine(all));
    }

    private static String firstLine(String text) {
        return text.lines().findFirst().orElse("");
    }
}
