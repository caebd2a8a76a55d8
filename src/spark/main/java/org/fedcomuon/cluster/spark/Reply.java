package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.WireFormat;

/**
 * The answer of an exchange in the form that Spark broadcasts.
 *
 * @param header everything but the means
 * @param means of each variable
 */
@SuppressWarnings("ArrayRecordComponent") // they are never compared
record Reply(byte[] header, ArrayList<byte[]> means) implements Serializable {
    static Reply of(Cluster.Answer answer) {
        var means = new ArrayList<byte[]>();
        answer.means().forEach(mean -> means.add(mean.toArray(ValueLayout.JAVA_BYTE)));
        return new Reply(WireFormat.answer(answer), means);
    }

    Cluster.Answer answer() {
        Cluster.Answer answer = WireFormat.answer(header);
        return new Cluster.Answer(
                answer.statuses(),
                answer.weights(),
                means.stream().map(MemorySegment::ofArray).toList());
    }
}
