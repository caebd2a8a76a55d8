package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.function.FlatMapFunction;

/**
 * The Spark task that starts a member in an executor, and returns where it is. The member goes on without a task: it is
 * a thread of the executor, connected to the driver.
 *
 * @param host of the driver
 * @param port of the driver
 * @param start where the member starts
 * @param lives how often each member was started before
 */
record BeginTask(RunSpec run, String host, int port, StartPoint start, ArrayList<Integer> lives)
        implements FlatMapFunction<Iterator<Integer>, BeginTask.Place> {
    /**
     * The place of a member.
     *
     * @param executor by Spark's identifier
     * @param host of the executor
     */
    record Place(int member, String executor, String host) implements Serializable {}

    @Override
    public Iterator<Place> call(Iterator<Integer> partition) {
        SparkEnv env = SparkEnv.get();
        var all = new ArrayList<Place>();
        while (partition.hasNext()) {
            int member = partition.next();
            Member.begin(this, member, env);
            all.add(new Place(member, env.executorId(), Transport.host(env)));
        }
        return List.copyOf(all).iterator();
    }
}
