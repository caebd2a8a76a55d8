package org.fedcomuon.cluster;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/**
 * Serializes what an exchange transfers besides the values. The values themselves are sent as they are in memory,
 * little-endian.
 *
 * <p>Thread-safe.
 */
public final class WireFormat {
    private static final int LONGEST_TEXT = 4000; // characters; writeUTF ends at 65535 bytes

    private WireFormat() {}

    /**
     * A contribution without its values.
     *
     * @param clients whose they are
     * @param weights of these clients
     * @param names of the variables
     * @param lengths of a row of each
     */
    public record Header(
            Cluster.MemberStatus status,
            List<Integer> clients,
            List<Double> weights,
            List<String> names,
            List<Long> lengths) {
        /** Copies. */
        public Header {
            clients = List.copyOf(clients);
            weights = List.copyOf(weights);
            names = List.copyOf(names);
            lengths = List.copyOf(lengths);
        }
    }

    /** Serializes a contribution without its values. */
    public static byte[] header(Contribution contribution) {
        return bytes(out -> {
            contribution.status().writeTo(out);
            out.writeInt(contribution.clients().size());
            for (int k = 0; k < contribution.clients().size(); k++) {
                out.writeInt(contribution.clients().get(k));
                out.writeDouble(contribution.weights().get(k));
            }
            out.writeInt(contribution.values().size());
            for (int i = 0; i < contribution.values().size(); i++) {
                out.writeUTF(contribution.values().get(i).name());
                out.writeLong(contribution.length(i));
            }
        });
    }

    /** Deserializes a contribution without its values. */
    public static Header header(byte[] bytes) {
        try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            Cluster.MemberStatus status = Cluster.MemberStatus.readFrom(in);
            var clients = new ArrayList<Integer>();
            var weights = new ArrayList<Double>();
            for (int left = in.readInt(); left > 0; left--) {
                clients.add(in.readInt());
                weights.add(in.readDouble());
            }
            var names = new ArrayList<String>();
            var lengths = new ArrayList<Long>();
            for (int left = in.readInt(); left > 0; left--) {
                names.add(in.readUTF());
                lengths.add(in.readLong());
            }
            return new Header(status, clients, weights, names, lengths);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Serializes an answer without its means. */
    public static byte[] answer(Cluster.Answer answer) {
        return bytes(out -> {
            out.writeInt(answer.statuses().size());
            for (Cluster.MemberStatus status : answer.statuses()) {
                status.writeTo(out);
            }
            out.writeInt(answer.weights().size());
            for (double weight : answer.weights()) {
                out.writeDouble(weight);
            }
        });
    }

    /** Deserializes an answer; it has no means. */
    public static Cluster.Answer answer(byte[] bytes) {
        try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            var statuses = new ArrayList<Cluster.MemberStatus>();
            for (int left = in.readInt(); left > 0; left--) {
                statuses.add(Cluster.MemberStatus.readFrom(in));
            }
            var weights = new ArrayList<Double>();
            for (int left = in.readInt(); left > 0; left--) {
                weights.add(in.readDouble());
            }
            return new Cluster.Answer(statuses, weights, List.of());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static String clip(String text) {
        return text.length() <= LONGEST_TEXT ? text : text.substring(0, LONGEST_TEXT) + "...";
    }

    private interface Body {
        void writeTo(DataOutputStream out) throws IOException;
    }

    private static byte[] bytes(Body body) {
        var bytes = new ByteArrayOutputStream();
        try (var out = new DataOutputStream(bytes)) {
            body.writeTo(out);
        } catch (IOException e) {
            throw new UncheckedIOException(e); // memory does not fail
        }
        return bytes.toByteArray();
    }
}
