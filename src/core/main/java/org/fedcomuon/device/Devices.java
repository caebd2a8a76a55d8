package org.fedcomuon.device;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.fedcomuon.internal.BackendLibrary;
import org.fedcomuon.internal.NativeLibrary;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.fedcomuon.internal.bindings.fedcomuon.fcm_device_info;

/**
 * Lists the devices of this machine, with a reason for those that are not available, and opens them.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="device"}
 *
 * <p>CUDA devices come from a library of their own, {@code libfedcomuon_cuda.so}: the file named by
 * {@code -Dfedcomuon.cuda.library}, one in the directories of {@code -Dfedcomuon.native.path}, one beside a native
 * library that was named, or the one packaged. {@code cudasim:N} are CUDA devices simulated on the CPU, for tests:
 * {@code libfedcomuon_cudasim.so}, found alike by {@code -Dfedcomuon.cudasim.library}, loaded only when one is opened
 * or {@code -Dfedcomuon.cudasim=true} asks for them to be listed.
 *
 * <p>Thread-safe.
 */
public final class Devices {
    private static final Pattern NAME = Pattern.compile("(cpu|cuda|cudasim)(?::(\\d{1,6}))?");
    private static final Path DRIVER = Path.of("/proc/driver/nvidia/version");
    private static final String SIMULATE_PROPERTY = "fedcomuon.cudasim";

    /** What threads without a device compute with. */
    private static final ThreadLocal<NativeDevice> OF_THREAD = ThreadLocal.withInitial(NativeDevice::ofThread);

    private Devices() {}

    /**
     * Returns all available devices, and one entry for each kind that is not available.
     *
     * @throws DeviceException.LibraryMissing when the native library cannot be used
     */
    public static List<DeviceInfo> list() {
        NativeCalls.requireLibrary();
        NativeLibrary.Outcome cuda = BackendLibrary.CUDA.load();
        var devices = new ArrayList<DeviceInfo>();
        if (Boolean.getBoolean(SIMULATE_PROPERTY)
                && BackendLibrary.CUDASIM.load() instanceof NativeLibrary.Missing(String reason)) {
            devices.add(new DeviceInfo(
                    DeviceKind.CUDASIM.prefix(), "simulated GPU", 0, Optional.empty(), Optional.of(reason)));
        }
        devices.addAll(0, described(cuda));
        return List.copyOf(devices);
    }

    private static List<DeviceInfo> described(NativeLibrary.Outcome cuda) {
        try (Arena arena = Arena.ofConfined()) {
            var calls = new NativeCalls(arena);
            var count = arena.allocate(FedComuonNative.C_INT);
            calls.check(FedComuonNative.fcm_device_count(count, calls.error()), "fcm_device_count");
            var devices = new ArrayList<DeviceInfo>();
            for (int position = 0; position < count.get(FedComuonNative.C_INT, 0); position++) {
                var info = fcm_device_info.allocate(arena);
                calls.check(FedComuonNative.fcm_device_describe(position, info, calls.error()), "fcm_device_describe");
                devices.add(describe(info, cuda));
            }
            return devices;
        }
    }

    private static DeviceInfo describe(MemorySegment info, NativeLibrary.Outcome cuda) {
        DeviceKind kind = DeviceKind.of(fcm_device_info.kind(info));
        int ordinal = fcm_device_info.ordinal(info);
        Optional<String> reason = Optional.empty();
        if (fcm_device_info.available(info) == 0) {
            String words = fcm_device_info.reason(info).getString(0);
            // Without a library for CUDA two things may be missing, and the user needs both reasons.
            reason = Optional.of(
                    kind == DeviceKind.CUDA && cuda instanceof NativeLibrary.Missing(String missing)
                            ? words + "; " + missing
                            : words);
        }
        return new DeviceInfo(
                ordinal < 0 ? kind.prefix() : kind.prefix() + ":" + ordinal,
                fcm_device_info.name(info).getString(0),
                fcm_device_info.memory_bytes(info),
                kind == DeviceKind.CPU ? Optional.of(InstructionSet.of(fcm_device_info.isa(info))) : Optional.empty(),
                reason);
    }

    /** Returns one line about the native library in use: its version and compiler. */
    public static String libraryInfo() {
        NativeCalls.requireLibrary();
        return FedComuonNative.fcm_build_info().getString(0);
    }

    /**
     * Returns NVIDIA's libraries as devices of a kind would use them, with a reason for those that are not available.
     * Does not need a GPU.
     *
     * @param device a name such as {@code cuda:0}, or {@code cuda} alone; a CPU has none of them
     */
    public static List<VendorLibrary> vendorLibraries(String device) {
        NativeCalls.requireLibrary(); // which finds those of simulated devices
        Matcher matcher = named(device);
        DeviceKind kind = DeviceKind.of(matcher.group(1));
        return kind == DeviceKind.CPU ? List.of() : CudaLibraries.describe(kind);
    }

