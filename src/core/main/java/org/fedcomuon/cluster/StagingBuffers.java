package org.fedcomuon.cluster;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.internal.NativeHeap;

/**
 * Host memory that is allocated once and reused in every exchange, by number; freed with this object. Not thread-safe.
 */
public final class StagingBuffers {
    private final List<MemorySegment> buffers = new ArrayList<>();

    /** Creates an empty set of buffers. */
    public StagingBuffers() {}

    /** Returns buffer {@code i}, with its previous contents unless it has to grow. */
    public MemorySegment get(int i, long bytes) {
        while (buffers.size() <= i) {
            buffers.add(MemorySegment.NULL);
        }
        if (buffers.get(i).byteSize() < bytes) {
            buffers.set(i, NativeHeap.allocate(bytes));
        }
        return buffers.get(i).asSlice(0, bytes);
    }
}
