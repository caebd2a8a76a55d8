package org.fedcomuon.cluster.spark;

import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectOutput;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.fedcomuon.cluster.Contribution;
import org.fedcomuon.cluster.Wire;
import org.fedcomuon.experiment.ConfigurationException;

/**
 * What a member returns from a job: all that leaves it. The values of a contribution stay outside the heap on both
 * sides, and are read where the member has them: it waits for an answer when Spark takes what is said.
 */
public final class Said implements Externalizable {
    private static final long serialVersionUID = 1L;
    private static final int PIECE = 1 << 20;

    enum Kind {
        /** It has come to a meeting. */
        MEETING,
        /** It has done all that there was to do. */
        DONE,
        /** It cannot begin with what it was given. */
        REFUSED,
        /** It cannot go on. */
        FAILED
    }

    private int member;
    private String host = "";
    private Kind kind = Kind.DONE;
    private transient Optional<Contribution> contribution = Optional.empty();
    private String failure = "";
    private transient List<String> lines = List.of();
    private transient List<ToldEvaluation> evaluations = List.of();

    /** For Java's serialization only. */
    public Said() {}

    private Said(int member, String host, Kind kind, Optional<Contribution> contribution, String failure) {
        this.member = member;
        this.host = host;
        this.kind = kind;
        this.contribution = contribution;
        this.failure = failure;
    }

    static Said brings(int member, String host, Contribution contribution) {
        return new Said(member, host, Kind.MEETING, Optional.of(contribution), "");
    }

    static Said isDone(int member, String host) {
        return new Said(member, host, Kind.DONE, Optional.empty(), "");
    }

    static Said failed(int member, String host, Throwable failure) {
        String message = failure.getMessage();
        return new Said(
                member,
                host,
                failure instanceof ConfigurationException ? Kind.REFUSED : Kind.FAILED,
                Optional.empty(),
                failure instanceof RuntimeException && message != null ? message : failure.toString());
    }

    /** The same with what there is to tell beside it. */
    Said telling(List<String> newLines, List<ToldEvaluation> newEvaluations) {
        var said = new Said(member, host, kind, contribution, failure);
        said.lines = List.copyOf(newLines);
        said.evaluations = List.copyOf(newEvaluations);
        return said;
    }

    Kind kind() {
        return kind;
    }

    /** What it brings to a meeting. */
    Contribution contribution() {
        return contribution.orElseThrow();
    }

    /** Who cannot go on, and why. */
    String failure() {
        return "%s: %s".formatted(who(), failure);
    }

    /** For whoever watches the run. */
    List<String> lines() {
        return lines;
    }

    /** That it has made since the last time. */
    List<ToldEvaluation> evaluations() {
        return evaluations;
    }

    /** Which member, for messages. */
    String who() {
        return "member %d on %s".formatted(member, host);
    }

    @Override
    public void writeExternal(ObjectOutput out) throws IOException {
        out.writeInt(member);
        out.writeUTF(host);
        out.writeObject(kind);
        out.writeObject(failure);
        out.writeObject(new ArrayList<>(lines));
        out.writeObject(new ArrayList<>(evaluations));
        out.writeBoolean(contribution.isPresent());
        if (contribution.isPresent()) {
            out.writeObject(Wire.header(contribution.get()));
            var piece = new byte[PIECE];
            for (Contribution.Values values : contribution.get().values()) {
                MemorySegment rows = values.rows();
                for (long at = 0; at < rows.byteSize(); at += PIECE) {
                    int bytes = (int) Math.min(PIECE, rows.byteSize() - at);
                    MemorySegment.copy(rows, ValueLayout.JAVA_BYTE, at, piece, 0, bytes);
                    out.write(piece, 0, bytes);
                }
            }
        }
    }

    @Override
    @SuppressWarnings("unchecked") // what was written above
    public void readExternal(ObjectInput in) throws IOException, ClassNotFoundException {
        member = in.readInt();
        host = in.readUTF();
        kind = (Kind) in.readObject();
        failure = (String) in.readObject();
        lines = (List<String>) in.readObject();
        evaluations = (List<ToldEvaluation>) in.readObject();
        if (in.readBoolean()) {
            Wire.Header header = Wire.header((byte[]) in.readObject());
            var piece = new byte[PIECE];
            var values = new ArrayList<Contribution.Values>();
            for (int i = 0; i < header.names().size(); i++) {
                long all =
                        header.lengths().get(i) * Float.BYTES * header.clients().size();
                MemorySegment rows = Arena.ofAuto().allocate(all, Float.BYTES);
                for (long at = 0; at < all; at += PIECE) {
                    int bytes = (int) Math.min(PIECE, all - at);
                    in.readFully(piece, 0, bytes);
                    MemorySegment.copy(piece, 0, rows, ValueLayout.JAVA_BYTE, at, bytes);
                }
                values.add(new Contribution.Values(header.names().get(i), rows));
            }
            contribution = Optional.of(new Contribution(header.facts(), header.clients(), header.weights(), values));
        }
    }
}
