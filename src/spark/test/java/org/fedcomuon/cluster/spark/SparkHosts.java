package org.fedcomuon.cluster.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.testing.Repository;
import org.fedcomuon.testing.TestHosts;
import org.fedcomuon.testing.TrainProcess;

/** A master of Spark, workers and a driver, each on a host of its own; nothing says to them where they are. */
final class SparkHosts implements AutoCloseable {
    static final String DRIVER = "driver";
    static final String MASTER = "master";
    static final List<String> WORKERS = List.of("worker-1", "worker-2");

    private static final String URL = "spark://master:7077";

    /** Where workers start executors. */
    static final Path WORK = Path.of("/tmp/work");

    private final TestHosts hosts;
    private final Path directory;
    private final Path home;
    private final Map<String, Process> servers = new HashMap<>();

    private SparkHosts(TestHosts hosts, Path directory) throws IOException {
        this.hosts = hosts;
        this.directory = directory;
        home = SparkServers.home(directory);
    }

    /** The hosts that a master, workers and a driver are started on, with one directory for all. */
    static TestHosts hosts(Path directory, Path shared) throws Exception {
        return TestHosts.start(
                directory,
                List.of(shared),
                Stream.concat(Stream.of(DRIVER, MASTER), WORKERS.stream()).toArray(String[]::new));
    }

    /**
     * Starts master and workers.
     *
     * @param directory that all hosts share
     * @param settings of Spark, as options of the JVM
     */
    static SparkHosts start(TestHosts hosts, Path directory, List<String> settings) throws Exception {
        var spark = new SparkHosts(hosts, directory);
        try {
            spark.startServer(
                    MASTER, settings, "org.apache.spark.deploy.master.Master", "--host", MASTER, "--port", "7077");
            spark.await(MASTER, "I have been elected leader");
            for (String worker : WORKERS) {
                spark.startServer(
                        worker,
                        settings,
                        "org.apache.spark.deploy.worker.Worker",
                        "--cores",
                        "1",
                        "--memory",
                        "1g",
                        "--work-dir",
                        WORK.toString(),
                        URL);
            }
            for (String worker : WORKERS) {
                spark.await(worker, "Successfully registered with master");
            }
            return spark;
        } catch (Exception | Error e) {
            spark.close();
            throw e;
        }
    }

    private void startServer(String host, List<String> settings, String program, String... arguments)
            throws IOException {
        var command = new ArrayList<>(List.of(SparkServers.java().toString(), "-cp", home.resolve("jars") + "/*"));
        command.addAll(settings);
        command.add(program);
        command.addAll(List.of("--webui-port", "0"));
        command.addAll(List.of(arguments));
        servers.put(host, hosts.host(host).start(directory.resolve(host), environment(), command));
    }

    private Map<String, String> environment() {
        return Map.of("SPARK_HOME", home.toString(), "SPARK_SCALA_VERSION", "2.13");
    }

    /**
     * Starts {@code ./fedcomuon train --cluster} on the driver's host.
     *
     * @param settings of Spark, as options of the JVM
     */
    Process train(Path log, List<String> settings, List<String> arguments) throws IOException {
        var command =
                new ArrayList<>(List.of(Repository.root().resolve("fedcomuon").toString(), "train"));
        command.addAll(arguments);
        command.addAll(List.of("--cluster", URL));
        var environment = new HashMap<>(environment());
        environment.put("FEDCOMUON_JAVA_OPTS", String.join(" ", settings));
        return hosts.host(DRIVER).start(log, environment, command);
    }

    /** The JVM of the driver, or of a server. */
    static ProcessHandle program(Process process) {
        return process.children().findFirst().orElseThrow();
    }

    ProcessHandle server(String host) {
        return program(servers.get(host));
    }

    /** The executors on a worker's host. */
    List<ProcessHandle> executors(String worker) {
        return server(worker)
                .children()
                .filter(each -> each.info().command().orElse("").endsWith("/java"))
                .toList();
    }

    private void await(String server, String line) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(TrainProcess.PATIENCE_SECONDS);
        while (!log(server).contains(line)) {
            assertThat(System.nanoTime()).as(log(server)).isLessThan(deadline);
            Thread.sleep(50);
        }
    }

    String log(String server) throws IOException {
        return Files.readString(directory.resolve(server));
    }

    /** Ends all that runs on the hosts. */
    @Override
    public void close() {
        for (String host : servers.keySet()) {
            hosts.host(host).killAll();
        }
        hosts.host(DRIVER).killAll();
    }
}
