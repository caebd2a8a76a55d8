package org.fedcomuon.cli;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code fedcomuon devices}: lists every device, and why others are not available. */
@Command(name = "devices", description = "List every device, and why others are not available.")
final class DevicesCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Override
    public void run() {
        List<Devices.DeviceInfo> devices = Devices.list();
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(Json.pretty(describe(devices)));
        } else {
            devices.forEach(device -> out.println(line(device)));
            Devices.driver().ifPresent(driver -> out.println("driver    " + driver));
            kindsOfGpus(devices).forEach(kind -> {
                for (Devices.VendorLibrary library : Devices.vendorLibraries(kind)) {
                    out.println("%-9s %s".formatted(kind, library));
                }
            });
            out.println("library   " + Devices.libraryInfo());
        }
        out.flush();
    }

    /** Returns the kinds of the available GPUs, whose vendor libraries are listed. */
    private static List<String> kindsOfGpus(List<Devices.DeviceInfo> devices) {
        return devices.stream()
                .filter(device -> device.available() && device.instructionSet().isEmpty())
                .map(device -> device.name().substring(0, device.name().indexOf(':')))
                .distinct()
                .toList();
    }

    private static int threads() {
        return Runtime.getRuntime().availableProcessors();
    }

    private static String line(Devices.DeviceInfo device) {
        if (!device.available()) {
            return "%-9s not available: %s"
                    .formatted(device.name(), device.reason().orElseThrow());
        }
        double gibibytes = device.memoryBytes() / (double) (1L << 30);
        if (device.instructionSet().isEmpty()) {
            return "%-9s %s, %.1f GiB".formatted(device.name(), device.model(), gibibytes);
        }
        return "%-9s %s, %d threads%s, %.1f GiB; cpu:1, cpu:2, ... are virtual devices on the same cores"
                .formatted(
                        device.name(),
                        device.model(),
                        threads(),
                        device.instructionSet().map(set -> ", " + name(set)).orElse(""),
                        gibibytes);
    }

    private static Map<String, Object> describe(List<Devices.DeviceInfo> devices) {
        var entries = new ArrayList<Map<String, Object>>();
        for (Devices.DeviceInfo device : devices) {
            var entry = new LinkedHashMap<String, Object>();
            entry.put("name", device.name());
            entry.put("model", device.model());
            entry.put("available", device.available());
            if (device.available()) {
                entry.put("memory_bytes", device.memoryBytes());
                device.instructionSet().ifPresent(set -> {
                    entry.put("threads", threads());
                    entry.put("instruction_set", name(set));
                });
            }
            device.reason().ifPresent(reason -> entry.put("reason", reason));
            entries.add(entry);
        }
        var all = new LinkedHashMap<String, Object>();
        all.put("devices", entries);
        Devices.driver().ifPresent(driver -> all.put("driver", driver));
        var libraries = new LinkedHashMap<String, Object>();
        for (String kind : kindsOfGpus(devices)) {
            libraries.put(
                    kind,
                    Devices.vendorLibraries(kind).stream()
                            .map(DevicesCommand::describe)
                            .toList());
        }
        all.put("vendor_libraries", libraries);
        all.put("library", Devices.libraryInfo());
        all.put("java", Runtime.version().toString());
        return all;
    }

    private static Map<String, Object> describe(Devices.VendorLibrary library) {
        var entry = new LinkedHashMap<String, Object>();
        entry.put("name", library.name());
        library.version().ifPresent(version -> entry.put("version", version));
        library.binding().ifPresent(binding -> entry.put("binding", binding));
        library.file().ifPresent(file -> entry.put("file", file));
        library.reason().ifPresent(reason -> entry.put("reason", reason));
        return entry;
    }

    private static String name(InstructionSet set) {
        return set.name().toLowerCase(Locale.ROOT);
    }
}
