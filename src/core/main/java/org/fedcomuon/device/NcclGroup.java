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
import org.fedcomuon.internal.bindings.nccl.NcclNative;
import org.fedcomuon.internal.vendor.NcclLibrary;
import org.fedcomuon.internal.vendor.VendorException;

/**
 * GPUs that compute means together by NCCL. Each of them has an {@link NcclMean}; a failure of one is known to all.
 *
 * <p>Thread-safe. One thread creates it, and each device's own thread {@linkplain #join joins}.
 */
public final class NcclGroup {
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

    private NcclGroup(NcclLibrary nccl, MemorySegment id, String name, Duration limit, List<NativeDevice> devices) {
        this.nccl = nccl;
        this.id = id;
        this.name = name;
        this.limit = limit;
        this.kind = devices.getFirst().kind();
        this.devices = devices;
        calls = new AtomicLongArray(devices.size());
    }

    /**
     * Returns the time after which a device no longer waits for the others: ten minutes, or the seconds that the system
     * property {@code fedcomuon.nccl.timeout} has. Between GPUs of one machine NCCL does not notice that a peer is
     * dead, and would wait forever.
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
     * @param timeLimit how long a device waits for the others, in {@link #join} and in each mean
     * @throws DeviceException.LibraryMissing when NCCL cannot be used; the message has the reason
     * @throws DeviceException.InvalidOperand when the devices do not go together
     * @throws DeviceException.Fault when NCCL does not start
     */
    public static NcclGroup of(List<Device> devices, Duration timeLimit) {
        requirePositive(timeLimit);
        if (devices.isEmpty()) {
            throw new DeviceException.InvalidOperand("a mean over no devices");
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
            throw new DeviceException.LibraryMissing("NCCL cannot be used on %s: %s".formatted(name, e.getMessage()));
        }
        MemorySegment id = Arena.ofAuto().allocate(NcclLibrary.idBytes());
        int result = nccl.uniqueId(id);
        if (result != NcclNative.ncclSuccess()) {
            throw CudaStatus.nccl(name, "ncclGetUniqueId", result, nccl.words(result));
        }
        return new NcclGroup(nccl, id, name, timeLimit, List.copyOf(members));
    }

    /**
     * Joins a device of the group, on its own thread, and waits until all have joined.
     *
     * @throws DeviceException.InvalidOperand when the device is not of the group
     * @throws DeviceException.Fault when NCCL does not start, or another device has not joined in time
     */
    public NcclMean join(Device device) {
        var own = (NativeDevice) device;
        for (int rank = 0; rank < devices.size(); rank++) {
            if (own.kind() == kind && own.ordinal() == devices.get(rank).ordinal()) {
                return NcclMean.join(this, rank, own);
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
