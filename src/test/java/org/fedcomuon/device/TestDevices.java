package org.fedcomuon.device;

import java.util.stream.IntStream;
import java.util.stream.Stream;

/** The devices that tests run on: the CPU, and the simulated GPUs where their library has been built. */
public final class TestDevices {
    private static final int SIMULATED = 4;

    private TestDevices() {}

    /** For {@code @MethodSource}. */
    public static Stream<String> names() {
        return Stream.concat(Stream.of("cpu:0"), simulated());
    }

    /** Simulated GPUs; none where their library has not been built. One that does not load is a failure. */
    public static Stream<String> simulated() {
        return Holder.SIMULATED ? IntStream.range(0, SIMULATED).mapToObj(i -> "cudasim:" + i) : Stream.empty();
    }

    private static final class Holder {
        static final boolean SIMULATED = look();

        private static boolean look() {
            try (Device device = Devices.open("cudasim:0")) {
                return !device.isHost();
            } catch (DeviceException.Unavailable e) {
                if (e.getMessage().contains("no libfedcomuon_cudasim.so")) {
                    return false;
                }
                throw e;
            }
        }
    }

    /** Another device of the same kind. */
    public static String other(String name) {
        int colon = name.indexOf(':');
        int number = Integer.parseInt(name.substring(colon + 1));
        return name.substring(0, colon + 1) + (number + 1) % SIMULATED;
    }

    /** Whether a device decomposes matrices; a GPU needs NVIDIA's libraries for it. */
    public static boolean decomposes(Device device) {
        try {
            device.solver();
            return true;
        } catch (DeviceException.Unsupported e) {
            return false;
        }
    }
}
