package org.fedcomuon.cluster.spark;

import java.io.File;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.fedcomuon.experiment.ConfigurationException;

/**
 * The settings of Spark: those of the user, given by {@code spark-submit} or {@code -Dspark.NAME=VALUE}, and those that
 * members need.
 */
final class SparkSettings {
    /** The name that stands for the master given to {@code spark-submit}. */
    static final String SUBMITTED = "spark";

    private static final String MASTER = "spark.master";
    private static final String SHUTDOWN = "spark.shutdown.timeout";
    private static final Pattern LOOPBACK =
            Pattern.compile("local-cluster\\[.*|spark://(localhost|127\\.0\\.0\\.1)[:,].*");

    /** How many members the driver, and each member, adds up the sums of. */
    private static final String FAN = "spark.fedcomuon.fan";

    private static final int DEFAULT_FAN = 4;

    private SparkSettings() {}

    static Tree tree(SparkConf settings, int members) {
        return new Tree(members, fan(settings));
    }

    private static int fan(SparkConf settings) {
        String value = settings.get(FAN, Integer.toString(DEFAULT_FAN));
        try {
            int fan = Integer.parseInt(value);
            if (fan >= 1) {
                return fan;
            }
        } catch (NumberFormatException _) {
            // The same as a number out of range.
        }
        throw new ConfigurationException("%s = %s: a whole number from 1 is needed".formatted(FAN, value));
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
        fan(settings); // before anything starts
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
     * Starts Spark.
     *
     * @throws ConfigurationException when it cannot read one of the settings, with its name
     */
    static JavaSparkContext start(SparkConf settings) {
        try {
            return new JavaSparkContext(settings);
        } catch (IllegalArgumentException e) { // numbers, sizes, times, and the master itself
            String reason = String.valueOf(e.getMessage());
            String names = Arrays.stream(settings.getAll())
                    .filter(each -> System.getProperty(each._1) != null && isNamed(each._2, reason))
                    .map(each -> "%s = %s: ".formatted(each._1, each._2))
                    .collect(Collectors.joining());
            throw new ConfigurationException("a setting of Spark cannot be used: " + names + reason, e);
        }
    }

    private static boolean isNamed(String value, String reason) {
        return !value.isBlank()
                && Pattern.compile("(?<!\\w)%s(?!\\w)".formatted(Pattern.quote(value)))
                        .matcher(reason)
                        .find();
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
