package org.fedcomuon.cluster.spark;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.broadcast.Broadcast;

/**
 * The task of a member: it hears the last answer, goes on to its next meeting, and returns what it brings there.
 *
 * @param start where it begins if it is not there
 * @param answers since then, of which a member that is there has heard all but the last
 */
record Meet(Order order, Start start, ArrayList<Broadcast<Heard>> answers)
        implements FlatMapFunction<Iterator<Integer>, Said> {
    @Override
    public Iterator<Said> call(Iterator<Integer> partition) throws InterruptedException {
        String host = SparkEnv.get().blockManager().blockManagerId().host();
        Member member = Member.of(order, partition.next(), host, start, start.meeting() + answers.size());
        return List.of(member.next(start.meeting(), answers)).iterator();
    }
}
