package org.fedcomuon.federation;

import java.util.Objects;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.ElementType;
import org.jspecify.annotations.Nullable;

/** A buffer that is allocated when its size is known, and once if that stays the same. Not thread-safe. */
final class GrowingBuffer implements AutoCloseable {
    private final Device device;
    private final String label;
    private final ElementType type;
    private @Nullable Buffer buffer;

    GrowingBuffer(Device device, String label, ElementType type) {
        this.device = device;
        this.label = label;
        this.type = type;
    }

    /** Allocates a larger one if there are not so many elements; values are not kept. */
    void grow(long length) {
        if (buffer == null || buffer.length() < length) {
            close();
            buffer = device.allocate(label, type, length);
        }
    }

    Buffer get() {
        return Objects.requireNonNull(buffer, label);
    }

    /** Returns a vector of some elements. */
    Batch vector(long from, long count) {
        return new Batch(get(), from, 1, count, count);
    }

    @Override
    public void close() {
        if (buffer != null) {
            buffer.close();
        }
    }
}
