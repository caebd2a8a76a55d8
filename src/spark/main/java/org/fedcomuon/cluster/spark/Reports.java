package org.fedcomuon.cluster.spark;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.federation.Evaluation;

/**
 * The text of a member's message to the driver.
 *
 * @param lines that it reports
 * @param evaluations that it has made since its last message
 * @param rest what else the message has
 */
@SuppressWarnings("ArrayRecordComponent") // they are never compared
record Reports(List<String> lines, List<Evaluation> evaluations, byte[] rest) {
    Reports {
        lines = List.copyOf(lines);
        evaluations = List.copyOf(evaluations);
    }

    byte[] bytes() {
        byte[] reported = lines.isEmpty() && evaluations.isEmpty() ? new byte[0] : serialized();
        return ByteBuffer.allocate(Integer.BYTES + reported.length + rest.length)
                .putInt(reported.length)
                .put(reported)
                .put(rest)
                .array();
    }

    private byte[] serialized() {
        var bytes = new ByteArrayOutputStream();
        try (var out = new ObjectOutputStream(bytes)) {
            out.writeObject(new ArrayList<>(lines));
            out.writeObject(new ArrayList<>(evaluations));
        } catch (IOException e) {
            throw new UncheckedIOException(e); // memory does not fail
        }
        return bytes.toByteArray();
    }

    @SuppressWarnings("unchecked") // written by serialized()
    static Reports of(byte[] bytes) {
        var in = ByteBuffer.wrap(bytes);
        var reported = new byte[in.getInt()];
        in.get(reported);
        var rest = new byte[in.remaining()];
        in.get(rest);
        if (reported.length == 0) {
            return new Reports(List.of(), List.of(), rest);
        }
        try (var objects = new ObjectInputStream(new ByteArrayInputStream(reported))) {
            return new Reports((List<String>) objects.readObject(), (List<Evaluation>) objects.readObject(), rest);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (ClassNotFoundException e) {
            throw new IllegalStateException("a member has another version", e);
        }
    }
}
