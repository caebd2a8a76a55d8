package org.fedcomuon.cluster;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Phase;

/**
 * How a member is getting on.
 *
 * @param run a fingerprint of what it runs: the same problem, data and method have the same
 * @param step it is in, which is the same for all that run the same thing
 * @param stop whether it has been asked to stop; that of member 0 counts
 * @param seconds spent so far
 * @param faults of its clients since the last meeting
 */
public record Facts(String run, long step, boolean stop, Map<Phase, Double> seconds, List<ClientFault> faults) {
    /** Copies. */
    public Facts {
        seconds = Map.copyOf(seconds);
        faults = List.copyOf(faults);
    }

    /** The same, asked to stop. */
    public Facts stopping() {
        return new Facts(run, step, true, seconds, faults);
    }

    void writeTo(DataOutput out) throws IOException {
        out.writeUTF(Wire.clip(run));
        out.writeLong(step);
        out.writeBoolean(stop);
        out.writeInt(seconds.size());
        for (Map.Entry<Phase, Double> each : seconds.entrySet()) {
            out.writeUTF(each.getKey().name());
            out.writeDouble(each.getValue());
        }
        out.writeInt(faults.size());
        for (ClientFault fault : faults) {
            out.writeInt(fault.client());
            out.writeLong(fault.step());
            out.writeUTF(fault.kind().name());
            out.writeUTF(Wire.clip(fault.reason()));
        }
    }

    static Facts readFrom(DataInput in) throws IOException {
        String run = in.readUTF();
        long step = in.readLong();
        boolean stop = in.readBoolean();
        var seconds = new EnumMap<Phase, Double>(Phase.class);
        for (int left = in.readInt(); left > 0; left--) {
            seconds.put(Phase.valueOf(in.readUTF()), in.readDouble());
        }
        var faults = new ArrayList<ClientFault>();
        for (int left = in.readInt(); left > 0; left--) {
            faults.add(
                    new ClientFault(in.readInt(), in.readLong(), ClientFault.Kind.valueOf(in.readUTF()), in.readUTF()));
        }
        return new Facts(run, step, stop, seconds, faults);
    }
}
