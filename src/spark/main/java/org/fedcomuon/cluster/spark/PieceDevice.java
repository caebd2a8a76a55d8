package org.fedcomuon.cluster.spark;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.fedcomuon.cluster.spark.Message.Piece;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.InstructionSet;

/**
 * The device of a process that computes with the exponents and sums of others, piece by piece, and the memory of these
 * pieces, which is outside the heap and used again. Thread-safe.
 */
final class PieceDevice implements AutoCloseable {
    private static final int SLOTS = 8; // that are allocated together

    private final ExecutorService owner; // of the device, which knows only one thread
    private final Thread thread;
    private final Device device;
    private final Map<ElementType, ConcurrentLinkedQueue<Slot>> free = new EnumMap<>(ElementType.class);
    private final List<Buffer> buffers = new ArrayList<>(); // of the owner

    PieceDevice() {
        owner = Executors.newSingleThreadExecutor(
                Thread.ofPlatform().daemon().name("exact-mean").factory());
        thread = submitted(Thread::currentThread);
        device = call(() -> Devices.open("cpu:0", 1, InstructionSet.AUTO));
        for (ElementType type : List.of(ElementType.UINT8, ElementType.INT64, ElementType.FLOAT32)) {
            free.put(type, new ConcurrentLinkedQueue<>());
        }
    }

    /** Memory of a piece. Whoever uses it holds it; it is free when nobody does. */
    final class Slot {
        private final Buffer buffer;
        private final long offset;
        private final MemorySegment memory;
        private final AtomicInteger holders = new AtomicInteger();

        private Slot(Buffer buffer, long offset) {
            this.buffer = buffer;
            this.offset = offset;
            int bytes = buffer.type().bytes();
            this.memory = buffer.segment().asSlice(offset * bytes, (long) Piece.ELEMENTS * bytes);
        }

        /** Returns the memory of the first elements. */
        MemorySegment memory(int elements) {
            return memory.asSlice(0, (long) elements * buffer.type().bytes());
        }

        private Batch batch(int elements) {
            return new Batch(buffer, offset, 1, elements, elements);
        }

        Slot hold() {
            holders.incrementAndGet();
            return this;
        }

        void release() {
            if (holders.decrementAndGet() == 0) {
                of(buffer.type()).add(this);
            }
        }
    }

    private ConcurrentLinkedQueue<Slot> of(ElementType type) {
        ConcurrentLinkedQueue<Slot> slots = free.get(type);
        if (slots == null) {
            throw new IllegalArgumentException("no piece is of type " + type);
        }
        return slots;
    }

    /** Returns memory that the caller holds. */
    Slot take(ElementType type) {
        ConcurrentLinkedQueue<Slot> slots = of(type);
        while (true) {
            Slot slot = slots.poll();
            if (slot != null) {
                return slot.hold();
            }
            call(() -> {
                Buffer buffer = device.allocate("pieces on their way", type, (long) SLOTS * Piece.ELEMENTS);
                buffers.add(buffer);
                for (int i = 0; i < SLOTS; i++) {
                    slots.add(new Slot(buffer, (long) i * Piece.ELEMENTS));
                }
                return true;
            });
        }
    }

    /** Does work on the thread of the device, after all that was submitted before. */
    void submit(Runnable work) {
        owner.execute(work);
    }

    /** Does work on the thread of the device, after all that was submitted before, and returns when it is done. */
    void run(Runnable work) {
        call(() -> {
            work.run();
            return true;
        });
    }

    /** Replaces the exponents of the first part by the maximum of all. In submitted work only. */
    void combine(List<Slot> parts, int elements) {
        if (parts.size() > 1) {
            device.combineExponents(
                    parts.stream().map(part -> part.batch(elements)).toList(),
                    parts.getFirst().batch(elements));
            device.synchronize();
        }
    }

    /** Computes the mean of the sums of all parts. In submitted work only. */
    void finish(List<Slot> sums, Slot exponents, int elements, long terms, double total, Slot mean) {
        device.finishMean(
                sums.stream().map(part -> part.batch(elements)).toList(),
                exponents.batch(elements),
                terms,
                total,
                List.of(mean.batch(elements)));
        device.synchronize();
    }

    private <T> T call(Callable<T> work) {
        if (!Thread.currentThread().equals(thread)) {
            return submitted(work);
        }
        try {
            return work.call();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private <T> T submitted(Callable<T> work) {
        boolean interrupted = false;
        var result = owner.submit(work);
        try {
            while (true) {
                try {
                    return result.get();
                } catch (InterruptedException e) {
                    interrupted = true; // it is short, and uses memory that must not be freed under it
                } catch (ExecutionException e) {
                    if (e.getCause() instanceof RuntimeException cause) {
                        throw cause;
                    }
                    throw new IllegalStateException(e.getCause());
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override
    public void close() {
        call(() -> {
            buffers.forEach(Buffer::close);
            device.close();
            return true;
        });
        owner.close();
    }
}
