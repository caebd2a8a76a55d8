package org.fedcomuon.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import org.fedcomuon.device.Devices;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.TestWatcher;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/**
 * What the tests of {@link GpuSuite} found in a module, as {@code target/gpu-report/MODULE.json}, to be attached to a
 * bug report. Its fields are explained in {@code docs/gpu-report.md}.
 */
public final class GpuReport {
    /** Of this run of the tests. */
    private static final GpuReport RUN = new GpuReport();

    private final TreeSet<String> names = new TreeSet<>();
    private final List<Map<String, Object>> accuracy = new ArrayList<>();
    private final List<Map<String, Object>> memory = new ArrayList<>();
    private final List<Map<String, Object>> speed = new ArrayList<>();
    private final List<Map<String, Object>> steps = new ArrayList<>();
    private final List<Map<String, Object>> failures = new ArrayList<>();
    private final TreeMap<String, Integer> skips = new TreeMap<>();
    private int passed;

    GpuReport() {}

    /** The one that is written when a class of tests is through. */
    public static GpuReport ofThisRun() {
        return RUN;
    }

    /** How far the results of a device are from the CPU's, relative to their size; 0 for bit-identical results. */
    public synchronized void accuracy(String device, String what, double difference, double allowed) {
        accuracy.add(entry(device, what, "difference", difference, "allowed", allowed));
    }

    /** What a device holds while it does something, and the most it held on the way. */
    public synchronized void memory(String device, String what, long liveBytes, long peakBytes) {
        memory.add(entry(device, what, "live_bytes", liveBytes, "peak_bytes", peakBytes));
    }

    /** What is limited by memory: the bytes that must move in a call, and how long it takes. */
    public synchronized void bytes(String device, String what, long bytes, double seconds) {
        speed.add(entry(
                device, what, "seconds", seconds, "bytes", bytes, "gigabytes_per_second", bytes / seconds * 1e-9));
    }

    /** What is limited by arithmetic: the operations that a call needs, and how long it takes. */
    public synchronized void operations(String device, String what, double operations, double seconds) {
        speed.add(entry(
                device, what, "seconds", seconds, "operations", operations, "gigaflops", operations / seconds * 1e-9));
    }

    /** The launches of a device and the waits of the host for it, per step of a federation. */
    public record StepCounts(double launches, double waits) {}

    /**
     * How long a step of a federation takes; only a simulated device is traced, so that its launches can be counted.
     */
    public synchronized void step(String device, String what, double seconds, Optional<StepCounts> counts) {
        String unknown = "not counted";
        steps.add(entry(
                device,
                what,
                "seconds",
                seconds,
                "launches",
                counts.<Object>map(StepCounts::launches).orElse(unknown),
                "waits",
                counts.<Object>map(StepCounts::waits).orElse(unknown)));
    }

    private Map<String, Object> entry(String device, String what, Object... fields) {
        names.add(device);
        var entry = new LinkedHashMap<String, Object>();
        entry.put("device", device);
        entry.put("what", what);
        for (int i = 0; i < fields.length; i += 2) {
            entry.put((String) fields[i], fields[i + 1]);
        }
        return entry;
    }

    synchronized void passed() {
        passed++;
    }

    synchronized void failed(String test, Throwable why) {
        failures.add(Map.of("test", test, "message", String.valueOf(why)));
    }

    synchronized void skipped(String why) {
        skips.merge(why, 1, Integer::sum);
    }

    synchronized Map<String, Object> fields() {
        var all = new LinkedHashMap<String, Object>();
        all.put("library", Devices.libraryInfo());
        all.put("java", Runtime.version().toString());
        all.put("os", "%s %s".formatted(System.getProperty("os.name"), System.getProperty("os.version")));
        all.put("driver", Devices.driver().orElse("none"));
        all.put("devices", Devices.list().stream().map(GpuReport::device).toList());
        all.put("vendor_libraries", libraries());
        var tests = new LinkedHashMap<String, Object>();
        tests.put("passed", passed);
        tests.put("failed", failures.size());
        tests.put("skipped", skips.values().stream().mapToInt(Integer::intValue).sum());
        tests.put("failures", failures);
        tests.put("skipped_because", skips);
        all.put("tests", tests);
        all.put("accuracy", accuracy);
        all.put("memory", memory);
        all.put("speed", speed);
        all.put("steps", steps);
        return all;
    }

    private static Map<String, Object> device(Devices.DeviceInfo info) {
        var entry = new LinkedHashMap<String, Object>();
        entry.put("name", info.name());
        entry.put("model", info.model());
        entry.put("memory_bytes", info.memoryBytes());
        info.reason().ifPresent(reason -> entry.put("reason", reason));
        return entry;
    }

    /** Of the kinds that something was measured on, and always of the real ones. */
    private Map<String, List<String>> libraries() {
        var kinds = new TreeSet<String>();
        kinds.add("cuda");
        names.forEach(name -> kinds.add(name.substring(0, name.indexOf(':'))));
        kinds.remove("cpu");
        var all = new LinkedHashMap<String, List<String>>();
        kinds.forEach(kind -> all.put(
                kind,
                Devices.vendorLibraries(kind).stream()
                        .map(Devices.VendorLibrary::toString)
                        .toList()));
        return all;
    }

    /** Whole or not at all. */
    synchronized void write(Path file) throws IOException {
        Path part = file.resolveSibling(file.getFileName() + ".part");
        Files.writeString(
                part,
                JsonMapper.builder()
                        .enable(SerializationFeature.INDENT_OUTPUT)
                        .build()
                        .writeValueAsString(fields()));
        Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
    }

    /** Counts tests; writes after each class, so that a crash of the driver leaves what was known before. */
    static final class Watcher implements TestWatcher, AfterAllCallback {
        private static final Path FILE =
                Repository.target().resolve("gpu-report").resolve(Repository.module() + ".json");

        @Override
        public void testSuccessful(ExtensionContext context) {
            RUN.passed();
        }

        @Override
        public void testFailed(ExtensionContext context, Throwable cause) {
            RUN.failed(name(context), cause);
        }

        @Override
        public void testAborted(ExtensionContext context, Throwable cause) {
            RUN.skipped(String.valueOf(cause.getMessage()));
        }

        @Override
        public void testDisabled(ExtensionContext context, Optional<String> reason) {
            RUN.skipped(reason.orElse("disabled"));
        }

        @Override
        public void afterAll(ExtensionContext context) throws IOException {
            Files.createDirectories(FILE.getParent());
            RUN.write(FILE);
        }

        /** From the class down, such as {@code DeviceOperationsIT, [1] name = "cuda:0", ema(), repetition 1 of 20}. */
        private static String name(ExtensionContext context) {
            String own = context.getDisplayName();
            return context.getParent()
                    .filter(parent -> parent.getTestClass().isPresent())
                    .map(parent -> name(parent) + ", " + own)
                    .orElse(own);
        }
    }
}
