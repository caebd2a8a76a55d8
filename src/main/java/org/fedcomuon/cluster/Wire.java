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
 * What is said at a meeting besides the numbers, as bytes: the numbers themselves travel as they are in memory, little
 * endian, because they are many.
 *
 * <p>Thread-safe.
 */
public final class Wire {
    private static final int LONGEST_TEXT = 4000; // characters; writeUTF ends at 65535 bytes

    private Wire() {}

    /**
     * What a contribution says about its values.
     *
     * @param clients whose they are
     * @param weights of these clients
     * @param names of the variables
     * @param lengths of a row of each
     */
    public record Header(
            Facts facts, List<Integer> clients, List<Double> weights, List<String> names, List<Long> lengths) {
        /** Copies. */
        public Header {
            clients = List.copyOf(clients);
            weights = List.copyOf(weights);
            names = List.copyOf(names);
            lengths = List.copyOf(lengths);
        }
    }

    /** All of a contribution but its numbers. */
    public static byte[] header(Contribution contribution) {
        return bytes(out -> {
            contribution.facts().writeTo(out);
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

    /** The same, read. */
    public static Header header(byte[] bytes) {
        try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            Facts facts = Facts.readFrom(in);
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
            return new Header(facts, clients, weights, names, lengths);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** All of an answer but its numbers. */
    public static byte[] answer(Answer answer) {
        return bytes(out -> {
            out.writeInt(answer.facts().size());
            for (Facts facts : answer.facts()) {
                facts.writeTo(out);
            }
            out.writeInt(answer.weights().size());
            for (double weight : answer.weights()) {
                out.writeDouble(weight);
            }
        });
    }

    /** The same, read; it has no means. */
    public static Answer answer(byte[] bytes) {
        try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            var facts = new ArrayList<Facts>();
            for (int left = in.readInt(); left > 0; left--) {
                facts.add(Facts.readFrom(in));
            }
            var weights = new ArrayList<Double>();
            for (int left = in.readInt(); left > 0; left--) {
                weights.add(in.readDouble());
            }
            return new Answer(facts, weights, List.of());
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
