package org.fedcomuon.testing;

import static org.junit.jupiter.api.Assumptions.abort;

import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;

/**
 * The devices that tests run on: the CPU, and the simulated GPUs where their library has been built. With
 * {@code -Dtests.devices} those named instead, such as {@code cuda:0,cuda:1}; {@code cuda} alone is every one there is.
 *
 * <p>A GPU that is not there skips its tests, with the reason; {@code -Dtests.gpu=required} makes that a failure.
 */
public final class TestDevices {
    private static final int SIMULATED = 4;
    private static final int THREADS = 2;

    private TestDevices() {}

    /** For {@code @MethodSource} of what every device must do. */
    public static Stream<String> names() {
        return given() ? asked() : Stream.concat(Stream.of("cpu:0"), simulated());
    }

    /** As {@link #names}, but of simulated ones only the first: for what would take too long on each. */
    public static Stream<String> kinds() {
        return given() ? asked() : Stream.concat(Stream.of("cpu:0"), simulated().limit(1));
    }

    /** For {@code @MethodSource} of what GPUs are compared by: one that is simulated, and all that are real. */
    public static Stream<String> gpus() {
        return given() ? asked() : Stream.concat(simulated().limit(1), real());
    }

    /** Those that an average is taken over, two of a kind or more; of a kind with only one, that one. */
    public static Stream<List<String>> groups() {
        return given()
                ? Stream.of(asked().toList())
                : Stream.of(simulated().limit(2).toList(), real().toList()).filter(group -> !group.isEmpty());
    }

    private static boolean given() {
        return !System.getProperty("tests.devices", "").isEmpty();
    }

    private static Stream<String> asked() {
        return Stream.of(System.getProperty("tests.devices", "").split(","))
                .map(String::strip)
                .flatMap(name -> name.equals("cuda") ? real() : Stream.of(name));
    }

    /** Simulated GPUs; none where their library has not been built. One that does not load is a failure. */
    public static Stream<String> simulated() {
        return Holder.SIMULATED ? IntStream.range(0, SIMULATED).mapToObj(i -> "cudasim:" + i) : Stream.empty();
    }

    /** Real ones; where there are none, the name that {@link #open} skips a test by. */
    private static Stream<String> real() {
        List<String> here = Devices.list().stream()
                .filter(device -> device.available() && device.name().startsWith("cuda:"))
                .map(Devices.DeviceInfo::name)
                .toList();
        return here.isEmpty() ? Stream.of("cuda:0") : here.stream();
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

    /** Opens one, or skips the test that asks for a GPU that is not there. */
    public static Device open(String name) {
        try {
            return Devices.open(name, THREADS, InstructionSet.AUTO);
        } catch (DeviceException.Unavailable e) {
            if (!name.startsWith("cuda:") || "required".equals(System.getProperty("tests.gpu"))) {
                throw e;
            }
            return abort(e.getMessage());
        }
    }

    /** Whether a device is simulated, a thread at a time: for it sizes are small. */
    public static boolean isSimulated(String name) {
        return name.startsWith("cudasim:");
    }

    /** Another device of the same kind; the test is skipped where there is none. */
    public static String other(String name) {
        if (name.startsWith("cuda:")) {
            return real().filter(one -> !one.equals(name))
                    .findFirst()
                    .orElseGet(() -> abort("%s is the only GPU here".formatted(name)));
        }
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
