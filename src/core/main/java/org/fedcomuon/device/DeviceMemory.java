package org.fedcomuon.device;

import static java.util.stream.Collectors.joining;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A native context and the memory it has given out. Apart from {@link NativeDevice} so that both can be freed when the
 * device has been forgotten. Allocating and freeing work on any thread.
 */
final class DeviceMemory implements AutoCloseable, Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(Device.class);

    private final String deviceName;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment context; // guarded by the arena like a buffer: not destroyed while a call uses it
    private final Set<BufferMemory> open = ConcurrentHashMap.newKeySet();
    private final Set<StreamEvent> events = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean closed = new AtomicBoolean();
    private final AtomicLong peak = new AtomicLong();
    private volatile boolean leftToCleaner;

    DeviceMemory(String deviceName, MemorySegment context) {
        this.deviceName = deviceName;
        this.context = context.reinterpret(arena, FedComuonNative::fcm_context_destroy);
    }

    String deviceName() {
        return deviceName;
    }

    boolean isClosed() {
        return closed.get();
    }

    MemorySegment context() {
        if (closed.get()) {
            throw new IllegalStateException(deviceName + " is closed");
        }
        return context;
    }

    BufferMemory allocate(String label, ElementType type, long length) {
        long bytes;
        try {
            bytes = Math.multiplyExact(length, type.bytes());
        } catch (ArithmeticException e) {
            bytes = -1;
        }
        if (bytes < 0) {
            throw new DeviceException.InvalidOperand("%s: %d elements of %s".formatted(label, length, type));
        }
        var memory = new BufferMemory(this, address(bytes), this::free, label, type, length);
        open.add(memory);
        return memory;
    }

    /** Describes memory that somebody else frees. */
    BufferMemory view(String label, ElementType type, MemorySegment memory) {
        var view = new BufferMemory(
                this,
                MemorySegment.ofAddress(memory.address()),
                address -> {},
                label,
                type,
                memory.byteSize() / type.bytes());
        open.add(view);
        return view;
    }

    /** Allocates host memory that the device copies from and to by itself, as large as {@code twin}. */
    BufferMemory allocateHost(BufferMemory twin) {
        MemorySegment address = hostAddress(twin.length() * twin.type().bytes());
        var memory = new BufferMemory(
                this, address, this::freeHost, "mirror of " + twin.label(), twin.type(), twin.length());
        open.add(memory);
        return memory;
    }

    /** Allocates memory that is not tied to a buffer; {@link #close} frees it too. */
    MemorySegment address(long bytes) {
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            var address = local.allocate(FedComuonNative.C_POINTER);
            calls.check(
                    FedComuonNative.fcm_buffer_allocate(context(), bytes, address, calls.error()),
                    "fcm_buffer_allocate");
            peak.accumulateAndGet(liveBytes(), Math::max);
            return address.get(FedComuonNative.C_POINTER, 0);
        }
    }

    /** Allocates host memory that is not tied to a buffer; {@link #close} frees it too. */
    MemorySegment hostAddress(long bytes) {
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            var address = local.allocate(FedComuonNative.C_POINTER);
            calls.check(
                    FedComuonNative.fcm_host_allocate(context(), bytes, address, calls.error()), "fcm_host_allocate");
            return address.get(FedComuonNative.C_POINTER, 0).reinterpret(bytes);
        }
    }

    private synchronized void freeHost(MemorySegment memory) {
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            calls.check(FedComuonNative.fcm_host_free(context, memory, calls.error()), "fcm_host_free");
        }
    }

    /** Not while {@link #close} destroys the context: the cleaner's thread may be freeing a forgotten buffer. */
    synchronized void free(MemorySegment memory) {
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            calls.check(FedComuonNative.fcm_buffer_free(context, memory, calls.error()), "fcm_buffer_free");
        }
    }

    void forget(BufferMemory memory) {
        open.remove(memory);
    }

    void add(StreamEvent event) {
        events.add(event);
    }

    void forget(StreamEvent event) {
        events.remove(event);
    }

    long liveBytes() {
        try (Arena local = Arena.ofConfined()) {
            var calls = new NativeCalls(local);
            var bytes = local.allocate(FedComuonNative.C_LONG);
            calls.check(FedComuonNative.fcm_live_bytes(context(), bytes, calls.error()), "fcm_live_bytes");
            return bytes.get(FedComuonNative.C_LONG, 0);
        }
    }

    /** Returns the most that {@link #liveBytes} has been. */
    long peakBytes() {
        return peak.get();
    }

    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        try {
            free();
        } catch (IllegalStateException inUse) {
            closed.set(false); // or the rest could never be freed
            throw new IllegalStateException("%s is in use on another thread".formatted(deviceName), inUse);
        }
    }

    private void free() {
        List<BufferMemory> left = List.copyOf(open);
        if (!left.isEmpty()) {
            LOG.warn(
                    "{} closed with {} buffers open, freed now: {}",
                    deviceName,
                    left.size(),
                    left.stream().map(BufferMemory::describe).sorted().collect(joining(", ")));
            left.forEach(BufferMemory::close);
        }
        List.copyOf(events).forEach(StreamEvent::close);
        synchronized (this) {
            arena.close();
        }
    }

    /** Says that the device is to be closed when it has become unreachable. */
    void leaveToCleaner() {
        leftToCleaner = true;
    }

    /** Called when the device has become unreachable. */
    @Override
    public void run() {
        if (!closed.get()) {
            if (!leftToCleaner) {
                LOG.warn("{}: device never closed, closed now", deviceName);
            }
            close();
        }
    }
}
