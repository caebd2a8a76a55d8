package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ToIntFunction;
import org.fedcomuon.internal.bindings.nccl.NcclNative;
import org.fedcomuon.internal.vendor.NcclLibrary;
import org.fedcomuon.internal.vendor.VendorException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Computes means over the vectors of several GPUs by NCCL, without the host and at the speed of the links between them.
 *
 * <p>NCCL sums in an order of its own, which changes with the number of devices; so do the last bits. A federation
 * whose results must not depend on placement gathers and sums in client order instead.
 *
 * <p>Thread-safe. One thread creates it for all devices; then each device's own thread calls {@link #average} or
 * {@link #sum}, all of them with the same lengths in the same order. None has a result before all have called. When the
 * call of one fails, those of the others fail too, and so do all later calls.
 */
public final class NcclMean implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NcclMean.class);

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
     * Creates one for distinct devices that are all real or all simulated GPUs.
     *
     * @throws DeviceException.LibraryMissing when NCCL cannot be used; the message has the reason
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
            nccl = CudaLibraries.bindings(first.kind()).nccl();
        } catch (VendorException.LibraryMissing e) {
            throw new DeviceException.LibraryMissing("NCCL cannot be used on %s: %s".formatted(name, e.getMessage()));
        }
        var communicators = new MemorySegment[ordinals.length];
        int result = nccl.init(ordinals, communicators);
        if (result != NcclNative.ncclSuccess()) {
            throw CudaStatus.nccl(name, "ncclCommInitAll", result, nccl.words(result));
        }
        return new NcclMean(nccl, name, first.kind(), ordinals, communicators);
    }

    /** Returns the library and its version. */
    public String title() {
        return nccl.title();
    }

    /** Replaces the vector of {@code x}, one client of one of the devices, by the mean over all devices. */
    public void average(Batch x) {
        reduce(x, NcclNative.ncclAvg(), "mean");
    }

    /** Replaces the vector of {@code x} by the sum over all devices. */
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
                    "%s: one vector per device, not %d".formatted(x.buffer().label(), x.clients()));
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

    /** The other devices may be waiting within NCCL for a rank that will not call. */
    private void abandon() {
        if (broken.compareAndSet(false, true)) {
            end("ncclCommAbort", nccl::abort);
        }
    }

    private void end(String function, ToIntFunction<MemorySegment> call) {
        for (int i = communicators.length - 1; i >= 0; i--) {
            int result = call.applyAsInt(communicators[i]);
            if (result != NcclNative.ncclSuccess()) {
                LOG.warn("{}: {} answered {}", name, function, nccl.words(result));
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

    /**
     * Destroys the communicators. Called after the last call of every device's thread, and before the devices are
     * closed. Closing twice does nothing.
     */
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
