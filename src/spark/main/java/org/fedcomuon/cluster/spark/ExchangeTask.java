package org.fedcomuon.cluster.spark;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.broadcast.Broadcast;

/**
 * The Spark task of a member in one exchange: it gives the member the last reply, waits until the member has reached
 * its next exchange, and returns the member's message.
 *
 * @param start where a member starts that is not in this executor yet
 * @param replies all since {@code start}; a member that is in this executor already has received all but the last
 */
record ExchangeTask(RunSpec run, StartPoint start, ArrayList<Broadcast<Reply>> replies)
        implements FlatMapFunction<Iterator<Integer>, MemberMessage> {
    @Override
    public Iterator<MemberMessage> call(Iterator<Integer> partition) throws InterruptedException {
        String host = SparkEnv.get().blockManager().blockManagerId().host();
        Member member = Member.of(run, partition.next(), host, start, start.exchange() + replies.size());
        return List.of(member.next(start.exchange(), replies)).iterator();
    }
}
