package org.fedcomuon.device;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.fedcomuon.internal.bindings.fedcomuon.FedComuonNative;
import org.fedcomuon.internal.bindings.fedcomuon.fcm_device_info;

/** The devices of this machine: what is here, why the rest is not, and how to open one. */
public final class Devices {
    private static final Pattern NAME = Pattern.compile("(cpu|cuda)(?::(\\d{1,6}))?");

    private Devices() {}

    /**
     * Every device that is here, and one entry for each kind that is not.
     *
     * @throws DeviceException.LibraryMissing when the native library cannot be used
     */
    public static List<DeviceInfo> list() {
        NativeCalls.requireLibrary();
        try (Arena arena = Arena.ofConfined()) {
            var calls = new NativeCalls(arena);
            var count = arena.allocate(FedComuonNative.C_INT);
            calls.check(FedComuonNative.fcm_device_count(count, calls.error()), "fcm_device_count");
            var devices = new ArrayList<DeviceInfo>();
            for (int position = 0; position < count.get(FedComuonNative.C_INT, 0); position++) {
                var info = fcm_device_info.allocate(arena);
                calls.check(FedComuonNative.fcm_device_describe(position, info, calls.error()), "fcm_device_describe");
                boolean cpu = fcm_device_info.kind(info) == FedComuonNative.FCM_CPU();
                int ordinal = fcm_device_info.ordinal(info);
                String kind = cpu ? "cpu" : "cuda";
                devices.add(new DeviceInfo(
                        ordinal < 0 ? kind : kind + ":" + ordinal,
                        fcm_device_info.name(info).getString(0),
                        fcm_device_info.memory_bytes(info),
                        cpu ? Optional.of(InstructionSet.of(fcm_device_info.isa(info))) : Optional.empty(),
                        fcm_device_info.available(info) != 0
                                ? Optional.empty()
                                : Optional.of(fcm_device_info.reason(info).getString(0))));
            }
            return List.copyOf(devices);
        }
    }

    /** One line about the native library in use: its version and compiler. */
    public static String libraryInfo() {
        NativeCalls.requireLibrary();
        return FedComuonNative.fcm_build_info().getString(0);
    }

    /**
     * Opens a device with every core of this machine; the calling thread owns it.
     *
     * @param name {@code cpu:N} with any N, or {@code cuda:N}
     * @throws DeviceException.Unavailable when no such device is here; the message says why
     * @throws DeviceException.LibraryMissing when the native library cannot be used
     */
    public static Device open(String name) {
        return open(name, Runtime.getRuntime().availableProcessors(), InstructionSet.AUTO);
    }

    /**
     * Opens a device; the calling thread owns it. Results do not depend on {@code threads}: give each of several
     * devices in use at once its share of the cores.
     *
     * @param threads how many threads work on an operation, the calling one included
     */
    public static Device open(String name, int threads, InstructionSet instructionSet) {
        Matcher matcher = NAME.matcher(name);
        if (!matcher.matches()) {
            throw new DeviceException.Unavailable(
                    "no device is called '%s'; the names are cpu:0, cpu:1, ... and cuda:0, cuda:1, ..."
                            .formatted(name));
        }
        String kind = matcher.group(1);
        int ordinal = matcher.group(2) == null ? 0 : Integer.parseInt(matcher.group(2));
        List<DeviceInfo> known = list();
        // Any number will do for a CPU: these are virtual devices. Others must be in the list.
        boolean cpu = kind.equals("cpu");
        String listed = cpu ? "cpu:0" : kind + ":" + ordinal;
        DeviceInfo info = known.stream()
                .filter(i -> i.name().equals(listed) || i.name().equals(kind))
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
        return new NativeDevice(kind + ":" + ordinal, info.model(), cpu, ordinal, threads, instructionSet);
    }
}
