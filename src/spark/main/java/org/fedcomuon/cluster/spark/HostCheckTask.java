package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaFutureAction;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.experiment.ConfigurationException;

/**
 * The Spark task that checks whether a host can run what it is to: it returns one line for each problem.
 *
 * @param directory that all hosts share
 * @param token a file that the driver has made there
 * @param dataDirectory the directory of the user's data; empty for none
 * @param driver the host of the driver
 * @param port the port at which members of a run reach it; 0 if they need not
 */
record HostCheckTask(
        String directory, String token, String dataDirectory, ArrayList<String> devices, String driver, int port)
        implements FlatMapFunction<Iterator<Integer>, String> {
    private static final int PATIENCE = 20_000; // milliseconds
    private static final long TURN = 200; // milliseconds
    private static final Runtime.Version OLDEST = Runtime.Version.parse("25.0.3");

    @Override
    public Iterator<String> call(Iterator<Integer> partition) {
        String host = SparkEnv.get().blockManager().blockManagerId().host();
        var missing = new ArrayList<String>();
        if (Runtime.version().compareTo(OLDEST) < 0) {
            missing.add("%s: the Java version is %s, and %s is needed; name it in spark.executorEnv.JAVA_HOME"
                    .formatted(host, Runtime.version(), OLDEST));
        }
        if (port != 0) {
            try (var socket = new Socket()) {
                socket.connect(new InetSocketAddress(driver, port), PATIENCE);
            } catch (IOException e) {
                missing.add("%s: port %d of the driver, %s, cannot be reached: %s; open one and name it in %s"
                        .formatted(host, port, driver, e.getMessage(), SparkSettings.PORT));
            }
        }
        Path shared = Path.of(directory);
        if (!Files.exists(shared.resolve(token))) {
            missing.add(
                    "%s: %s is not the directory that the driver has; --out must be a directory that all hosts share"
                            .formatted(host, directory));
        } else {
            try {
                Files.delete(Files.createTempFile(shared, ".member", ".check"));
            } catch (IOException e) {
                missing.add("%s: nothing can be written to %s: %s".formatted(host, directory, e));
            }
        }
        if (!dataDirectory.isEmpty() && !Files.isDirectory(Path.of(dataDirectory))) {
            missing.add("%s: there is no directory %s, which --data-dir names".formatted(host, dataDirectory));
        }
        for (String device : devices) {
            try {
                Devices.open(device).close();
            } catch (DeviceException | LinkageError e) {
                missing.add("%s: device %s cannot be used: %s".formatted(host, device, e.getMessage()));
            }
        }
        return missing.iterator();
    }

    /**
     * Reports the problems of all hosts.
     *
     * @param tasks how many are run at a time, one on each host where Spark spreads them
     * @param check called while they are awaited; throws when there is nothing to wait for any more
     * @throws ConfigurationException with all that is missing
     */
    static void requireHosts(
            JavaSparkContext spark,
            int tasks,
            Path directory,
            String dataDirectory,
            List<String> devices,
            int port,
            Runnable check)
            throws IOException, InterruptedException {
        Path token = Files.createTempFile(directory, ".driver", ".check");
        try {
            JavaFutureAction<List<String>> checks = spark.parallelize(
                            IntStream.range(0, tasks).boxed().toList(), tasks)
                    .mapPartitions(new HostCheckTask(
                            directory.toString(),
                            String.valueOf(token.getFileName()),
                            dataDirectory,
                            new ArrayList<>(devices),
                            spark.getConf().get("spark.driver.host"),
                            port))
                    .collectAsync();
            List<String> missing = await(checks, check).stream().distinct().toList();
            if (!missing.isEmpty()) {
                throw new ConfigurationException(String.join("; ", missing));
            }
        } finally {
            Files.deleteIfExists(token);
        }
    }

    private static List<String> await(JavaFutureAction<List<String>> checks, Runnable check)
            throws InterruptedException {
        while (true) {
            try {
                return checks.get(TURN, TimeUnit.MILLISECONDS);
            } catch (TimeoutException e) {
                check.run();
            } catch (ExecutionException e) {
                throw SparkFailures.explained(e.getCause());
            }
        }
    }
}
