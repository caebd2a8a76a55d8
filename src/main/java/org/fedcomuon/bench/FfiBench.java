package org.fedcomuon.bench;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * What a call into native code costs through our bindings, through JNI, through JCuda's JNI and as
 * {@code Linker.Option.critical}, each on the same C function. JMH measures, in a JVM of its own a contender; every
 * round has all of them, so that a slow minute slows them all. The benchmarks are {@code src/jmh/java}, which the build
 * leaves beside the jar.
 */
public final class FfiBench {
    /** How many rounds mean what they say. */
    public static final int ROUNDS = 5;

    /** The class path of the benchmarks; the launcher sets it. */
    public static final String PATH_PROPERTY = "fedcomuon.jmh.path";

    /** Iterations shorter than a time slice: on a busy machine most are then whole, and the median is one of those. */
    private static final List<String> FULL =
            List.of("-f", "1", "-wi", "4", "-w", "200ms", "-i", "60", "-r", "1ms", "-p", "n=1,64,4096");

    /** One function, called in several ways; the first is ours. */
    private record Group(String what, String benchmarks, List<Contender> contenders) {}

    /** One way: the name of the method that measures it, and what the row says. */
    private record Contender(String benchmark, String text) {}

    private static final List<Group> GROUPS = List.of(
            new Group(
                    "fcm_abi_version()",
                    "AbiVersionCalls",
                    List.of(
                            new Contender("bindings", "our bindings"),
                            new Contender("critical", "as critical"),
                            new Contender("jni", "JNI"))),
            new Group(
                    "cublasGetVersion_v2(handle, int *)",
                    "CublasVersionCalls",
                    List.of(
                            new Contender("bindings", "our bindings, of a library found at run time"),
                            new Contender("jni", "JNI, with addresses"),
                            new Contender("jniArray", "JNI, with an array for the answer"),
                            new Contender("jcuda", "JCuda's JNI"))),
            new Group(
                    "fcm_ema, n = ",
                    "EmaCalls",
                    List.of(
                            new Contender("bindings", "our bindings"),
                            new Contender("device", "Device.ema: with checks, on memory guarded against being closed"),
                            new Contender("critical", "as critical"),
                            new Contender("jni", "JNI, with addresses"),
                            new Contender("criticalArrays", "on arrays, as critical"),
                            new Contender("copiedArrays", "on arrays, copied to our bindings and back"),
                            new Contender("jniPinnedArrays", "JNI, on arrays, GetPrimitiveArrayCritical"),
                            new Contender("jniCopiedArrays", "JNI, on arrays, GetFloatArrayElements"))));

    private final List<String> effort;
    /** Seconds a call by benchmark, as JMH names it, and size. */
    private final Map<String, List<Double>> samples = new LinkedHashMap<>();
    /** Why a benchmark could not be run. */
    private final Map<String, String> failures = new LinkedHashMap<>();

    private FfiBench(List<String> effort) {
        this.effort = effort;
    }

    /** Why it cannot run here, in one line. */
    public static Optional<String> missing() {
        String path = System.getProperty(PATH_PROPERTY);
        if (path == null) {
            return Optional.of("the benchmarks of calls are not in the jar: run ./fedcomuon bench ffi");
        }
        String classes = path.split(File.pathSeparator, -1)[0];
        return Files.exists(Path.of(classes, "META-INF", "BenchmarkList"))
                ? Optional.empty()
                : Optional.of("%s=%s: no benchmarks in %s".formatted(PATH_PROPERTY, path, classes));
    }

    /**
     * Measures everything {@code rounds} times.
     *
     * @throws IllegalStateException when {@link #missing} has a reason, or nothing could be measured
     */
    public static BenchReport run(int rounds) {
        return run(rounds, FULL);
    }

    /** The same with options of JMH's. */
    static BenchReport run(int rounds, List<String> effort) {
        missing().ifPresent(reason -> {
            throw new IllegalStateException(reason);
        });
        var bench = new FfiBench(effort);
        for (int round = 0; round < rounds; round++) {
            bench.round();
        }
        return bench.report();
    }

