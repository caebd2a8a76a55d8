package org.fedcomuon.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * The cost of a call into native code through our bindings, through JNI, through JCuda's JNI and with
 * {@code Linker.Option.critical}, each for the same C function. JMH measures every contender in its own JVM; every
 * round has all contenders, so that a slow minute affects all of them. The benchmarks are in
 * {@code org.fedcomuon.bench.calls}.
 */
public final class FfiBench {
    /** The number of rounds in a full benchmark. */
    public static final int ROUNDS = 5;

    /**
     * Iterations are shorter than a time slice: on a busy machine most of them are then not interrupted, and the median
     * is one of these.
     */
    private static final List<String> FULL =
            List.of("-f", "1", "-wi", "4", "-w", "200ms", "-i", "60", "-r", "1ms", "-p", "n=1,64,4096");

    /** One function, called in several ways; the first is ours. */
    private record Group(String what, String benchmarks, List<Contender> contenders) {}

    /** One way of calling: the name of the method that measures it, and its name in the table. */
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

    /** That JNI is not faster by more than a tenth, and JCuda's not at all. */
    static final Aims AIMS = Aims.NONE
            .with("fcm_[^:]*: JNI(, with addresses)?", Aim.atLeast(0.9))
            .with("[^:]*: JCuda's JNI", Aim.atLeast(1));

    private final List<String> effort;
    /** The seconds per call, by JMH's name of the benchmark and by size. */
    private final Map<String, List<Double>> samples = new LinkedHashMap<>();
    /** The reasons why benchmarks could not be run. */
    private final Map<String, String> failures = new LinkedHashMap<>();

    private FfiBench(List<String> effort) {
        this.effort = effort;
    }

    /**
     * Measures everything {@code rounds} times.
     *
     * @throws IllegalStateException when nothing could be measured
     */
    public static BenchReport run(int rounds, TurnListener listener) {
        return run(rounds, FULL, listener);
    }

    /** Measures with the given options of JMH. */
    static BenchReport run(int rounds, List<String> effort, TurnListener listener) {
        var bench = new FfiBench(effort);
        for (int round = 0; round < rounds; round++) {
            listener.onTurn("all calls by JMH, round %d of %d".formatted(round + 1, rounds), round, rounds);
            bench.round();
        }
        listener.onTurn("all calls by JMH", rounds, rounds);
        return bench.report();
    }

    private void round() {
        try (var temporary = TemporaryDirectory.create()) {
            Path directory = temporary.path();
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
        }
    }

    private List<String> command(Path directory, Path results) {
        var arguments = new ArrayList<>(effort);
        arguments.addAll(List.of("-rf", "json", "-rff", results.toString()));
        return ChildJvm.command(
                List.of(
                        "-Djmh.ignoreLock=true", // the lock is a file in /tmp, which may belong to another user
                        "-Djava.io.tmpdir=" + directory), // JCuda unpacks its library there
                "org.openjdk.jmh.Main",
                arguments);
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

    /**
     * Reads failures from the log: JMH prints the reason in place of the iteration, after the name of the benchmark.
     */
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
                Timing our = timing(ours + " " + size);
                for (Contender contender : group.contenders()) {
                    String what = group.what() + size + ": " + contender.text();
                    String benchmark = group.benchmarks() + "." + contender.benchmark();
                    if (samples.getOrDefault(benchmark + " " + size, List.of()).size()
                            != our.samples().size()) { // it failed, in one round or in all
                        note(notes, what, benchmark);
                        continue;
                    }
                    Timing timing = timing(benchmark + " " + size);
                    rows.add(BenchReport.Row.of(what, timing, Figure.ratio(timing, our), AIMS));
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
}
