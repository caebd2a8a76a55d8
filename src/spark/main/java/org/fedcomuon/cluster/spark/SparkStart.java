package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkException;
import org.apache.spark.api.java.JavaSparkContext;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.experiment.ConfigurationException;

/**
 * Starts Spark's context within a time limit. Its constructor waits for a master for a minute, whatever is wrong, and
 * fails elsewhere when there is none.
 *
 * @param limit from the first attempt to reach a master
 * @param notes receives a line when the master has to be waited for
 */
record SparkStart(
        SparkConf settings,
        Duration limit,
        SparkLog log,
        DriverErrors errors,
        BooleanSupplier stopping,
        Consumer<String> notes) {
    private static final Pattern STANDALONE = Pattern.compile("spark://(.+)");
    private static final int LAST_PORT = 65_535;
    private static final long TURN = 200; // milliseconds
    private static final int LONGEST_CONNECT = 5_000; // milliseconds
    private static final long LONGEST_CLOSE = 10; // seconds

    /**
     * Returns a context that a master has accepted.
     *
     * @throws ConfigurationException when a setting is wrong
     * @throws MemberFailedException when no master can be reached, or none accepts the application
     */
    JavaSparkContext start() throws InterruptedException {
        requireWorkDirectory();
        long start = System.nanoTime();
        awaitMaster(start);
        var context = new CompletableFuture<JavaSparkContext>();
        Thread.ofPlatform().daemon().name("spark-start").start(() -> {
            try {
                context.complete(new JavaSparkContext(settings));
            } catch (Throwable e) { // thrown by get
                context.completeExceptionally(e);
            }
        });
        while (true) {
            try {
                JavaSparkContext started = context.get(TURN, TimeUnit.MILLISECONDS);
                requireAccepted(); // a master that does not is found out after the constructor, too
                return started;
            } catch (TimeoutException e) {
                requireAccepted();
                errors.check();
                requireNotStopping();
                if (isLate(start)) {
                    throw new MemberFailedException(
                            "%s does not accept this application within %d s (--cluster-timeout)%s; is it a master of Spark %s?"
                                    .formatted(
                                            master(),
                                            limit.toSeconds(),
                                            log.warning()
                                                    .map(words -> "; Spark says: " + words)
                                                    .orElse(""),
                                            org.apache.spark.package$.MODULE$.SPARK_VERSION()));
                }
            } catch (ExecutionException e) {
                requireAccepted();
                throw refused(e.getCause());
            }
        }
    }

    /** A worker in this process, as local-cluster has them, ends it without a word if it cannot write. */
    private void requireWorkDirectory() {
        if (!master().startsWith("local-cluster")) {
            return;
        }
        Path work = Path.of(Optional.ofNullable(System.getenv("SPARK_HOME")).orElse("."), "work");
        try {
            Files.createDirectories(work);
        } catch (IOException e) {
            // Then it is not writable, either.
        }
        if (!Files.isWritable(work)) {
            throw new ConfigurationException(
                    "--cluster %s: executors on this machine work in %s, which cannot be written to; set SPARK_HOME to where you may write"
                            .formatted(master(), work));
        }
    }

    private String master() {
        return settings.get("spark.master");
    }

    private boolean isLate(long start) {
        return System.nanoTime() - start > limit.toNanos();
    }

    private void requireNotStopping() {
        if (stopping.getAsBoolean()) {
            throw new MemberFailedException("stopped before the run began");
        }
    }

    private void requireAccepted() {
        if (log.refusal().isPresent()) {
            throw new ConfigurationException(
                    ("%s and this process do not have the same secret (Spark says: %s); give all of them the same"
                                    + " spark.authenticate and spark.authenticate.secret, here in FEDCOMUON_JAVA_OPTS")
                            .formatted(master(), log.refusal().get()));
        }
    }

    private RuntimeException refused(Throwable cause) {
        if (cause instanceof IllegalArgumentException || cause instanceof BindException || isSetting(cause)) {
            return new ConfigurationException(
                    "--cluster %s: Spark refuses a setting: %s%s"
                            .formatted(master(), words(cause), SparkSettings.given()),
                    cause);
        }
        return errors.explained(cause);
    }

    private static boolean isSetting(Throwable cause) {
        return cause instanceof SparkException
                && (words(cause).contains("master URL") || words(cause).contains("number of cpus per task"));
    }

    private static String words(Throwable cause) {
        return String.valueOf(cause.getMessage()).lines().findFirst().orElse("");
    }

    /** Waits until somebody listens where a standalone master should be. */
    private void awaitMaster(long start) throws InterruptedException {
        Matcher standalone = STANDALONE.matcher(master());
        if (!standalone.matches()) {
            return;
        }
        List<URI> masters = masters(standalone.group(1));
        boolean noted = false;
        while (true) {
            List<String> obstacles = new ArrayList<>();
            for (URI each : masters) {
                String obstacle = obstacle(each);
                if (obstacle.isEmpty()) {
                    return;
                }
                obstacles.add("%s:%d: %s".formatted(each.getHost(), each.getPort(), obstacle));
            }
            String all = String.join(", ", obstacles);
            if (isLate(start)) {
                throw new MemberFailedException(
                        "no master answers at %s within %d s (--cluster-timeout): %s; is it running there, and is no firewall between?"
                                .formatted(master(), limit.toSeconds(), all));
            }
            requireNotStopping();
            if (!noted) {
                noted = true;
                notes.accept("waiting for a master at %s".formatted(all));
            }
            Thread.sleep(TURN);
        }
    }

    private List<URI> masters(String addresses) {
        var masters = new ArrayList<URI>();
        for (String address : addresses.split(",", -1)) {
            URI uri;
            try {
                uri = URI.create("spark://" + address);
            } catch (IllegalArgumentException e) {
                throw noAddress(address, e);
            }
            if (uri.getHost() == null || uri.getPort() < 0 || uri.getPort() > LAST_PORT) {
                throw noAddress(address, null);
            }
            masters.add(uri);
        }
        return masters;
    }

    private ConfigurationException noAddress(String address, Exception cause) {
        return new ConfigurationException(
                "--cluster %s: %s is no HOST:PORT of a master".formatted(master(), address), cause);
    }

    /** Returns why a master cannot be reached; empty if it can. */
    private String obstacle(URI master) {
        try (var socket = new Socket()) {
            var address = new InetSocketAddress(master.getHost(), master.getPort());
            if (address.isUnresolved()) {
                return "no such host";
            }
            socket.connect(address, Math.clamp(limit.toMillis(), 1, LONGEST_CONNECT));
            return "";
        } catch (IOException e) {
            return String.valueOf(e.getMessage());
        }
    }

    /** Closes the context of a run that has failed; Spark may never be done with it. */
    static void abandon(JavaSparkContext spark) throws InterruptedException {
        Thread closing = Thread.ofPlatform().daemon().name("spark-end").start(spark::close);
        closing.join(Duration.ofSeconds(LONGEST_CLOSE));
    }
}
