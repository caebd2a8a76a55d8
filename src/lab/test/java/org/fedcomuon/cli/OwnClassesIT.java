package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.fedcomuon.cli.CommandRun.assertRefused;
import static org.fedcomuon.testing.TrainProcess.sha256;
import static org.fedcomuon.testing.TrainProcess.summary;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.testing.Repository;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Methods and models from outside: {@code examples/own-method}, compiled as its page says, on {@code --class-path}. */
class OwnClassesIT {
    private static final Path SOURCES = Repository.root().resolve("examples/own-method/src");

    @TempDir
    private static Path built;

    private static Path classes;
    private static Path jar;

    @TempDir
    private Path temporary;

    @BeforeAll
    static void compile() throws IOException {
        classes = built.resolve("classes");
        var command = new ArrayList<>(List.of("-d", classes.toString(), "-Xlint:all,-classfile,-path", "-cp", path()));
        try (Stream<Path> files = Files.walk(SOURCES)) {
            files.map(Path::toString).filter(name -> name.endsWith(".java")).forEach(command::add);
        }
        tool("javac", command);
        Path services = Files.createDirectories(classes.resolve("META-INF/services"));
        Path entry = Path.of("META-INF", "services", "org.fedcomuon.experiment.ChoiceProvider");
        Files.copy(SOURCES.resolve(entry), services.resolve(entry.getFileName()));
        jar = built.resolve("own.jar");
        tool("jar", List.of("--create", "--file", jar.toString(), "-C", classes.toString(), "."));
    }

    /** What these tests have themselves, wherever the build has put it. */
    private static String path() {
        return Stream.of("jdk.module.path", "surefire.real.class.path", "java.class.path")
                .map(property -> System.getProperty(property, ""))
                .filter(each -> !each.isEmpty())
                .collect(Collectors.joining(":"));
    }

    private static void tool(String name, List<String> arguments) {
        var printed = new StringWriter();
        var printer = new PrintWriter(printed);
        int status = ToolProvider.findFirst(name).orElseThrow().run(printer, printer, arguments.toArray(String[]::new));
        assertThat(status).as(printed.toString()).isZero();
    }

    private static CommandRun train(Object... arguments) {
        return CommandRun.of(
                Stream.concat(Stream.of("train"), Stream.of(arguments)).toArray());
    }

    private static CommandRun own(Path out, Object... more) {
        var all = new ArrayList<Object>(List.of("mnist-robust", "--class-path", classes, "--method", "my-method"));
        all.addAll(List.of("--set", "largest=200", "--set", "evaluateEvery=20", "--out", out));
        all.addAll(List.of(more));
        return train(all.toArray());
    }

    private static void done(CommandRun run) {
        assertThat(run.exitCode()).as(run.err()).isZero();
    }

    @Test
    void aMethodTrains() throws Exception {
        Path out = temporary.resolve("run");
        CommandRun run = own(out, "--iterations", 60, "--set", "keep=0.8");
        done(run);
        assertThat(summary(out).get("method").asString()).isEqualTo("my-method");
        assertThat(summary(out).get("test_accuracy").asDouble()).isGreaterThan(0.6);
        assertThat(Files.readString(out.resolve("config.yaml")))
                .contains("method: my-method", "eta: 0.01", "alpha: 0.2", "keep: 0.8");
        assertThat(out.resolve("report.html")).content().contains("my-method");

        Path byJar = temporary.resolve("jar");
        done(train(out.resolve("config.yaml"), "--class-path", jar, "--devices", "cpu:0,cpu:1", "--out", byJar));
        assertThat(sha256(byJar)).isEqualTo(sha256(out));
    }

    @Test
    void aRunIsResumedWithTheSameWeights() throws Exception {
        Path whole = temporary.resolve("whole");
        Path parts = temporary.resolve("parts");
        done(own(whole, "--iterations", 40));
        done(own(parts, "--iterations", 25));
        assertThat(sha256(parts)).isNotEqualTo(sha256(whole));
        done(train("--resume", parts, "--class-path", classes, "--iterations", 40));
        assertThat(sha256(parts)).isEqualTo(sha256(whole));

        CommandRun without = train("--resume", parts, "--iterations", 50);
        assertThat(without.exitCode()).isEqualTo(2);
        assertThat(without.err()).contains("my-method", "fedcomuon");
    }

    @Test
    void withoutItsClassesAMethodIsNotKnown() {
        Path out = temporary.resolve("never");
        CommandRun run = train("mnist-robust", "--method", "my-method", "--out", out);
        assertRefused(run, "no method is called 'my-method'", "fedcomuon, fedcomuon-vr, fedavg");
        assertThat(out).doesNotExist();
    }

    @Test
    void withItsClassesItIsNamedAsOursAre() {
        Path out = temporary.resolve("never");
        assertRefused(
                train("mnist-robust", "--class-path", classes, "--method", "another", "--out", out),
                "no method is called 'another'",
                "fedcomuon, fedcomuon-vr",
                "my-method");
        assertRefused(
                train("mnist-robust", "--class-path", classes, "--method", "mymethod", "--out", out),
                "did you mean 'my-method'?");
        assertThat(out).doesNotExist();
    }

    @Test
    void settingsAreChecked() {
        assertRefused(own(temporary.resolve("a"), "--set", "keep=1"), "keep = 1.0", "less than 1");
        assertRefused(own(temporary.resolve("b"), "--set", "beta=0.1"), "method 'my-method' has no beta", "keep");
    }

    private Path yaml(String model) throws IOException {
        return Files.writeString(temporary.resolve("own.yaml"), """
                extends: mnist-robust
                largest: 200
                iterations: 30
                evaluateEvery: 30
                model: {class: %s}
                eta: 0.02
                """.formatted(model));
    }

    @Test
    void aNetworkIsNamedByItsClass() throws Exception {
        Path file = yaml("org.example.muon.TwoLayers");
        Path out = temporary.resolve("run");
        done(train(file, "--class-path", jar, "--method", "my-method", "--out", out));
        assertThat(summary(out).get("test_accuracy").asDouble()).isGreaterThan(0.4);
        assertThat(Files.readString(out.resolve("config.yaml")))
                .contains("model: class", "class: org.example.muon.TwoLayers", "eta: 0.02");
        try (var model = SafetensorsFile.open(out.resolve("model.safetensors"))) {
            assertThat(model.tensors().keySet())
                    .containsExactly("hidden.weight", "hidden.bias", "head.weight", "head.bias");
            assertThat(model.tensors().get("hidden.weight").shape()).containsExactly(32L, 784L);
        }
    }

    @Test
    void aNetworkThatIsNotThereIsNamed() throws Exception {
        Path out = temporary.resolve("never");
        assertRefused(
                train(yaml("org.example.muon.TwoLayers"), "--out", out),
                "class = org.example.muon.TwoLayers is not found",
                "--class-path");
        assertRefused(
                train(yaml("org.example.muon.OwnChoices"), "--class-path", classes, "--out", out),
                "does not implement org.fedcomuon.model.Network");
        assertThat(out).doesNotExist();
    }

    @Test
    void aPathThatIsNotThereIsNamed() {
        assertRefused(train("mnist-robust", "--class-path", classes + ":missing.jar"), "'missing.jar' does not exist");
    }
}
