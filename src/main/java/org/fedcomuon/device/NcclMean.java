package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ToIntFunction;
import org.fedcomuon.internal.bindings.nccl.NcclNative;

/**
 * Means over the vectors of several GPUs by NCCL, without the host and at the speed of the links between them.
 *
 * <p>NCCL sums in an order of its own, which changes with the number of devices; so do the last bits. A federation that
 * must not depend on where its clients are gathers and sums in client order instead, and this is for those who choose
 * speed.
 *
 * <p>Thread-safe. One thread makes it for all devices; then each device's own thread calls {@link #average} or
 * {@link #sum}, all of them with the same lengths in the same order; none has a result before all have come. When the
 * call of one fails the others are not left waiting for it: theirs end as well, and there are no more.
 */
public final class NcclMean implements AutoCloseable {
    private final NcclLibrary nccl;
    private final String name;
    private final DeviceKind kind;
    private final int[] ordinals;
    private final MemorySegment[] communicators;
    private final AtomicBoolean closed = new AtomicBoolean();
    private final AtomicBoolean broken = new AtomicBoolean();

    private NcclMean(NcclLibrary nccl, String name, DeviceKind kind, int[] ordinals, MemorySegment[] communicators) {
        this.nccl = nccl;
        this.name = name;
        this.kind = kind;
        this.ordinals = ordinals;
        this.communicators = communicators;
    }

    /**
     * For these devices, which are all CUDA's or all simulated, and each here once.
     *
     * @throws DeviceException.LibraryMissing when NCCL cannot be used; the message says why
     * @throws DeviceException.InvalidOperand when the devices do not go together
     * @throws DeviceException.Fault when NCCL does not start
     */
    public static NcclMean of(List<Device> devices) {
        if (devices.isEmpty()) {
            throw new DeviceException.InvalidOperand("a mean over no devices");
        }
        var first = (NativeDevice) devices.getFirst();
        String name = String.join(",", devices.stream().map(Device::name).toList());
        var ordinals = new int[devices.size()];
        for (int i = 0; i < ordinals.length; i++) {
            var device = (NativeDevice) devices.get(i);
            if (device.isHost() || device.kind() != first.kind()) {
                throw new DeviceException.InvalidOperand("NCCL works on GPUs of one kind, not on " + name);
            }
            ordinals[i] = device.ordinal();
        }
        NcclLibrary nccl;
        try {
            nccl = new NcclLibrary(
                    CudaLibraries.opened(first, CudaLibraries.linker(first.kind()), CudaLinker.Vendor.NCCL));
        } catch (DeviceException.LibraryMissing e) {
            throw new DeviceException.LibraryMissing("NCCL cannot be used on %s: %s".formatted(name, e.getMessage()));
        }
        var communicators = new MemorySegment[ordinals.length];
        int result = nccl.init(ordinals, communicators);
        if (result != NcclNative.ncclSuccess()) {
            throw CudaStatus.nccl(name, "ncclCommInitAll", result, nccl.words(result));
        }
        return new NcclMean(nccl, name, first.kind(), ordinals, communicators);
    }

    /** Which library computes, with its version. */
    public String title() {
        return nccl.title();
    }

    /** The vector of {@code x}, one client of a device that this was made for, becomes the mean of all the devices'. */
    public void average(Batch x) {
        reduce(x, NcclNative.ncclAvg(), "mean");
    }

    /** As {@link #average}, the sum. */
    public void sum(Batch x) {
        reduce(x, NcclNative.ncclSum(), "sum");
    }

    private void reduce(Batch x, int operation, String what) {
        if (closed.get()) {
            throw new IllegalStateException("the mean over %s is closed".formatted(name));
        }
        if (broken.get()) {
            throw new DeviceException.Fault(
                    "%s: no %s over %s after a failure"
                            .formatted(x.buffer().device().name(), what, name),
                    true);
        }
        if (x.clients() != 1) {
            throw new DeviceException.InvalidOperand(
                    "%s: one vector a device, not %d".formatted(x.buffer().label(), x.clients()));
        }
        var device = (NativeDevice) x.buffer().device();
        MemorySegment stream = device.stream(); // makes it current, too
        int type = x.buffer().type() == ElementType.FLOAT64 ? NcclNative.ncclFloat64() : NcclNative.ncclFloat32();
        int result = nccl.allReduce(
                x.buffer().at(device, x.offset()), x.length(), type, operation, communicators[rank(device)], stream);
        if (result != NcclNative.ncclSuccess()) {
            String words = nccl.words(result);
            abandon();
            throw CudaStatus.nccl(
                    device.name(),
                    "%s of %d elements of %s over %s"
                            .formatted(what, x.length(), x.buffer().label(), name),
                    result,
                    words);
        }
    }

    /** The others may be within NCCL, waiting for a rank that will not come. */
    private void abandon() {
        if (broken.compareAndSet(false, true)) {
            end("ncclCommAbort", nccl::abort);
        }
    }

    private void end(String function, ToIntFunction<MemorySegment> call) {
        for (int i = communicators.length - 1; i >= 0; i--) {
            int result = call.applyAsInt(communicators[i]);
            if (result != NcclNative.ncclSuccess()) {
                CudaStatus.LOG.warn("{}: {} answered {}", name, function, nccl.words(result));
            }
        }
    }

    private int rank(NativeDevice device) {
        for (int i = 0; i < ordinals.length; i++) {
            if (device.kind() == kind && ordinals[i] == device.ordinal()) {
                return i;
            }
        }
        throw new DeviceException.InvalidOperand("%s is not one of %s".formatted(device.name(), name));
    }

    /** Idempotent. Comes after the last call of every device's thread, and before the devices are closed. */
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        if (!broken.get()) {
            end("ncclCommDestroy", nccl::destroy);
        }
    }
}
