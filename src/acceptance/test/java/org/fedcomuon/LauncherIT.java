package org.fedcomuon;

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
import java.util.stream.Stream;
import org.fedcomuon.Launcher.Run;
import org.fedcomuon.testing.Repository;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The launcher as a user starts it: its exit codes, and the one line it prints when something is wrong. */
@Slow
class LauncherIT {
    private static final Path ROOT = Repository.root();
    private static final String PLATFORM =
            "linux-" + System.getProperty("os.arch").replace("amd64", "x86_64");
    private static final Path FIXTURES = ROOT.resolve("target/native/cpu/test");

    @TempDir
    private Path temporary;

    private Run fedcomuon(String javaOptions, String... arguments) throws IOException, InterruptedException {
        return Launcher.in(temporary).with("FEDCOMUON_JAVA_OPTS", javaOptions).run(arguments);
    }

    private Run run(Path root, Map<String, String> environment, String... arguments)
            throws IOException, InterruptedException {
        return new Launcher(root, temporary, environment).run(arguments);
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
                "libother_abi.so has ABI version 999, but version 7 is needed");
    }

    /** The options of a JVM that has the library packaged with its classes, as in the jar for a platform. */
    private String packaged(Path cache) throws IOException {
        Path directory = Files.createDirectories(temporary.resolve("packaged/org/fedcomuon/native/" + PLATFORM));
        Files.copy(
                ROOT.resolve("target/native/cpu/libfedcomuon.so"),
                directory.resolve("libfedcomuon.so"),
                StandardCopyOption.REPLACE_EXISTING);
        return "-Dfedcomuon.native.path= -Dfedcomuon.cache=%s --patch-module=org.fedcomuon.core=%s"
                .formatted(cache, temporary.resolve("packaged"));
    }

    @Test
    void aCacheThatCannotBeWritten() throws Exception {
        Path file = Files.createFile(temporary.resolve("file"));
        assertOneLine(fedcomuon(packaged(file), "devices"), "cannot be unpacked", file.toString());
    }

    @Test
    void aDamagedCacheIsMended() throws Exception {
        Path cache = temporary.resolve("cache");
        assertThat(fedcomuon(packaged(cache), "devices").exitCode()).isZero();
        Path library;
        try (Stream<Path> files = Files.list(cache)) {
            library = files.toList().getFirst();
        }
        byte[] whole = Files.readAllBytes(library);
        Files.write(library, new byte[] {1, 2, 3});
        assertThat(fedcomuon(packaged(cache), "devices").exitCode()).isZero();
        assertThat(library).hasBinaryContent(whole);
        assertThat(cache).isDirectoryNotContaining(file -> file.toString().endsWith(".part"));
    }

    @Test
    void withoutALibraryTheJarIsNamed() throws Exception {
        assertOneLine(
                fedcomuon("-Dfedcomuon.native.path=", "devices"),
                "no native library for " + PLATFORM,
                "org.fedcomuon:fedcomuon-native");
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
        assertOneLine(fedcomuon("", "test", "--gpus"), "test --gpus: no such option", "--gpu", "--fast");
        assertOneLine(fedcomuon("", "test", "NoSuchTest"), "test NoSuchTest: no such class of tests");
        assertOneLine(fedcomuon("", "test", "--gpu", "--soak"), "test --gpu --soak: one at a time");
        assertOneLine(fedcomuon("", "test", "--gpu", "--devices"), "--devices", "cuda:0,cuda:1");
        assertOneLine(fedcomuon("", "test", "--devices", "cudasim:0"), "--devices cudasim:0: requires test --gpu");
        Run help = fedcomuon("", "test", "--help");
        assertThat(help.exitCode()).as(help.err()).isZero();
        assertThat(help.out()).contains("--gpu", "gpu-report", "--fast");
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

    @Test
    void aHeapThatIsTooSmallIsOneLineWithTheRemedy() throws Exception {
        Run run = fedcomuon("-Xmx24m", "train", "mnist-robust", "--iterations", "5", "--quiet", "--out", "run");
        assertThat(run.exitCode()).as(run.err()).isEqualTo(1);
        assertThat(run.err().lines())
                .singleElement()
                .asString()
                .startsWith("fedcomuon: not enough memory: ")
                .contains("FEDCOMUON_JAVA_OPTS=-Xmx");
        assertThat(temporary.resolve("run/run.lock")).doesNotExist();
    }

    @Test
    void anOptionThatTheJvmRefusesIsOneLine() throws Exception {
        assertOneLine(fedcomuon("-Xmx4q", "--version"), "FEDCOMUON_JAVA_OPTS: ", "-Xmx4q");
        assertOneLine(fedcomuon("-XX:+NoSuchOption", "--version"), "FEDCOMUON_JAVA_OPTS: ", "NoSuchOption");
    }

    /** As in a container whose user has no entry in the password file: Java says that such a home is called "?". */
    @Test
    void aUserWithoutAHomeGetsALineAndNoDirectoryCalledQuestionMark() throws Exception {
        Launcher homeless = Launcher.in(temporary).with("HOME", "").with("XDG_CACHE_HOME", "");
        Run refused = homeless.with("FEDCOMUON_JAVA_OPTS", "-Duser.home=?")
                .run("train", "mnist-robust", "--iterations", "1", "--quiet", "--out", "run");
        assertThat(refused.exitCode()).as(refused.err()).isEqualTo(2);
        assertThat(refused.err().lines()).singleElement().asString().contains("set HOME", "-Dfedcomuon.cache=DIR");
        Run run = homeless.with("FEDCOMUON_JAVA_OPTS", "-Duser.home=? -Dfedcomuon.cache=" + temporary.resolve("cache"))
                .run("train", "mnist-robust", "--iterations", "1", "--quiet", "--out", "run")
                .done();
        assertThat(run.out()).contains("sha256");
        Run home = Launcher.in(temporary)
                .with("HOME", temporary.resolve("home").toString())
                .with("XDG_CACHE_HOME", "")
                .run("train", "mnist-robust", "--iterations", "1", "--quiet", "--out", "other")
                .done();
        assertThat(home.out()).contains("sha256");
        try (Stream<Path> files = Files.list(temporary)) {
            assertThat(files.map(file -> String.valueOf(file.getFileName())))
                    .containsExactlyInAnyOrder("run", "other", "cache", "home");
        }
    }

    /** Maven would make a directory called "?" for its files. */
    @Test
    void aBuildWithoutAHomeIsRefused() throws Exception {
        String somebody = "setpriv --reuid 12345 --regid 12345 --clear-groups env -u HOME ";
        String launcher = ROOT.resolve("fedcomuon").toString();
        Launcher shell = Launcher.in(temporary).with("LAUNCHER", launcher);
        assumeTrue(
                shell.shell(somebody + "test -x \"$LAUNCHER\"").exitCode() == 0,
                "this user cannot be another, or others cannot read the project");
        assertOneLine(shell.shell(somebody + "\"$LAUNCHER\" test BufferIT"), "no home directory", "set HOME");
    }

    /** A locale that says nothing about the encoding of names. */
    @Test
    void namesOfFilesMayHaveAnyLetters() throws Exception {
        Run run = Launcher.in(temporary)
                .with("LC_ALL", "POSIX")
                .with("LAUNCHER", ROOT.resolve("fedcomuon").toString())
                .shell("""
                        name=$'l\\xc3\\xa4uft-\\xe6\\x97\\xa5'
                        mkdir "$name"
                        "$LAUNCHER" train mnist-robust --iterations 1 --quiet --out "$name/run"
                        test -s "$name/run/report.html"
                        cp "$name/run/config.yaml" "$name/$name.yaml"
                        "$LAUNCHER" train "$name/$name.yaml" --quiet --out "$name/own"
                        "$LAUNCHER" report "$name/own" --out "$name/$name.html"
                        test -s "$name/$name.html"
                        ls
                        """)
                .done();
        assertThat(run.err()).isEmpty();
        try (Stream<Path> files = Files.list(temporary)) {
            assertThat(files).hasSize(1);
        }
    }

    /** A copy of the launcher beside what was built here, and a Maven that has nothing to do. */
    @Test
    void startsFromTheCacheThatABuildLeaves() throws Exception {
        Path built = ROOT.resolve("src/lab/target");
        Path jar;
        try (Stream<Path> files = Files.list(built)) {
            jar = files.filter(file -> String.valueOf(file.getFileName()).matches("fedcomuon-lab-[0-9.]+\\.jar"))
                    .findFirst()
                    .orElseGet(() -> Assumptions.abort("no jar has been made; ./fedcomuon test makes it"));
        }
        Path root = Files.createDirectory(temporary.resolve("copy"));
        Files.copy(ROOT.resolve("fedcomuon"), root.resolve("fedcomuon"), StandardCopyOption.COPY_ATTRIBUTES);
        Path target = Files.createDirectory(root.resolve("target"));
        Files.createSymbolicLink(target.resolve("native"), ROOT.resolve("target/native"));
        Path lab = Files.createDirectories(root.resolve("src/lab/target"));
        Files.copy(built.resolve("class-path"), lab.resolve("class-path"));
        copy(built.resolve("classes"), lab.resolve("classes")); // a module is not looked for behind a link
        Path copied = Files.copy(jar, lab.resolve(jar.getFileName())); // now, so newer than the classes
        Path tools = Files.createDirectory(temporary.resolve("tools"));
        Path asked = temporary.resolve("asked");
        Path maven = Files.writeString(tools.resolve("mvn"), "#!/bin/sh\necho \"$*\" >> '%s'\n".formatted(asked));
        assertThat(maven.toFile().setExecutable(true)).isTrue();
        String path = tools + ":" + System.getenv("PATH");

        Run first = run(root, Map.of("PATH", path), "--version");
        assertThat(first.exitCode()).as(first.err()).isZero();
        assertThat(target.resolve("fedcomuon.aot")).isRegularFile();
        assertThat(target.resolve("first-run")).doesNotExist();
        // Neither Spark nor benchmarks nor tests, and with them no simulated GPUs.
        assertThat(Files.readAllLines(asked))
                .singleElement()
                .asString()
                .contains("--projects src/lab package", "-Dmaven.test.skip=true");

        // The JVM is told to refuse a cache that it cannot use.
        var required = Map.of("FEDCOMUON_BUILD", "no", "FEDCOMUON_JAVA_OPTS", "-XX:AOTMode=on");
        Run second = run(root, required, "--version");
        assertThat(second.exitCode()).as(second.err()).isZero();
        assertThat(second.out()).isEqualTo(first.out());
        assertThat(second.err()).isEmpty();

        // Classes that are newer than the jar are what runs.
        age(copied);
        Run third = run(root, Map.of("FEDCOMUON_BUILD", "no", "FEDCOMUON_JAVA_OPTS", "-Xlog:class+load"), "--version");
        assertThat(third.exitCode()).as(third.err()).isZero();
        assertThat(third.out()).containsPattern("org.fedcomuon.cli.Main source: file:.*/src/lab/target/classes/");
    }

    /** As on a disk that is mounted for reading only, for which a test would need to be root. */
    @Test
    void aProjectThatCannotBeWrittenTo() throws Exception {
        Path root = Files.createDirectory(temporary.resolve("copy"));
        Files.copy(ROOT.resolve("fedcomuon"), root.resolve("fedcomuon"), StandardCopyOption.COPY_ATTRIBUTES);
        Path target = Files.createFile(root.resolve("target"));
        assertOneLine(run(root, Map.of(), "devices"), target + " cannot be written to", "make it writable");

        Path spark = Files.createDirectories(root.resolve("src/spark/target"));
        Files.createFile(spark.resolve("class-path"));
        assertOneLine(
                run(root, Map.of("FEDCOMUON_BUILD", "no"), "train", "mnist-robust", "--cluster", "spark://host:7077"),
                target.resolve("spark") + " cannot be written to",
                "set SPARK_HOME");
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
        assertOneLine(fedcomuon("", "run", "program.py"), "for .java files");
    }
}
