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
import org.fedcomuon.cluster.WireFormat;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.federation.Evaluation;

/**
 * The message that a member returns from a Spark job. The values of a contribution stay outside the heap on both sides,
 * and are serialized from the memory of the member, which waits for a reply meanwhile.
 */
public final class MemberMessage implements Externalizable {
    private static final long serialVersionUID = 1L;
    private static final int PIECE = 1 << 20;

    enum Kind {
        /** The member takes part in an exchange. */
        CONTRIBUTION,
        /** The member has finished its run. */
        DONE,
        /** The member cannot start with the given configuration. */
        REFUSED,
        /** The member cannot continue. */
        FAILED
    }

    private int member;
    private String host = "";
    private Kind kind = Kind.DONE;
    private transient Optional<Contribution> contribution = Optional.empty();
    private String failure = "";
    private transient List<String> lines = List.of();
    private transient List<Evaluation> evaluations = List.of();

    /** Used by Java's serialization only. */
    public MemberMessage() {}

    private MemberMessage(int member, String host, Kind kind, Optional<Contribution> contribution, String failure) {
        this.member = member;
        this.host = host;
        this.kind = kind;
        this.contribution = contribution;
        this.failure = failure;
    }

    static MemberMessage of(int member, String host, Contribution contribution) {
        return new MemberMessage(member, host, Kind.CONTRIBUTION, Optional.of(contribution), "");
    }

    static MemberMessage done(int member, String host) {
        return new MemberMessage(member, host, Kind.DONE, Optional.empty(), "");
    }

    static MemberMessage failed(int member, String host, Throwable failure) {
        Throwable reason = failure;
        while (reason instanceof LinkageError && reason.getCause() != null) {
            reason = reason.getCause(); // an ExceptionInInitializerError says nothing itself
        }
        String message = reason.getMessage();
        return new MemberMessage(
                member,
                host,
                failure instanceof ConfigurationException ? Kind.REFUSED : Kind.FAILED,
                Optional.empty(),
                reason instanceof RuntimeException && message != null ? message : reason.toString());
    }

    /** Returns the same message with lines and evaluations to report. */
    MemberMessage with(List<String> newLines, List<Evaluation> newEvaluations) {
        var message = new MemberMessage(member, host, kind, contribution, failure);
        message.lines = List.copyOf(newLines);
        message.evaluations = List.copyOf(newEvaluations);
        return message;
    }

    Kind kind() {
        return kind;
    }

    /** Returns the contribution of the member to an exchange. */
    Contribution contribution() {
        return contribution.orElseThrow();
    }

    /** Returns the member that cannot continue, and the reason. */
    String failure() {
        return "%s: %s".formatted(sender(), failure);
    }

    /** Returns the lines that the member reports. */
    List<String> lines() {
        return lines;
    }

    /** Returns the evaluations that the member has made since its last message. */
    List<Evaluation> evaluations() {
        return evaluations;
    }

    /** Returns the name of this member for messages. */
    String sender() {
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
            out.writeObject(WireFormat.header(contribution.get()));
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
    @SuppressWarnings("unchecked") // written by writeExternal
    public void readExternal(ObjectInput in) throws IOException, ClassNotFoundException {
        member = in.readInt();
        host = in.readUTF();
        kind = (Kind) in.readObject();
        failure = (String) in.readObject();
        lines = (List<String>) in.readObject();
        evaluations = (List<Evaluation>) in.readObject();
        if (in.readBoolean()) {
            WireFormat.Header header = WireFormat.header((byte[]) in.readObject());
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
            contribution = Optional.of(new Contribution(header.status(), header.clients(), header.weights(), values));
        }
    }
}
