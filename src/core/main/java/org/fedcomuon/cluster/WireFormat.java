package org.fedcomuon.cluster;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.cluster.Cluster.MemberStatus;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;

/**
 * Serializes statuses. Exponents, sums and means are sent as they are in memory, little-endian.
 *
 * <p>Thread-safe.
 */
public final class WireFormat {
    private static final int LONGEST_TEXT = 4000; // characters; writeUTF ends at 65535 bytes

    private WireFormat() {}

    /** Serializes a status. */
    public static byte[] bytes(MemberStatus status) {
        var bytes = new ByteArrayOutputStream();
        try (var out = new DataOutputStream(bytes)) {
            write(status, out);
        } catch (IOException e) {
            throw new UncheckedIOException(e); // memory does not fail
        }
        return bytes.toByteArray();
    }

    /** Deserializes a status. */
    public static MemberStatus status(byte[] bytes) {
        try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            return read(in);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Serializes the statuses of all members. */
    public static byte[] bytes(List<MemberStatus> statuses) {
        var bytes = new ByteArrayOutputStream();
        try (var out = new DataOutputStream(bytes)) {
            out.writeInt(statuses.size());
            for (MemberStatus status : statuses) {
                write(status, out);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e); // memory does not fail
        }
        return bytes.toByteArray();
    }

    /** Deserializes the statuses of all members. */
    public static List<MemberStatus> statuses(byte[] bytes) {
        try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
            var statuses = new ArrayList<MemberStatus>();
            for (int left = in.readInt(); left > 0; left--) {
                statuses.add(read(in));
            }
            return statuses;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void write(MemberStatus status, DataOutputStream out) throws IOException {
        out.writeUTF(clip(status.run()));
        out.writeLong(status.step());
        out.writeBoolean(status.stop());
        out.writeInt(status.posted().size());
        for (MemberStatus.Posted each : status.posted()) {
            out.writeUTF(clip(each.name()));
            out.writeLong(each.length());
        }
        out.writeInt(status.dropped().size());
        for (int client : status.dropped()) {
            out.writeInt(client);
        }
        out.writeInt(status.seconds().size());
        for (Map.Entry<Clients.Phase, Double> each : status.seconds().entrySet()) {
            out.writeUTF(each.getKey().name());
            out.writeDouble(each.getValue());
        }
        out.writeInt(status.faults().size());
        for (ClientFault fault : status.faults()) {
            out.writeInt(fault.client());
            out.writeLong(fault.step());
            out.writeUTF(fault.kind().name());
            out.writeUTF(clip(fault.reason()));
        }
    }

    private static MemberStatus read(DataInputStream in) throws IOException {
        String run = in.readUTF();
        long step = in.readLong();
        boolean stop = in.readBoolean();
        var posted = new ArrayList<MemberStatus.Posted>();
        for (int left = in.readInt(); left > 0; left--) {
            posted.add(new MemberStatus.Posted(in.readUTF(), in.readLong()));
        }
        var dropped = new ArrayList<Integer>();
        for (int left = in.readInt(); left > 0; left--) {
            dropped.add(in.readInt());
        }
        var seconds = new EnumMap<Clients.Phase, Double>(Clients.Phase.class);
        for (int left = in.readInt(); left > 0; left--) {
            seconds.put(Clients.Phase.valueOf(in.readUTF()), in.readDouble());
        }
        var faults = new ArrayList<ClientFault>();
        for (int left = in.readInt(); left > 0; left--) {
            faults.add(
                    new ClientFault(in.readInt(), in.readLong(), ClientFault.Kind.valueOf(in.readUTF()), in.readUTF()));
        }
        return new MemberStatus(run, step, stop, posted, dropped, seconds, faults);
    }

    private static String clip(String text) {
        return text.length() <= LONGEST_TEXT ? text : text.substring(0, LONGEST_TEXT) + "...";
    }
}
