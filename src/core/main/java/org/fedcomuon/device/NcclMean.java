package org.fedcomuon.device;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.ToIntFunction;
import org.fedcomuon.internal.bindings.nccl.NcclNative;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Computes means over the vectors of a {@link NcclGroup} of GPUs, as one of them sees it: without the host and at the
 * speed of the links between them.
 *
 * <p>NCCL sums in an order of its own, which changes with the number of devices; so do the last bits. A federation
 * whose results must not depend on placement gathers and sums in client order instead.
 *
 * <p>Every device's thread makes the same calls with the same lengths, and none has a result before all have called.
 * When one fails, its communicator is aborted and the others are told: their calls fail too, and so do all later ones.
 * A call that has waited for the others for longer than the time limit of the group fails in the same way. So no kernel
 * is left waiting for a device that will not come.
 *
 * <p>Not thread-safe; confined to the device thread.
 */
public final class NcclMean implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NcclMean.class);

    /** How long to wait before looking again, at first and at most. */
    private static final long SHORTEST_PAUSE = 10_000;

    private static final long LONGEST_PAUSE = 1_000_000;

    private final NcclGroup group;
    private final int rank;
    private final NativeDevice device;
    private MemorySegment communicator = MemorySegment.NULL; // null when there is none, or no longer
    private boolean closed;

    private NcclMean(NcclGroup group, int rank, NativeDevice device) {
        this.group = group;
        this.rank = rank;
        this.device = device;
    }

    static NcclMean join(NcclGroup group, int rank, NativeDevice device) {
        var mean = new NcclMean(group, rank, device);
        String what = "joining " + group.name;
        mean.orTellOthers(() -> {
            mean.requireGroup(what);
            device.stream(); // makes it current
            var made = new MemorySegment[1];
            group.called(rank);
            int result = group.nccl.join(group.id, group.ranks(), rank, made);
            mean.communicator = made[0];
            mean.awaitPosted(result, what);
        });
        return mean;
    }

    /** Returns the library and its version. */
    public String title() {
        return group.nccl.title();
    }

    /** Replaces the vector of {@code x}, one client of this device, by the mean over all devices, and waits for it. */
    public void average(Batch x) {
        reduce(x, NcclNative.ncclAvg(), "mean");
    }

    /** Replaces the vector of {@code x}, one client of this device, by the sum over all devices, and waits for it. */
    public void sum(Batch x) {
        reduce(x, NcclNative.ncclSum(), "sum");
    }

    private void reduce(Batch x, int operation, String name) {
        if (closed) {
            throw new IllegalStateException("the mean over %s is closed".formatted(group.name));
        }
        if (x.clients() != 1) {
            throw new DeviceException.InvalidOperand(
                    "%s: one vector per device, not %d".formatted(x.buffer().label(), x.clients()));
        }
        if (!device.equals(x.buffer().device())) {
            throw new DeviceException.InvalidOperand("%s is on %s, not on %s"
                    .formatted(x.buffer().label(), x.buffer().device().name(), device.name()));
        }
        String what = "%s of %d elements of %s over %s"
                .formatted(name, x.length(), x.buffer().label(), group.name);
        int type = x.buffer().type() == ElementType.FLOAT64 ? NcclNative.ncclFloat64() : NcclNative.ncclFloat32();
        MemorySegment vector = x.buffer().at(device, x.offset());
        orTellOthers(() -> {
            requireGroup(what);
            MemorySegment stream = device.stream(); // makes it current, too
            group.called(rank);
            awaitPosted(group.nccl.allReduce(vector, x.length(), type, operation, communicator, stream), what);
            await(device::isDone, what);
        });
    }

    /** Does something that the other devices wait for, or aborts and tells them. */
    private void orTellOthers(Runnable body) {
        try {
            body.run();
        } catch (RuntimeException e) {
            abort(String.valueOf(e.getMessage()));
            throw e;
        }
    }

    /** Waits until NCCL has given its work to the stream: nothing else may be given to it before. */
    private void awaitPosted(int result, String what) {
        if (result == NcclNative.ncclInProgress()) {
            await(() -> group.nccl.asyncError(communicator) == NcclNative.ncclSuccess(), what);
        } else if (result != NcclNative.ncclSuccess()) {
            throw failed(what, result);
        }
    }

    /**
     * Looks again and again whether something is done. A call that waits, such as {@link Device#synchronize}, would not
     * return when another device is dead.
     */
    private void await(BooleanSupplier isDone, String what) {
        long start = System.nanoTime();
        long pause = SHORTEST_PAUSE;
        while (!isDone.getAsBoolean()) {
            int state = group.nccl.asyncError(communicator);
            if (state != NcclNative.ncclSuccess() && state != NcclNative.ncclInProgress()) {
                throw failed(what, state);
            }
            requireGroup(what);
            if (System.nanoTime() - start > group.limit.toNanos()) {
                throw late(what);
            }
            LockSupport.parkNanos(pause);
            pause = Math.min(LONGEST_PAUSE, 2 * pause);
        }
    }

    private DeviceException failed(String what, int result) {
        return CudaStatus.nccl(device.name(), what, result, group.nccl.words(result));
    }

    private DeviceException late(String what) {
        String behind = String.join(",", group.behind(rank));
        return new DeviceException.Fault(
                "%s: %s: not done after %s; %s"
                        .formatted(
                                device.name(),
                                what,
                                seconds(group.limit),
                                behind.isEmpty() ? "all devices have called" : behind + " has not called"),
                !behind.isEmpty());
    }

    private static String seconds(Duration limit) {
        return "%.3g s".formatted(limit.toNanos() * 1e-9);
    }

    /** Does not start or go on when another device has failed. */
    private void requireGroup(String what) {
        group.failure().ifPresent(reason -> {
            throw new DeviceException.Fault(
                    "%s: no %s after a failure: %s".formatted(device.name(), what, reason), true);
        });
    }

    /**
     * Gives up: kernels of this device that wait for others end, and the others no longer wait for this one. Their
     * results mean nothing.
     */
    public void abandon() {
        abort(device.name() + " has given up");
    }

    /** Every thread ends its own communicator and no other, so that nobody uses one that is being freed. */
    private void abort(String reason) {
        group.fail(reason);
        end("ncclCommAbort", group.nccl::abort);
    }

    private void end(String function, ToIntFunction<MemorySegment> call) {
        if (communicator.equals(MemorySegment.NULL)) {
            return;
        }
        MemorySegment own = communicator;
        communicator = MemorySegment.NULL;
        int result = call.applyAsInt(own);
        if (result != NcclNative.ncclSuccess()) {
            LOG.warn("{}: {} answered {}", device.name(), function, group.nccl.words(result));
        }
    }

    /** Ends the communicator of this device, before the device is closed. Closing twice does nothing. */
    @Override
    public void close() {
        closed = true;
        if (group.failure().isPresent()) {
            end("ncclCommAbort", group.nccl::abort);
        } else {
            end("ncclCommDestroy", group.nccl::destroy);
        }
    }
}
