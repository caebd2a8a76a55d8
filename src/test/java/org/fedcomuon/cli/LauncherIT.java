package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The launcher as a user starts it: its exit codes, and the one line it prints when something is wrong. */
class LauncherIT {
    private static final Path ROOT = Path.of(System.getProperty("basedir", ".")).toAbsolutePath();
    private static final Path FIXTURES = ROOT.resolve("target/native/cpu/test");

    @TempDir
    private Path temporary;

    record Run(int exitCode, String out, String err) {}

    private Run fedcomuon(String javaOptions, String... arguments) throws IOException, InterruptedException {
        // Not a build inside the build.
        return run(ROOT, Map.of("FEDCOMUON_BUILD", "no", "FEDCOMUON_JAVA_OPTS", javaOptions), arguments);
    }

    private Run run(Path root, Map<String, String> environment, String... arguments)
            throws IOException, InterruptedException {
        Path out = temporary.resolve("out");
        Path err = temporary.resolve("err");
        var builder = new ProcessBuilder(
                Stream.concat(Stream.of(root.resolve("fedcomuon").toString()), Stream.of(arguments))
                        .toList());
        builder.environment().remove("FEDCOMUON_BUILD");
        builder.environment().putAll(environment);
        Process process = builder.directory(temporary.toFile())
                .redirectOutput(out.toFile())
                .redirectError(err.toFile())
                .start();
        assertThat(process.waitFor(300, TimeUnit.SECONDS)).isTrue();
        return new Run(process.exitValue(), Files.readString(out), Files.readString(err));
    }

    private static void assertOneLine(Run run, String... words) {
        assertThat(run.exitCode()).as(run.err()).isEqualTo(2);
        assertThat(run.err().lines())
                .singleElement()
                .asString()
                .startsWith("fedcomuon: ")
                .contains(words);
        assertThat(run.out()).isEmpty();
    }

    @Test
    void devicesAsJson() throws Exception {
        Run run = fedcomuon("", "devices", "--json");
        assertThat(run.exitCode()).as(run.err()).isZero();
        JsonNode json = JsonMapper.shared().readTree(run.out());
        List<String> names = json.get("devices")
                .valueStream()
                .map(device -> device.get("name").asString())
                .toList();
        assertThat(names).contains("cpu:0");
        for (JsonNode device : json.get("devices")) {
            assertThat(device.get("available").asBoolean()).isNotEqualTo(device.has("reason"));
        }
        assertThat(run.err()).isEmpty();
    }

