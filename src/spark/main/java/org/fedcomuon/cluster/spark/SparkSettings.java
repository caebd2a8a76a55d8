package org.fedcomuon.cluster.spark;

import java.io.File;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.fedcomuon.experiment.ConfigurationException;

/**
 * The settings of Spark: those of the user, given by {@code spark-submit} or {@code -Dspark.NAME=VALUE}, and those that
 * members need.
 */
final class SparkSettings {
    /** The name that stands for the master given to {@code spark-submit}. */
    static final String SUBMITTED = "spark";

    /** The names of clusters of Spark, for messages. */
    static final String NAMES =
            "spark://HOST:PORT, local-cluster[N,CORES,MB], %s under spark-submit".formatted(SUBMITTED);

    private static final String MASTER = "spark.master";
    private static final String SHUTDOWN = "spark.shutdown.timeout";
    private static final Pattern LOOPBACK =
            Pattern.compile("local-cluster\\[.*|spark://(localhost|127\\.0\\.0\\.1)[:,].*");

    /** How many members the driver, and each member, adds up the sums of. */
    private static final String FAN = "spark.fedcomuon.fan";

    private static final int DEFAULT_FAN = 4;

    /** The port of the driver; any free one by default. */
    static final String PORT = "spark.fedcomuon.port";

    private static final int LAST_PORT = 65_535;

    /** The names of settings whose values nobody should see. */
    private static final Pattern SECRET = Pattern.compile("(?i)secret|password|token|key");

    private SparkSettings() {}

    static Tree tree(SparkConf settings, int members) {
        return new Tree(members, number(settings, FAN, DEFAULT_FAN, 1, Integer.MAX_VALUE));
    }

    /** Returns the port at which members reach the driver; 0 for any free one. */
    static int port(SparkConf settings) {
        return number(settings, PORT, 0, 0, LAST_PORT);
    }

    private static int number(SparkConf settings, String name, int otherwise, int least, int most) {
        String value = settings.get(name, Integer.toString(otherwise));
        try {
            int number = Integer.parseInt(value);
            if (least <= number && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // The same mistake.
        }
        throw new ConfigurationException("%s = %s: must be a whole number, at least %d%s"
                .formatted(name, value, least, most == Integer.MAX_VALUE ? "" : " and at most " + most));
    }

    /** Returns which settings the user has given, for messages of Spark that do not name the one they are about. */
    static String given() {
        String all = System.getProperties().stringPropertyNames().stream()
                .filter(name -> name.startsWith("spark.") && !name.equals(SHUTDOWN))
                .sorted()
                .map(name -> SECRET.matcher(name).find() ? name : name + "=" + System.getProperty(name))
                .collect(Collectors.joining(", "));
        return all.isEmpty() ? "" : "; given are " + all;
    }

    /** Returns the size of the heap of an executor, as the user gives it. */
    static String executorMemory(SparkConf settings) {
        return settings.get("spark.executor.memory", "1g");
    }

    /** Returns whether a name stands for a cluster of Spark. */
    static boolean areMeantBy(String cluster) {
        return cluster.equals(SUBMITTED) || cluster.startsWith("spark://") || cluster.startsWith("local-cluster[");
    }

    static SparkConf of(String cluster, String name) {
        if (System.getProperty(SHUTDOWN) == null) {
            System.setProperty(SHUTDOWN, "120s"); // read when Spark's first class is used
        }
        var settings = new SparkConf();
        if (!cluster.equals(SUBMITTED)) {
            settings.setMaster(cluster);
        } else if (!settings.contains(MASTER)) {
            throw new ConfigurationException(
                    "--cluster %s requires spark-submit, which sets the master; without it, name the master: spark://HOST:PORT"
                            .formatted(cluster));
        }
        tree(settings, 1); // a wrong number is refused before anything starts
        settings.setIfMissing("spark.app.name", "fedcomuon " + name);
        settings.setIfMissing("spark.ui.enabled", "false");
        if (LOOPBACK.matcher(settings.get(MASTER)).matches()) {
            settings.setIfMissing("spark.driver.host", "127.0.0.1");
            settings.setIfMissing("spark.driver.bindAddress", "127.0.0.1");
        }
        settings.set("spark.speculation", "false"); // it could start a member twice
        settings.set("spark.dynamicAllocation.enabled", "false"); // executors have members when they have no task

        // By default an executor uses the driver's JDK and classes.
        settings.setIfMissing("spark.executorEnv.JAVA_HOME", System.getProperty("java.home"));
        settings.setIfMissing(
                "spark.executorEnv.OPENBLAS_NUM_THREADS", "1"); // its threads would compete with those of the clients
        String classPath = classPath();
        if (!classPath.isEmpty()) {
            settings.setIfMissing("spark.executor.extraClassPath", classPath);
        }
        // The provider is Spark's, because that of our command line is on the class path too.
        String options = "--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow"
                + " -Dslf4j.provider=org.apache.logging.slf4j.SLF4JServiceProvider -Dslf4j.internal.verbosity=WARN";
        String nativePath = System.getProperty("fedcomuon.native.path", "");
        if (!nativePath.isEmpty()) {
            options += " -Dfedcomuon.native.path=" + nativePath;
        }
        settings.set(
                "spark.executor.extraJavaOptions", options + ' ' + settings.get("spark.executor.extraJavaOptions", ""));
        return settings;
    }

    /**
     * Returns the class path of this process without Spark's own jars; empty when the application was shipped in a jar.
     */
    static String classPath() {
        Path spark = Path.of(Optional.ofNullable(System.getenv("SPARK_HOME")).orElse("/no such directory"), "jars");
        String own = SparkSettings.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .getPath();
        List<Path> entries = Pattern.compile(File.pathSeparator, Pattern.LITERAL)
                .splitAsStream(System.getProperty("java.class.path"))
                .map(entry -> Path.of(entry).toAbsolutePath())
                .toList();
        return !entries.contains(Path.of(own).toAbsolutePath())
                ? ""
                : entries.stream()
                        .filter(entry -> !entry.startsWith(spark))
                        .map(Path::toString)
                        .collect(Collectors.joining(File.pathSeparator));
    }
}
