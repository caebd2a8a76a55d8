package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The memory behind a {@link Buffer}, apart from it so that it can be freed when the buffer has been forgotten. A
 * shared arena stands guard: it refuses to close while a native call works on the memory, and to be used once closed.
 */
final class BufferMemory implements AutoCloseable, Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(Buffer.class);

    private final DeviceMemory owner;
    private final String label;
    private final ElementType type;
    private final long length;
    private final Arena arena = Arena.ofShared();
    private final AtomicBoolean closed = new AtomicBoolean();
    private final MemorySegment segment;

    /** @param free gives the address back */
    BufferMemory(
            DeviceMemory owner,
            MemorySegment address,
            Consumer<MemorySegment> free,
            String label,
            ElementType type,
            long length) {
        this.owner = owner;
        this.label = label;
        this.type = type;
        this.length = length;
        this.segment = address.reinterpret(length * type.bytes(), arena, free);
    }

    String label() {
        return label;
    }

    ElementType type() {
        return type;
    }

    long length() {
        return length;
    }

    boolean isClosed() {
        return closed.get();
    }

    MemorySegment segment() {
        if (closed.get()) {
            throw new IllegalStateException("%s of %s is closed".formatted(label, owner.deviceName()));
        }
        return segment;
    }

    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            try {
                arena.close();
            } catch (IllegalStateException inUse) {
                closed.set(false);
                throw new IllegalStateException(
                        "%s of %s is in use by an operation".formatted(label, owner.deviceName()), inUse);
            }
            owner.forget(this);
        }
    }

    /** Called when the buffer has become unreachable. */
    @Override
    public void run() {
        if (!closed.get()) {
            LOG.warn("{}: buffer never closed, freed now: {}", owner.deviceName(), describe());
            close();
        }
    }

    String describe() {
        return "%s (%d bytes)".formatted(label, length * type.bytes());
    }
}
