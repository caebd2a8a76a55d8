package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.IntStream;
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
import scala.runtime.BoxedUnit;

/** Training in the executors of Apache Spark; this process, the driver, has no clients. */
public final class SparkTraining implements TrainingEngine {
    /**
     * The priority of our shutdown hook: Spark's own would end its context before a run has written its last
     * checkpoint.
     */
    private static final int BEFORE_SPARK = 1000;

    private final CountDownLatch done = new CountDownLatch(1);
    private volatile boolean stopping;
    private volatile boolean ending; // executors that end from now on are not reported as lost

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
    public void run(Job job, Supplier<View> view, Consumer<MemberFailedException> abandon)
            throws IOException, InterruptedException {
        View shown = view.get();
        Path directory = shown.directory().toAbsolutePath().normalize();
        SparkConf settings = SparkSettings.of(job.cluster(), String.valueOf(directory.getFileName()));
        try (var spark = new JavaSparkContext(settings)) {
            ShutdownHookManager.addShutdownHook(BEFORE_SPARK, this::awaitEnd);
            spark.sc().addSparkListener(new SparkListener() {
                @Override
                public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
                    if (!ending) {
                        shown.notes()
                                .accept("executor %s is lost: %s"
                                        .formatted(removed.executorId(), firstLine(removed.reason())));
                    }
                }
            });
            try {
                run(job, directory, spark, shown);
            } finally {
                ending = true;
                done.countDown();
            }
        } catch (RuntimeException | IOException | InterruptedException e) {
            throw e;
        } catch (Exception e) { // Scala does not declare checked exceptions
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

    private void run(Job job, Path directory, JavaSparkContext spark, View shown)
            throws IOException, InterruptedException {
        SparkExecutors executors = SparkExecutors.await(spark);
        // How many clients a column has, members find out; more members than clients are refused by all of them.
        int members = Math.min(executors.count(), job.configuration().clients().orElse(executors.count()));
        TrainingProgram training =
                TrainingProgram.of(job, directory, job.threads().orElse(executors.cores()));
        shown.notes()
                .accept("%d members on %s, %d threads each".formatted(members, spark.master(), training.threads()));
        RunSpec run = RunSpec.of(SparkSettings.tree(spark.getConf(), members), training);
        Optional<Path> checkpoint = job.resumes() ? Training.lastCheckpoint(directory) : Optional.empty();
        StartPoint start = new StartPoint(checkpoint.map(CheckpointStore::step).orElse(0L), 0);
        boolean isNew = !Files.exists(directory);
        Training.prepare(job.configuration(), directory);
        try (var exchanges =
                new ExchangeLoop(spark, executors, run, start, directory, shown.listeners(), shown.notes())) {
            requireHosts(spark, members, training, exchanges.port());
            exchanges.run(() -> stopping);
        } catch (ConfigurationException e) {
            if (isNew) { // only a member can determine whether it can start
                Training.discard(directory);
            }
            throw e;
        }
    }

    /** Reports the problems of all hosts before the run starts. */
    private static void requireHosts(JavaSparkContext spark, int members, TrainingProgram training, int port)
            throws IOException {
        JavaRDD<Integer> partitions =
                spark.parallelize(IntStream.range(0, members).boxed().toList(), members);
        Path token = Files.createTempFile(training.path(), ".driver", ".check");
        try {
            List<String> missing = partitions
                    .mapPartitions(new HostCheckTask(
                            training,
                            String.valueOf(token.getFileName()),
                            spark.getConf().get("spark.driver.host"),
                            port))
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

    /** Explains known reasons why members do not start in one line; Spark's messages are pages long. */
    static RuntimeException explained(Exception e) {
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
        return new MemberFailedException("Spark failed: " + firstLine(all));
    }

    private static String firstLine(String text) {
        return text.lines().findFirst().orElse("");
    }
}
