package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;

/**
 * A point in the stream of a device or of a {@link CopyStream}, for other streams to wait for without blocking the
 * host. On the CPU all work is done when a call returns, and there is nothing to wait for.
 *
 * <p>Not thread-safe; {@link #record} is confined to the device thread. Other devices wait on threads of their own
 * ({@link Device#await}, {@link CopyStream#await}), for the last recording at that moment; an event that was never
 * recorded delays nothing. The caller that created an event closes it; the device closes those that are left.
 */
public final class StreamEvent implements AutoCloseable {
    private final DeviceMemory memory;
    private final Arena arena = Arena.ofShared(); // stands guard: not destroyed while another thread's call uses it
    private final MemorySegment event;

    /** @param memory the context whose stream it is recorded on */
    StreamEvent(DeviceMemory memory) {
        this.memory = memory;
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            var address = local.allocate(FedComuonNative.C_POINTER);
            calls.check(FedComuonNative.fcm_event_create(memory.context(), address, calls.error()), "fcm_event_create");
            event = address.get(FedComuonNative.C_POINTER, 0).reinterpret(arena, FedComuonNative::fcm_event_destroy);
        }
        memory.add(this);
    }

    /** Records the event after all work that its stream has been given so far. */
    public void record() {
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            calls.check(FedComuonNative.fcm_event_record(live(), calls.error()), "fcm_event_record");
        }
    }

    /** Makes later work of {@code context} wait for the event. */
    void await(MemorySegment context) {
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            calls.check(FedComuonNative.fcm_event_wait(context, live(), calls.error()), "fcm_event_wait");
        }
    }

    private MemorySegment live() {
        if (!arena.scope().isAlive()) {
            throw new IllegalStateException("an event of %s is closed".formatted(memory.deviceName()));
        }
        return event;
    }

    /** Closing twice does nothing. */
    @Override
    public synchronized void close() {
        if (arena.scope().isAlive()) {
            arena.close();
            memory.forget(this);
        }
    }
}
