package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import org.fedcomuon.cluster.Answer;
import org.fedcomuon.cluster.Wire;

/**
 * An answer as it is broadcast.
 *
 * @param said all but the means
 * @param means of each variable
 */
@SuppressWarnings("ArrayRecordComponent") // nobody compares them
record Heard(byte[] said, ArrayList<byte[]> means) implements Serializable {
    static Heard of(Answer answer) {
        var means = new ArrayList<byte[]>();
        answer.means().forEach(mean -> means.add(mean.toArray(ValueLayout.JAVA_BYTE)));
        return new Heard(Wire.answer(answer), means);
    }

    Answer answer() {
        Answer answer = Wire.answer(said);
        return new Answer(
                answer.facts(),
                answer.weights(),
                means.stream().map(MemorySegment::ofArray).toList());
    }
}
