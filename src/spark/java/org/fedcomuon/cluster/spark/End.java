package org.fedcomuon.cluster.spark;

import java.util.Iterator;
import org.apache.spark.api.java.function.VoidFunction;

/** The task that ends members when another one has failed: no process is to end in the middle of libtorch. */
record End(Order order, String reason) implements VoidFunction<Iterator<Integer>> {
    @Override
    public void call(Iterator<Integer> partition) {
        Member.endAll(order, reason);
    }
}
