package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.ToIntFunction;
import org.fedcomuon.internal.bindings.nccl.NcclNative;
import org.fedcomuon.internal.vendor.NcclLibrary;
import org.fedcomuon.internal.vendor.VendorException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reduces vectors of integers over the GPUs of a {@link Group}, as one of them sees it: without the host and at the
 * speed of the links between them. NCCL reduces in an order of its own; maxima and sums of integers do not depend on
 * it, so results are bit-identical for any number of devices.
 *
 * <p>Every device's thread makes the same calls with the same lengths, and none has a result before all have called.
 * {@link #max} and {@link #sum} return when the work has been given to the device's stream, in order with its
 * operations, and {@link #await} when it is done.
 *
 * <p>When one device fails, its communicator is aborted and the others are told: their calls fail too, and so do all
 * later ones. A call that has waited for the others for longer than the time limit of the group fails in the same way.
 * So no kernel is left waiting for a device that will not come.
 *
 * <p>Not thread-safe; confined to the device thread.
 */
public final class NcclReduction implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NcclReduction.class);

    /** How long to wait before looking again, at first and at most. */
    private static final long SHORTEST_PAUSE = 10_000;

    private static final long LONGEST_PAUSE = 1_000_000;

    private final Group group;
    private final int rank;
    private final NativeDevice device;
    private MemorySegment communicator = MemorySegment.NULL; // null when there is none, or no longer
    private String last = "reduction"; // what the stream was given last, for messages
    private boolean closed;

    private NcclReduction(Group group, int rank, NativeDevice device) {
        this.group = group;
        this.rank = rank;
        this.device = device;
    }

    static NcclReduction join(Group group, int rank, NativeDevice device) {
        var joined = new NcclReduction(group, rank, device);
        String what = "joining " + group.name;
        joined.orTellOthers(() -> {
            joined.requireGroup(what);
            device.stream(); // makes it current
            var made = new MemorySegment[1];
            group.called(rank);
            int result = group.nccl.join(group.id, group.ranks(), rank, made);
            joined.communicator = made[0];
            joined.awaitPosted(result, what);
        });
        return joined;
    }

    /** Returns the library and its version. */
    public String title() {
        return group.nccl.title();
    }

    /**
     * Replaces the bytes of {@code x}, one vector of this device, by the maxima over all devices, as unsigned numbers.
     */
    public void max(Batch x) {
        reduce(x, ElementType.UINT8, NcclNative.ncclUint8(), NcclNative.ncclMax(), "maximum");
    }

    /** Replaces the integers of {@code x}, one vector of this device, by the sums over all devices, modulo 2^64. */
    public void sum(Batch x) {
        reduce(x, ElementType.INT64, NcclNative.ncclInt64(), NcclNative.ncclSum(), "sum");
    }

    private void reduce(Batch x, ElementType type, int ncclType, int operation, String name) {
        requireOpen();
        if (x.clients() != 1) {
            throw new DeviceException.InvalidOperand(
                    "%s: one vector per device, not %d".formatted(x.buffer().label(), x.clients()));
        }
        if (!device.equals(x.buffer().device())) {
            throw new DeviceException.InvalidOperand("%s is on %s, not on %s"
                    .formatted(x.buffer().label(), x.buffer().device().name(), device.name()));
        }
        x.buffer().requireType(type);
        String what = "%s of %d elements of %s over %s"
                .formatted(name, x.length(), x.buffer().label(), group.name);
        MemorySegment vector = x.buffer().at(device, x.offset());
        orTellOthers(() -> {
            requireGroup(what);
            MemorySegment stream = device.stream(); // makes it current, too
            group.called(rank);
            awaitPosted(group.nccl.allReduce(vector, x.length(), ncclType, operation, communicator, stream), what);
            last = what;
        });
    }

    /** Waits until the stream of this device has done all that it was given. */
    public void await() {
        requireOpen();
        orTellOthers(() -> {
            requireGroup(last);
            await(device::isDone, last);
        });
    }

    private void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the group of %s is closed".formatted(group.name));
        }
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

    /**
     * GPUs that reduce together by NCCL. Each of them has an {@link NcclReduction}; a failure of one is known to all.
     *
     * <p>Thread-safe. One thread creates it, and each device's own thread {@linkplain #join joins}.
     */
    public static final class Group {
        /** Seconds; see {@link #defaultTimeLimit}. */
        private static final String TIMEOUT_PROPERTY = "fedcomuon.nccl.timeout";

        private static final long DEFAULT_SECONDS = 600;

        final NcclLibrary nccl;
        final MemorySegment id; // read by all
        final String name;
        final Duration limit;
        private final DeviceKind kind;
        private final List<NativeDevice> devices;
        private final AtomicLongArray calls; // by rank: how many it has made
        private final AtomicReference<String> failure = new AtomicReference<>("");

        private Group(NcclLibrary nccl, MemorySegment id, String name, Duration limit, List<NativeDevice> devices) {
            this.nccl = nccl;
            this.id = id;
            this.name = name;
            this.limit = limit;
            this.kind = devices.getFirst().kind();
            this.devices = devices;
            calls = new AtomicLongArray(devices.size());
        }

        /**
         * Returns the time after which a device no longer waits for the others: ten minutes, or the seconds that the
         * system property {@code fedcomuon.nccl.timeout} has. Between GPUs of one machine NCCL does not notice that a
         * peer is dead, and would wait forever.
         *
         * @throws IllegalArgumentException when the property is not a positive number
         */
        public static Duration defaultTimeLimit() {
            String given = System.getProperty(TIMEOUT_PROPERTY, Long.toString(DEFAULT_SECONDS));
            try {
                return requirePositive(Duration.ofMillis(Math.round(1000 * Double.parseDouble(given))));
            } catch (NumberFormatException e) {
                throw new IllegalArgumentException("%s = %s is not a number".formatted(TIMEOUT_PROPERTY, given), e);
            }
        }

        private static Duration requirePositive(Duration limit) {
            if (!limit.isPositive()) {
                throw new IllegalArgumentException("a time limit of %s for NCCL is not positive".formatted(limit));
            }
            return limit;
        }

        /**
         * Creates a group of distinct devices that are all real or all simulated GPUs.
         *
         * @param timeLimit how long a device waits for the others, in {@link #join} and in each reduction
         * @throws DeviceException.LibraryMissing when NCCL cannot be used; the message has the reason
         * @throws DeviceException.InvalidOperand when the devices do not go together
         * @throws DeviceException.Fault when NCCL does not start
         */
        public static Group of(List<Device> devices, Duration timeLimit) {
            requirePositive(timeLimit);
            if (devices.isEmpty()) {
                throw new DeviceException.InvalidOperand("a group of no devices");
            }
            var members = new ArrayList<NativeDevice>();
            devices.forEach(device -> members.add((NativeDevice) device));
            String name = String.join(",", devices.stream().map(Device::name).toList());
            DeviceKind kind = members.getFirst().kind();
            var ordinals = new HashSet<Integer>();
            for (NativeDevice device : members) {
                if (device.isHost() || device.kind() != kind) {
                    throw new DeviceException.InvalidOperand("NCCL works on GPUs of one kind, not on " + name);
                }
                if (!ordinals.add(device.ordinal())) {
                    throw new DeviceException.InvalidOperand("NCCL takes each GPU once, not " + name);
                }
            }
            NcclLibrary nccl;
            try {
                nccl = CudaLibraries.bindings(kind).nccl();
            } catch (VendorException.LibraryMissing e) {
                throw new DeviceException.LibraryMissing(
                        "NCCL cannot be used on %s: %s".formatted(name, e.getMessage()));
            }
            MemorySegment id = Arena.ofAuto().allocate(NcclLibrary.idBytes());
            int result = nccl.uniqueId(id);
            if (result != NcclNative.ncclSuccess()) {
                throw CudaStatus.nccl(name, "ncclGetUniqueId", result, nccl.words(result));
            }
            return new Group(nccl, id, name, timeLimit, List.copyOf(members));
        }

        /**
         * Joins a device of the group, on its own thread, and waits until all have joined.
         *
         * @throws DeviceException.InvalidOperand when the device is not of the group
         * @throws DeviceException.Fault when NCCL does not start, or another device has not joined in time
         */
        public NcclReduction join(Device device) {
            var own = (NativeDevice) device;
            for (int rank = 0; rank < devices.size(); rank++) {
                if (own.kind() == kind && own.ordinal() == devices.get(rank).ordinal()) {
                    return NcclReduction.join(this, rank, own);
                }
            }
            throw new DeviceException.InvalidOperand("%s is not one of %s".formatted(device.name(), name));
        }

        int ranks() {
            return devices.size();
        }

        /** Counts a call of a rank, so that those who wait for it can say so. */
        void called(int rank) {
            calls.incrementAndGet(rank);
        }

        /** Returns the devices that have made fewer calls than {@code rank}; empty when all have made as many. */
        List<String> behind(int rank) {
            var all = new ArrayList<String>();
            for (int other = 0; other < devices.size(); other++) {
                if (calls.get(other) < calls.get(rank)) {
                    all.add(devices.get(other).name());
                }
            }
            return all;
        }

        /** Tells the others that a device has failed, so that they no longer wait. The first reason is kept. */
        void fail(String reason) {
            failure.compareAndSet("", reason);
        }

        /** Returns why a device has failed, if one has. */
        Optional<String> failure() {
            return Optional.of(failure.get()).filter(reason -> !reason.isEmpty());
        }
    }
}
