package org.fedcomuon.cluster.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.fedcomuon.testing.TrainProcess;

/**
 * A master of Spark with two workers on loopback, as somebody operates them: on a JDK 17 where there is one beside
 * ours, because that is what their clusters have.
 */
final class SparkServers implements AutoCloseable {
    /**
     * What these tests have besides Spark; a distribution has none of it, and it would be found before what is shipped.
     */
    private static final List<String> OURS = List.of(
            "fedcomuon",
            "slf4j-jdk14",
            "/bytedeco/",
            "/tools/jackson/",
            "/picocli/",
            "/jcuda/",
            "/jmh/",
            "/junit/",
            "/assertj/");

    /** The jars of Spark, as a distribution has them. */
    private final Path home;

    private final Path directory;
    private final List<String> settings;
    private final List<Process> started = new ArrayList<>();
    private final int port;
    private int workers;

    private SparkServers(Path directory, List<String> settings) throws IOException {
        this.directory = directory;
        this.settings = settings;
        home = home(directory);
        try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = socket.getLocalPort();
        }
    }

    /** Makes what a distribution of Spark unpacks to, as far as it is used here. */
    static Path home(Path directory) throws IOException {
        Path home = directory.resolve("spark");
        Path jars = Files.createDirectories(home.resolve("jars"));
        for (String entry : System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"))
                .split(":", -1)) {
            if (entry.endsWith(".jar") && OURS.stream().noneMatch(entry::contains)) {
                Path file = Path.of(entry);
                Files.createSymbolicLink(jars.resolve(String.valueOf(file.getFileName())), file);
            }
        }
        return home;
    }

    static SparkServers start(Path directory) throws Exception {
        return start(directory, 2, List.of());
    }

    /** @param settings of Spark, as options of the JVM */
    static SparkServers start(Path directory, int workers, List<String> settings) throws Exception {
        var servers = new SparkServers(Files.createDirectories(directory), settings);
        try {
            servers.start("master", "org.apache.spark.deploy.master.Master", "--port", Integer.toString(servers.port));
            servers.await("master", "I have been elected leader");
            servers.addWorkers(workers);
            return servers;
        } catch (Exception | AssertionError e) {
            servers.close();
            throw e;
        }
    }

    void addWorkers(int count) throws Exception {
        int first = workers;
        for (; workers < first + count; workers++) {
            start(
                    "worker-" + workers,
                    "org.apache.spark.deploy.worker.Worker",
                    "--cores",
                    "1",
                    "--memory",
                    "1g",
                    "--work-dir",
                    workDirectory(workers).toString(),
                    url());
        }
        for (int i = first; i < workers; i++) {
            await("worker-" + i, "Successfully registered with master");
        }
    }

    /** Where a worker starts executors. */
    Path workDirectory(int worker) {
        return directory.resolve("work-" + worker);
    }

    String url() {
        return "spark://127.0.0.1:" + port;
    }

    /** What {@code bin/spark-submit} of a distribution would start, with a jar to ship. */
    List<String> submit(Path jar, List<String> arguments) throws Exception {
        var command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                home.resolve("jars") + "/*",
                "org.apache.spark.launcher.Main",
                "org.apache.spark.deploy.SparkSubmit",
                "--master",
                url(),
                "--conf",
                "spark.driver.host=127.0.0.1",
                "--class",
                "org.fedcomuon.cli.Main",
                jar.toString()));
        command.addAll(arguments);
        Path said = directory.resolve("submit");
        Process spark = environment(new ProcessBuilder(command))
                .redirectOutput(said.toFile())
                .start();
        assertThat(TrainProcess.end(spark)).isZero();
        return Stream.of(Files.readString(said).split("\0"))
                .map(String::strip)
                .filter(word -> !word.isEmpty())
                .toList();
    }

    private ProcessBuilder environment(ProcessBuilder builder) {
        builder.environment()
                .putAll(Map.of(
                        "SPARK_HOME", home.toString(), "SPARK_SCALA_VERSION", "2.13", "SPARK_LOCAL_IP", "127.0.0.1"));
        return builder;
    }

    private void start(String name, String program, String... arguments) throws IOException {
        var command = new ArrayList<>(List.of(java().toString(), "-cp", home.resolve("jars") + "/*"));
        command.addAll(settings);
        command.addAll(List.of(program, "--host", "127.0.0.1", "--webui-port", "0"));
        command.addAll(List.of(arguments));
        started.add(environment(new ProcessBuilder(command))
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve(name).toFile())
                .start());
    }

    /** Of the oldest JDK that Spark runs on, if it is here; ours otherwise. */
    static Path java() throws IOException {
        Path ours = Path.of(System.getProperty("java.home"));
        try (Stream<Path> beside = Files.list(ours.resolveSibling("."))) {
            return beside.filter(SparkServers::isJdk17).findFirst().orElse(ours).resolve("bin/java");
        }
    }

    private static boolean isJdk17(Path home) {
        try {
            return Files.readString(home.resolve("release")).contains("JAVA_VERSION=\"17")
                    && Files.isExecutable(home.resolve("bin/java"));
        } catch (IOException e) {
            return false;
        }
    }

    private void await(String name, String line) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(TrainProcess.PATIENCE_SECONDS);
        while (!log(name).contains(line)) {
            assertThat(System.nanoTime()).as(log(name)).isLessThan(deadline);
            Thread.sleep(50);
        }
    }

    private String log(String name) throws IOException {
        return Files.readString(directory.resolve(name));
    }

    @Override
    public void close() {
        kill();
    }

    /** By SIGKILL, the executors too. */
    void kill() {
        started.reversed().forEach(SparkServers::kill);
    }

    /** One of them, by SIGKILL, and its executor too. */
    void killWorker() {
        kill(started.getLast());
    }

    /** All of them, by SIGKILL, with their executors; the master stays. */
    void killWorkers() {
        started.stream().skip(1).forEach(SparkServers::kill);
    }

    private static void kill(Process server) {
        List<ProcessHandle> executors = server.descendants().toList();
        server.destroyForcibly();
        executors.forEach(ProcessHandle::destroyForcibly);
    }
}