    /** Returns the version line of NVIDIA's driver; empty when none is loaded. */
    public static Optional<String> driver() {
        try (Stream<String> lines = Files.lines(DRIVER)) {
            return lines.findFirst().map(line -> line.replaceAll("\\s+", " ").strip());
        } catch (IOException | UncheckedIOException e) {
            return Optional.empty(); // there is no such file without the driver
        }
    }

    private static Matcher named(String name) {
        Matcher matcher = NAME.matcher(name);
        if (!matcher.matches()) {
            throw new DeviceException.Unavailable(
                    "no device is called '%s'; the names are cpu:0, cpu:1, ... and cuda:0, cuda:1, ..."
                            .formatted(name));
        }
        return matcher;
    }

    /**
     * Opens a device with every core of this machine; the calling thread owns it.
     *
     * @param name {@code cpu:N} with any N, {@code cuda:N}, or {@code cudasim:N}
     * @throws DeviceException.Unavailable when no such device is here; the message has the reason
     * @throws DeviceException.LibraryMissing when the native library cannot be used
     */
    public static Device open(String name) {
        return open(name, Runtime.getRuntime().availableProcessors(), InstructionSet.AUTO);
    }

    /**
     * Opens a device; the calling thread owns it. Results do not depend on {@code threads}; several devices that are
     * used at once should share the cores.
     *
     * @param threads the number of threads that work on an operation, including the calling one
     */
    public static Device open(String name, int threads, InstructionSet instructionSet) {
        Matcher matcher = named(name);
        DeviceKind kind = DeviceKind.of(matcher.group(1));
        int ordinal = matcher.group(2) == null ? 0 : Integer.parseInt(matcher.group(2));
        NativeCalls.requireLibrary();
        if (kind == DeviceKind.CUDASIM
                && BackendLibrary.CUDASIM.load() instanceof NativeLibrary.Missing(String reason)) {
            throw new DeviceException.Unavailable("%s is not available: %s".formatted(name, reason));
        }
        List<DeviceInfo> known = list();
        // Any number will do for a CPU: these are virtual devices. Others must be in the list.
        String listed = kind == DeviceKind.CPU ? "cpu:0" : kind.prefix() + ":" + ordinal;
        DeviceInfo info = known.stream()
                .filter(i -> i.name().equals(listed) || i.name().equals(kind.prefix()))
                .findFirst()
                .orElseThrow(() -> new DeviceException.Unavailable("%s is not here; these are: %s"
                        .formatted(
                                name,
                                known.stream()
                                        .filter(DeviceInfo::available)
                                        .map(DeviceInfo::name)
                                        .toList())));
        info.reason().ifPresent(reason -> {
            throw new DeviceException.Unavailable("%s is not available: %s".formatted(name, reason));
        });
        return new NativeDevice(kind, ordinal, info.model(), threads, instructionSet);
    }

    /**
     * Makes masks as {@link Device#dropoutMask} does, in native memory of the host and on one core: for threads that
     * have no device, such as those that evaluate oracles.
     */
    public static void dropoutMask(int left, long[] seeds, MemorySegment masks) {
        OF_THREAD.get().dropoutMask(left, seeds, masks);
    }

    /**
     * A library of NVIDIA's that GPUs compute with, which is not shipped with this project: the one that will be used,
     * or the reason why there is none.
     *
     * @param name what NVIDIA calls it, such as {@code cuBLAS}
     * @param version of the library, empty when it is not available
     * @param file where it was found
     * @param binding how it is called: {@code Panama} or {@code JCuda}
     * @param reason why it cannot be used, empty when it can
     */
    public record VendorLibrary(
            String name,
            Optional<String> version,
            Optional<String> file,
            Optional<String> binding,
            Optional<String> reason) {
        static VendorLibrary found(String name, String version, String file, String binding) {
            return new VendorLibrary(
                    name, Optional.of(version), Optional.of(file), Optional.of(binding), Optional.empty());
        }

        static VendorLibrary missing(String name, String reason) {
            return new VendorLibrary(name, Optional.empty(), Optional.empty(), Optional.empty(), Optional.of(reason));
        }

        /** Returns whether the library can be used. */
        public boolean available() {
            return reason.isEmpty();
        }

        @Override
        public String toString() {
            return available()
                    ? "%s %s through %s (%s)"
                            .formatted(name, version.orElseThrow(), binding.orElseThrow(), file.orElseThrow())
                    : "%s not available: %s".formatted(name, reason.orElseThrow());
        }
    }

    /**
     * A device that is available, or one that is not, with the reason.
     *
     * @param name by which it is opened, such as {@code cpu:0}; just the kind, {@code cuda}, where none of that kind is
     *     available
     * @param model the manufacturer's name
     * @param memoryBytes its memory, 0 when not known
     * @param instructionSet the best that the CPU has
     * @param reason why it cannot be used, empty when it can
     */
    public record DeviceInfo(
            String name,
            String model,
            long memoryBytes,
            Optional<InstructionSet> instructionSet,
            Optional<String> reason) {
        /** Returns whether the device can be opened. */
        public boolean available() {
            return reason.isEmpty();
        }
    }
}
