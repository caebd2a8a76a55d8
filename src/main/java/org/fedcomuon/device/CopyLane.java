package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.jspecify.annotations.Nullable;

/**
 * A second line of work of a GPU, for copies to it that run beside its operations: from its own memory or that of
 * another device. Nothing orders the two lines, nor a lane and the device that it copies from, but {@link Mark}s; so
 * before a copy it waits for what wrote the values, and before they are overwritten or freed that waits for it.
 *
 * <p>On the CPU there is one line of work, and a copy is done when it returns.
 *
 * <p>Of the device's thread. Closed by whoever asked for it, before the device.
 */
public final class CopyLane implements AutoCloseable {
    private final NativeDevice device;
    private final NativeCalls calls = new NativeCalls(Arena.ofAuto());
    private final @Nullable DeviceMemory own; // a context with a stream of its own; null on the CPU

    /**
     * By the number of a device that is copied from. The native copy orders both contexts that it is given: these are
     * nobody else's, so that a copy holds nothing up that runs there.
     */
    private final Map<Integer, DeviceMemory> doors = new LinkedHashMap<>();

    CopyLane(NativeDevice device) {
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
                    "a copy lane of %s".formatted(device.name()), address.get(FedComuonNative.C_POINTER, 0));
        }
    }

    /** Copies {@code count} elements to a buffer of this device, after what this lane was given before. */
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

    /** A new mark in the work of this lane. */
    public Mark mark() {
        context();
        return new Mark(own == null ? device.memory() : own);
    }

    /** What this lane is given from now on runs after the mark. */
    public void await(Mark mark) {
        mark.await(context());
    }

    /**
     * Returns when everything that this lane was given is done.
     *
     * @throws DeviceException.Fault when something of it failed
     */
    public void synchronize() {
        if (own != null) {
            calls.check(FedComuonNative.fcm_synchronize(context(), calls.error()), "fcm_synchronize");
        }
    }

    /** Waits for the copies that are under way. Closing twice does nothing. */
    @Override
    public void close() {
        doors.values().forEach(DeviceMemory::close);
        if (own != null) {
            own.close();
        }
    }
}
