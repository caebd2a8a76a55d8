package org.fedcomuon.cluster.spark;

import java.util.Iterator;
import org.apache.spark.api.java.function.VoidFunction;

/** The Spark task that ends members after another one has failed, so that no process ends in the middle of libtorch. */
record EndTask(RunSpec run, String reason) implements VoidFunction<Iterator<Integer>> {
    @Override
    public void call(Iterator<Integer> partition) {
        Member.endAll(run, reason);
    }
}
