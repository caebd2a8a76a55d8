package org.fedcomuon.cluster.spark;

import java.io.UncheckedIOException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkException;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.federation.CheckpointException;

/** What Spark throws, in one line each: its own messages are pages long. */
final class SparkFailures {
    /** In the message of a job that has failed. */
    private static final Pattern TASK =
            Pattern.compile("Lost task \\S+ in stage \\S+ \\(TID \\d+\\) \\(([^ )]+) executor \\w+\\): (.*)");

    private static final String EXECUTOR_LOST = "Reason: ";

    private SparkFailures() {}

    static MemberFailedException failed(String message, Throwable cause) {
        var failed = new MemberFailedException(message);
        failed.initCause(cause);
        return failed;
    }

    /**
     * Returns what to throw for a failure of any kind: our own exceptions as they are, and for what a job or the
     * context has failed with one that names the host and what can be done.
     */
    static RuntimeException explained(Throwable e) {
        if (e instanceof MemberFailedException
                || e instanceof ConfigurationException
                || e instanceof CheckpointException
                || e instanceof DeviceException
                || e instanceof UncheckedIOException) {
            return (RuntimeException) e;
        }
        String all = String.valueOf(e.getMessage());
        Matcher task = TASK.matcher(all);
        boolean isTask = task.find();
        String host = isTask ? task.group(1) + ": " : "";
        if (all.contains("UnsupportedClassVersionError")) {
            return new ConfigurationException(
                    host
                            + "the executors' Java is too old; name a JDK >= 25.0.3 of theirs in spark.executorEnv.JAVA_HOME",
                    e);
        }
        if (all.contains("ClassNotFoundException: org.fedcomuon")
                || all.contains("NoClassDefFoundError: org/fedcomuon")) {
            return new ConfigurationException(
                    "%sthe executors do not see, or cannot read, %s; use a path that all hosts share, or ship the jar by spark-submit"
                            .formatted(host, SparkSettings.classPath()),
                    e);
        }
        if (isTask) {
            String reason = task.group(2);
            int at = reason.indexOf(EXECUTOR_LOST);
            String words = at < 0 ? reason : reason.substring(at + EXECUTOR_LOST.length());
            return failed("Spark failed on " + host + new ExecutorLoss("", task.group(1), words).explanation(), e);
        }
        String words = e instanceof SparkException ? all : e.toString();
        return failed("Spark failed: " + words.lines().findFirst().orElse(""), e);
    }
}
