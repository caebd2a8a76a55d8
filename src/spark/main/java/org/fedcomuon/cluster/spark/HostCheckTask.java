package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;

/**
 * The Spark task that checks whether a member can run on its host: it returns one line for each problem.
 *
 * @param token a file that the driver has made in the directory of the run
 * @param driver the host of the driver
 * @param port the port at which members reach it
 */
record HostCheckTask(TrainingProgram training, String token, String driver, int port)
        implements FlatMapFunction<Iterator<Integer>, String> {
    private static final int PATIENCE = 20_000; // milliseconds
    private static final Runtime.Version OLDEST = Runtime.Version.parse("25.0.3");

    @Override
    public Iterator<String> call(Iterator<Integer> partition) {
        String host = SparkEnv.get().blockManager().blockManagerId().host();
        var missing = new ArrayList<String>();
        if (Runtime.version().compareTo(OLDEST) < 0) {
            missing.add("%s: the Java version is %s, and %s is needed; name it in spark.executorEnv.JAVA_HOME"
                    .formatted(host, Runtime.version(), OLDEST));
        }
        try (var socket = new Socket()) {
            socket.connect(new InetSocketAddress(driver, port), PATIENCE);
        } catch (IOException e) {
            missing.add("%s: port %d of the driver, %s, cannot be reached: %s; open one and name it in %s"
                    .formatted(host, port, driver, e.getMessage(), SparkSettings.PORT));
        }
        Path directory = training.path();
        if (!Files.exists(directory.resolve(token))) {
            missing.add(
                    "%s: %s is not the directory that the driver has; --out must be a directory that all hosts share"
                            .formatted(host, directory));
        } else {
            try {
                Files.delete(Files.createTempFile(directory, ".member", ".check"));
            } catch (IOException e) {
                missing.add("%s: nothing can be written to %s: %s".formatted(host, directory, e));
            }
        }
        if (!training.dataDirectory().isEmpty() && !Files.isDirectory(Path.of(training.dataDirectory()))) {
            missing.add(
                    "%s: there is no directory %s, which --data-dir names".formatted(host, training.dataDirectory()));
        }
        for (String device : training.devices()) {
            try {
                Devices.open(device).close();
            } catch (DeviceException | LinkageError e) {
                missing.add("%s: device %s cannot be used: %s".formatted(host, device, e.getMessage()));
            }
        }
        return missing.iterator();
    }
}
