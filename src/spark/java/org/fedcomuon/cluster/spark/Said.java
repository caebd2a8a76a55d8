package org.fedcomuon.cluster.spark;

import java.io.Serializable;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.cluster.Contribution;
import org.fedcomuon.cluster.Rooms;
import org.fedcomuon.cluster.Wire;

/**
 * What a member returns from a job: all that leaves it.
 *
 * @param member which one
 * @param host where it is
 * @param kind whether it has come to a meeting, or to its end
 * @param header of a contribution
 * @param rows of a contribution: of each variable, of each client, because an array ends at 2 GiB
 * @param failure why it cannot go on
 * @param lines that it has to say to whoever watches the run
 * @param evaluations that it has made since the last time
 */
@SuppressWarnings("ArrayRecordComponent") // nobody compares them
record Said(
        int member,
        String host,
        Kind kind,
        byte[] header,
        ArrayList<byte[][]> rows,
        String failure,
        ArrayList<String> lines,
        ArrayList<ToldEvaluation> evaluations)
        implements Serializable {
    enum Kind {
        MEETING,
        DONE,
        FAILED
    }

    static List<byte[][]> rows(Contribution contribution) {
        var all = new ArrayList<byte[][]>();
        for (int i = 0; i < contribution.values().size(); i++) {
            long bytes = contribution.length(i) * Float.BYTES;
            var rows = new byte[contribution.clients().size()][];
            for (int k = 0; k < rows.length; k++) {
                MemorySegment row = contribution.values().get(i).rows().asSlice(k * bytes, bytes);
                rows[k] = row.toArray(ValueLayout.JAVA_BYTE);
            }
            all.add(rows);
        }
        return all;
    }

    /** The contribution again, its values in these rooms. */
    Contribution contribution(Rooms rooms) {
        Wire.Header read = Wire.header(header);
        var values = new ArrayList<Contribution.Values>();
        for (int i = 0; i < read.names().size(); i++) {
            long bytes = read.lengths().get(i) * Float.BYTES;
            MemorySegment all = rooms.get(i, bytes * read.clients().size());
            for (int k = 0; k < read.clients().size(); k++) {
                MemorySegment.copy(MemorySegment.ofArray(rows.get(i)[k]), 0, all, k * bytes, bytes);
            }
            values.add(new Contribution.Values(read.names().get(i), all));
        }
        return new Contribution(read.facts(), read.clients(), read.weights(), values);
    }

    /** The same with what there is to tell beside it. */
    Said telling(List<String> newLines, List<ToldEvaluation> newEvaluations) {
        return new Said(
                member, host, kind, header, rows, failure, new ArrayList<>(newLines), new ArrayList<>(newEvaluations));
    }

    /** Which member, for messages. */
    String who() {
        return "member %d on %s".formatted(member, host);
    }
}
