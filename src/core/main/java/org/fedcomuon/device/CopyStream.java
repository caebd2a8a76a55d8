package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.jspecify.annotations.Nullable;

/**
 * A second stream of a GPU, for copies to it that run concurrently with its operations: from its own memory or that of
 * another device. Only {@link StreamEvent}s order it with other streams: the caller makes it wait for what wrote the
 * values before a copy, and makes what overwrites or frees them wait for it.
 *
 * <p>On the CPU a copy is done when the call returns.
 *
 * <p>Not thread-safe; confined to the device thread. The caller of {@link Device#copyStream} closes it, before the
 * device.
 */
public final class CopyStream implements AutoCloseable {
    private final NativeDevice device;
    private final NativeCalls calls = new NativeCalls(Arena.ofAuto());
    private final @Nullable DeviceMemory own; // a context with a stream of its own; null on the CPU

    /**
     * By the number of the device that is copied from. The native copy orders both contexts that it is given: these are
     * used by nothing else, so that a copy delays no operation there.
     */
    private final Map<Integer, DeviceMemory> doors = new LinkedHashMap<>();

    CopyStream(NativeDevice device) {
        this.device = device;
        device.context();
        own = device.isHost() ? null : open(device.ordinal());
    }

    private DeviceMemory open(int ordinal) {
        try (Arena local = Arena.ofConfined()) {
            var address = local.allocate(FedComuonNative.C_POINTER);
            calls.check(
                    FedComuonNative.fcm_context_create(
                            device.kind().code(), ordinal, 1, InstructionSet.AUTO.code(), address, calls.error()),
                    "fcm_context_create");
            return new DeviceMemory(
                    "a copy stream of %s".formatted(device.name()), address.get(FedComuonNative.C_POINTER, 0));
        }
    }

    /** Copies {@code count} elements to a buffer of this device, after the earlier copies of this stream. */
    public void copy(Buffer to, long offset, Buffer from, long fromOffset, long count) {
        Buffer.requireCopy(to, offset, from, fromOffset, count);
        var source = (NativeDevice) from.device();
        MemorySegment context = context();
        calls.check(
                FedComuonNative.fcm_copy(
                        context,
                        to.at(device, offset),
                        door(source, context),
                        from.at(source, fromOffset),
                        count * to.type().bytes(),
                        calls.error()),
                "fcm_copy");
    }

    private MemorySegment door(NativeDevice source, MemorySegment context) {
        if (own == null || source.kind() != device.kind()) {
            return source.memory().context();
        }
        if (source.ordinal() == device.ordinal()) {
            return context;
        }
        DeviceMemory door = doors.get(source.ordinal());
        if (door == null) {
            door = open(source.ordinal());
            doors.put(source.ordinal(), door);
        }
        return door.context();
    }

    private MemorySegment context() {
        MemorySegment main = device.context(); // on the right thread and alive
        return own == null ? main : own.context();
    }

    /** Creates an event on this stream. */
    public StreamEvent event() {
        context();
        return new StreamEvent(own == null ? device.memory() : own);
    }

    /** Makes later copies of this stream wait for the event. */
    public void await(StreamEvent event) {
        event.await(context());
    }

    /**
     * Waits until all copies of this stream are done.
     *
     * @throws DeviceException.Fault when one of them failed
     */
    public void synchronize() {
        if (own != null) {
            calls.check(FedComuonNative.fcm_synchronize(context(), calls.error()), "fcm_synchronize");
        }
    }

    /** Waits for the copies in progress. Closing twice does nothing. */
    @Override
    public void close() {
        doors.values().forEach(DeviceMemory::close);
        if (own != null) {
            own.close();
        }
    }
}