    private void round() {
        Path directory = null;
        try {
            directory = Files.createTempDirectory("fedcomuon-ffi");
            Path log = directory.resolve("log");
            Path results = directory.resolve("results.json");
            Process process = new ProcessBuilder(command(directory, results))
                    .redirectErrorStream(true)
                    .redirectOutput(log.toFile())
                    .start();
            try {
                if (process.waitFor() != 0 || !Files.exists(results)) {
                    throw new IllegalStateException("JMH ended with %d: %s"
                            .formatted(
                                    process.exitValue(),
                                    Files.readString(log).strip().lines().reduce("", (_, line) -> line)));
                }
            } finally {
                process.destroy();
            }
            read(JsonMapper.shared().readTree(Files.readString(results)));
            readFailures(Files.readAllLines(log));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        } finally {
            if (directory != null) {
                delete(directory);
            }
        }
    }

    private List<String> command(Path directory, Path results) {
        var command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow", // JMH
                "-Djmh.ignoreLock=true", // a file in /tmp, which may be another user's
                "-Djava.io.tmpdir=" + directory)); // where JCuda unpacks
        System.getProperties().stringPropertyNames().stream()
                .filter(name -> name.startsWith("fedcomuon."))
                .sorted()
                .forEach(name -> command.add("-D%s=%s".formatted(name, System.getProperty(name))));
        command.addAll(List.of("-cp", System.getProperty(PATH_PROPERTY), "org.openjdk.jmh.Main"));
        command.addAll(effort);
        command.addAll(List.of("-rf", "json", "-rff", results.toString()));
        return command;
    }

    private void read(JsonNode results) {
        for (JsonNode result : results) {
            String name = result.path("benchmark").asString();
            String key = name.substring(name.lastIndexOf('.', name.lastIndexOf('.') - 1) + 1) + " "
                    + result.path("params").path("n").asString("");
            JsonNode metric = result.path("primaryMetric");
            if (!metric.path("scoreUnit").asString().equals("ns/op")) {
                throw new IllegalStateException("%s is in %s".formatted(name, metric.path("scoreUnit")));
            }
            List<Double> all = samples.computeIfAbsent(key, _ -> new ArrayList<>());
            for (JsonNode fork : metric.path("rawData")) {
                for (JsonNode nanoseconds : fork) {
                    all.add(nanoseconds.asDouble() * 1e-9);
                }
            }
        }
    }

    /** JMH writes what went wrong where the iteration would be, after the name of the benchmark. */
    private void readFailures(List<String> log) {
        String benchmark = "";
        boolean failed = false;
        for (String line : log) {
            if (line.startsWith("# Benchmark: ")) {
                benchmark = line.substring(line.lastIndexOf('.', line.lastIndexOf('.') - 1) + 1);
            } else if (line.endsWith("<failure>")) {
                failed = true;
            } else if (failed && !line.isBlank()) {
                failures.putIfAbsent(benchmark, line.strip());
                failed = false;
            }
        }
    }

    private BenchReport report() {
        var rows = new ArrayList<BenchReport.Row>();
        var notes = new ArrayList<String>();
        for (Group group : GROUPS) {
            String ours =
                    group.benchmarks() + "." + group.contenders().getFirst().benchmark();
            List<String> sizes = samples.keySet().stream()
                    .filter(key -> key.startsWith(ours + " "))
                    .map(key -> key.substring(ours.length() + 1))
                    .toList();
            if (sizes.isEmpty()) {
                note(notes, group.what(), ours);
            }
            for (String size : sizes) {
                double our = timing(ours + " " + size).median();
                for (Contender contender : group.contenders()) {
                    String what = group.what() + size + ": " + contender.text();
                    String benchmark = group.benchmarks() + "." + contender.benchmark();
                    if (!samples.containsKey(benchmark + " " + size)) {
                        note(notes, what, benchmark);
                        continue;
                    }
                    Timing timing = timing(benchmark + " " + size);
                    rows.add(new BenchReport.Row(what, timing.median(), timing.spread(), 0, timing.median() / our));
                }
            }
        }
        if (rows.isEmpty()) {
            throw new IllegalStateException("nothing could be measured: " + String.join("; ", notes));
        }
        return new BenchReport(
                "ffi",
                "the calling thread",
                "one call of a C function, by JMH; ratio = time relative to that of our bindings",
                List.copyOf(rows),
                List.copyOf(notes));
    }

    private void note(List<String> notes, String what, String benchmark) {
        String reason = failures.getOrDefault(benchmark, "JMH has no such benchmark");
        notes.add("not measured: %s, because: %s".formatted(what, reason));
    }

    private Timing timing(String key) {
        return Timing.of(
                samples.get(key).stream().mapToDouble(Double::doubleValue).toArray());
    }

    private static void delete(Path directory) {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
