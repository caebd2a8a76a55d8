package org.fedcomuon.cluster;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.internal.NativeHeap;

/** Host memory that is taken once and used at every meeting, by number; freed with this object. Of one thread. */
public final class Rooms {
    private final List<MemorySegment> rooms = new ArrayList<>();

    /** None yet. */
    public Rooms() {}

    /** Room {@code i}, with what is in it since the last time unless it has to grow. */
    public MemorySegment get(int i, long bytes) {
        while (rooms.size() <= i) {
            rooms.add(MemorySegment.NULL);
        }
        if (rooms.get(i).byteSize() < bytes) {
            rooms.set(i, NativeHeap.allocate(bytes));
        }
        return rooms.get(i).asSlice(0, bytes);
    }
}
