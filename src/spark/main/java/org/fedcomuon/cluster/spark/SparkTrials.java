package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.util.function.BooleanSupplier;
import org.apache.spark.SparkConf;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.sweep.TrialCluster;

/**
 * Trials of a sweep in the executors of Apache Spark, as many at a time as these have cores for. They write to the
 * directory of the sweep, which all hosts share.
 */
public final class SparkTrials implements TrialCluster {
    @Override
    public boolean isMeantBy(String cluster) {
        return SparkSettings.areMeantBy(cluster);
    }

    @Override
    public String names() {
        return SparkSettings.NAMES;
    }

    @Override
    public boolean hasDevicesOfThisHost() {
        return false;
    }

    @Override
    public Session start(Job job, BooleanSupplier stopping) throws IOException, InterruptedException {
        if (job.classPath().isPresent()) {
            throw new ConfigurationException(
                    "--class-path with --cluster %s: its processes would not find the classes; put them on their class paths instead"
                            .formatted(job.cluster()));
        }
        SparkConf settings =
                SparkSettings.of(job.cluster(), String.valueOf(job.directory().getFileName()));
        settings.set("spark.task.cpus", Integer.toString(job.threads()));
        return SparkTrialSession.start(job, settings, stopping);
    }
}