    @Test
    void devicesForPeople() throws Exception {
        Run run = fedcomuon("", "devices");
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out().lines()).anyMatch(line -> line.startsWith("cpu:0 "));
        assertThat(run.out().lines()).anyMatch(line -> line.startsWith("cuda"));
    }

    @Test
    void devicesWithTheLibrariesOfGpus() throws Exception {
        assumeTrue(
                Files.exists(ROOT.resolve("target/native/cpu/libfedcomuon_cudasim.so")),
                "the simulated devices have not been built");
        Run run = fedcomuon("-Dfedcomuon.cudasim=true", "devices");
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out().lines())
                .anyMatch(line -> line.startsWith("cudasim:3 "))
                .anyMatch(line -> line.matches("cudasim   cuBLAS 13\\.0\\.0 through Panama \\(.*\\)"))
                .anyMatch(line -> line.startsWith("cudasim   NCCL 2."));
        JsonNode json = JsonMapper.shared()
                .readTree(fedcomuon("-Dfedcomuon.cudasim=true", "devices", "--json")
                        .out());
        assertThat(json.get("vendor_libraries")
                        .get("cudasim")
                        .get(1)
                        .get("binding")
                        .asString())
                .isEqualTo("Panama");
    }

    @Test
    void aMissingLibrary() throws Exception {
        assertOneLine(
                fedcomuon("-Dfedcomuon.native.library=/no/such/lib.so", "devices"), "/no/such/lib.so", "no such file");
    }

    @Test
    void aFileThatIsNoLibrary() throws Exception {
        Path text = Files.writeString(temporary.resolve("text.so"), "not a library");
        assertOneLine(fedcomuon("-Dfedcomuon.native.library=" + text, "devices"), "text.so is no shared library");
    }

    @Test
    void aForeignLibrary() throws Exception {
        Path foreign = FIXTURES.resolve("libnot_ours.so");
        assertOneLine(fedcomuon("-Dfedcomuon.native.library=" + foreign, "devices"), "libnot_ours.so is no FedCoMuon");
    }

    @Test
    void aLibraryOfAnotherAbiVersion() throws Exception {
        Path other = FIXTURES.resolve("libother_abi.so");
        assertOneLine(
                fedcomuon("-Dfedcomuon.native.library=" + other, "devices"),
                "libother_abi.so has ABI version 999, but version 4 is needed");
    }

    @Test
    void aCacheThatCannotBeWritten() throws Exception {
        Path file = Files.createFile(temporary.resolve("file"));
        assertOneLine(fedcomuon("-Dfedcomuon.cache=" + file, "devices"), "cannot be unpacked", file.toString());
    }

    @Test
    void aDamagedCacheIsMended() throws Exception {
        Path cache = temporary.resolve("cache");
        assertThat(fedcomuon("-Dfedcomuon.cache=" + cache, "devices").exitCode())
                .isZero();
        Path library;
        try (Stream<Path> files = Files.list(cache)) {
            library = files.toList().getFirst();
        }
        byte[] whole = Files.readAllBytes(library);
        Files.write(library, new byte[] {1, 2, 3});
        assertThat(fedcomuon("-Dfedcomuon.cache=" + cache, "devices").exitCode())
                .isZero();
        assertThat(library).hasBinaryContent(whole);
        assertThat(cache).isDirectoryNotContaining(file -> file.toString().endsWith(".part"));
    }

    @Test
    void anUnknownDevice() throws Exception {
        assertOneLine(fedcomuon("", "bench", "compose", "--device", "gpu:0"), "'gpu:0'", "cpu:0");
    }

    @Test
    void aDeviceThatIsNotHere() throws Exception {
        // On a machine with a GPU this build still has no CUDA kernels: the reason differs, the refusal does not.
        assertOneLine(fedcomuon("", "bench", "compose", "--device", "cuda:0"), "cuda:0 is not available");
    }

    @Test
    void badArguments() throws Exception {
        assertOneLine(fedcomuon("", "bench", "compse"), "compse", "compose");
        assertOneLine(fedcomuon("", "device"), "device", "devices");
        assertOneLine(fedcomuon("", "bench", "compose", "--elements", "10"), "--elements 10");
        assertOneLine(fedcomuon(""), "no command");
    }

    @Test
    void testsTakeFewOptions() throws Exception {
        assertOneLine(fedcomuon("", "test", "--gpus"), "test --gpus: no such option", "--gpu");
        assertOneLine(fedcomuon("", "test", "--gpu", "--devices"), "--devices", "cuda:0,cuda:1");
        assertOneLine(fedcomuon("", "test", "--devices", "cudasim:0"), "--devices cudasim:0: goes with test --gpu");
        Run help = fedcomuon("", "test", "--help");
        assertThat(help.exitCode()).as(help.err()).isZero();
        assertThat(help.out()).contains("--gpu", "gpu-report.json");
    }

    @Test
    void runsAProgramOfOnesOwn() throws Exception {
        Run run = fedcomuon(
                "", "run", ROOT.resolve("examples/RobustRegression.java").toString());
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.err()).isEmpty();
        double[] worst = run.out()
                .lines()
                .mapToDouble(line -> Double.parseDouble(line.replaceAll(".*worst client ([0-9.]+),.*", "$1")))
                .toArray();
        assertThat(worst).hasSize(2);
        assertThat(worst[1]).isLessThan(0.8 * worst[0]); // what the exponential risk is for
    }

    /** Weights and activations are not in the heap. */
    @Test
    void aSmallHeapDoesNotLimitNativeMemory() throws Exception {
        Run run = fedcomuon("-Xmx64m", "train", "mnist-robust", "--iterations", "1", "--out", "run");
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).contains("sha256");
    }

    /** A copy of the launcher beside what was built here, and a Maven that has nothing to do. */
    @Test
    void startsFromTheCacheThatABuildLeaves() throws Exception {
        Path root = Files.createDirectory(temporary.resolve("copy"));
        Files.copy(ROOT.resolve("fedcomuon"), root.resolve("fedcomuon"), StandardCopyOption.COPY_ATTRIBUTES);
        Path target = Files.createDirectory(root.resolve("target"));
        for (String part : List.of("lib", "native")) {
            Files.createSymbolicLink(
                    target.resolve(part), ROOT.resolve("target").resolve(part));
        }
        copy(ROOT.resolve("target/classes"), target.resolve("classes")); // a module is not looked for behind a link
        age(Files.createFile(target.resolve("launcher.stamp")));
        Files.createDirectories(root.resolve("src/main")); // newer than the stamp, so there is something to build
        Path tools = Files.createDirectory(temporary.resolve("tools"));
        Path maven = Files.writeString(tools.resolve("mvn"), "#!/bin/sh\n");
        assertThat(maven.toFile().setExecutable(true)).isTrue();
        String path = tools + ":" + System.getenv("PATH");

        Run first = run(root, Map.of("PATH", path), "--version");
        assertThat(first.exitCode()).as(first.err()).isZero();
        assertThat(target.resolve("prepared/fedcomuon.aot")).isRegularFile();
        assertThat(target.resolve("prepared/run")).doesNotExist();

        // The JVM is told to refuse a cache that it cannot use.
        var required = Map.of("PATH", path, "FEDCOMUON_JAVA_OPTS", "-XX:AOTMode=on");
        Run second = run(root, required, "--version");
        assertThat(second.exitCode()).as(second.err()).isZero();
        assertThat(second.out()).isEqualTo(first.out());
        assertThat(second.err()).isEmpty();

        // Classes that are newer than the cache are what runs.
        age(target.resolve("prepared/fedcomuon.jar"));
        Run third = run(root, Map.of("PATH", path, "FEDCOMUON_JAVA_OPTS", "-Xlog:class+load"), "--version");
        assertThat(third.exitCode()).as(third.err()).isZero();
        assertThat(third.out())
                .contains("org.fedcomuon.cli.Main source: file:")
                .doesNotContain("prepared/fedcomuon.jar");
    }

    private static void age(Path file) throws IOException {
        Files.setLastModifiedTime(file, FileTime.from(Instant.parse("2020-01-01T00:00:00Z")));
    }

    private static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> files = Files.walk(from)) {
            for (Path file : files.toList()) {
                Files.copy(file, to.resolve(from.relativize(file).toString()), StandardCopyOption.COPY_ATTRIBUTES);
            }
        }
    }

    @Test
    void aProgramThatIsNotThereIsNamed() throws Exception {
        assertOneLine(fedcomuon("", "run", "Missing.java"), "Missing.java", "no such file");
        assertOneLine(fedcomuon("", "run"), "run FILE.java");
        assertOneLine(fedcomuon("", "run", "program.py"), "ends in .java");
    }
}
