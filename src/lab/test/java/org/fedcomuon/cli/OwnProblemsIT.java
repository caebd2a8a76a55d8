package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.fedcomuon.cli.CommandRun.assertRefused;
import static org.fedcomuon.testing.TrainProcess.sha256;
import static org.fedcomuon.testing.TrainProcess.summary;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.bytedeco.pytorch.JitModule;
import org.bytedeco.pytorch.QualifiedName;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.Npy;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.format.SafetensorsWriter;
import org.fedcomuon.testing.NumpyFiles;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Problems of a user's own in YAML, from data to weights. */
class OwnProblemsIT {
    private static final String BASE = """
            data: arrays
            train: {x: x.npy, y: y.npy}
            testShare: 0.25
            model: {layers: [dense: 8, relu, dense: 3]}
            objective: robust
            clients: 4
            batch: 4
            iterations: 6
            tau: 3
            evaluateEvery: 3
            """;

    private static final String CSV = "data: csv\ntrain: {file: t.csv, label: kind, client: who}\n";

    @TempDir
    private static Path directory;

    private static OwnFiles files;

    @TempDir
    private Path temporary;

    @BeforeAll
    static void write() throws IOException {
        files = new OwnFiles(directory, BASE);
        double[] x = OwnFiles.values(120, 5, 3, 1);
        double[] y = OwnFiles.labels(120, 3);
        files.array("x.npy", "<f4", "(120, 5)", x);
        files.array("y.npy", "|i1", "(120,)", y);
        Map<String, byte[]> arrays = new LinkedHashMap<>();
        arrays.put("x", NumpyFiles.npy("<f8", false, "(120, 5)", x));
        arrays.put("y", NumpyFiles.npy("<u8", false, "(120,)", y));
        NumpyFiles.npz(files.file("both.npz"), arrays);
        files.array(
                "images.npy",
                "|u1",
                "(24, 8, 8)",
                IntStream.range(0, 24 * 64)
                        .mapToDouble(i -> i / 64 % 3 == i % 3 ? 200 : i * 7 % 60)
                        .toArray());
        files.array("images_y.npy", "<i4", "(24, 1)", OwnFiles.labels(24, 3));
        files.table("t.csv", 90, 3, 5);
        files.images("png", "png", 20, 8, 6);
        files.images("jpg", "jpg", 20, 8, 6);
        files.text("text.txt", 2000);
    }

    private Path train(String name, String changes, Object... more) throws IOException {
        Path out = temporary.resolve(name);
        CommandRun run = run(files.yaml(name + ".yaml", changes), out, more);
        assertThat(run.exitCode()).as(run.err()).isZero();
        return out;
    }

    private static CommandRun run(Path yaml, Path out, Object... more) {
        var all = new ArrayList<Object>(List.of("train", yaml, "--out", out));
        all.addAll(List.of(more));
        return CommandRun.of(all.toArray());
    }

    private static List<JsonNode> lines(Path file) throws IOException {
        return Files.readAllLines(file).stream()
                .map(JsonMapper.shared()::readTree)
                .toList();
    }

    private static JsonNode last(Path run) throws IOException {
        return lines(run.resolve("metrics.jsonl")).getLast();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "npy;;true;90",
                "npz;'train: {x: both.npz#x, y: both.npz#y}';true;90",
                "tests;'test: {x: x.npy, y: y.npy}|-testShare';true;120",
                "csv;'data: csv|train: {file: t.csv, label: kind, client: who}';true;67",
                "png;'data: images|train: png|model: {layers: [conv: {out: 2, kernel: 3}, relu, maxpool: 2, flatten, dense: 2]}';true;30",
                "jpg;'data: images|train: jpg|test: png|-testShare|model: {layers: [flatten, dense: 2]}';true;40",
                "text;'data: text|train: text.txt|length: 8|model: {layers: [embedding: {words: 14, width: 6}, positions, attention: {heads: 2, causal: true}, dense: 14]}';false;"
            })
    void everyKindOfDataTrains(String name, String changes, boolean classes, Integer examples) throws Exception {
        String own = changes == null ? "" : changes.replace('|', '\n');
        var hashes = new HashSet<String>();
        for (String split : classes ? List.of("iid", "dirichlet") : List.of("iid")) {
            Path out = train(name + split, own + "\nsplit: " + split);
            JsonNode summary = summary(out);
            hashes.add(summary.get("sha256").asString());
            assertThat(summary.get("split")).hasSize(4);
            int all = 0;
            for (JsonNode row : summary.get("split")) {
                for (JsonNode count : row) {
                    all += count.asInt();
                }
            }
            if (examples != null) {
                assertThat(all).isEqualTo(examples);
            }
            assertThat(last(out)
                            .get(classes ? "test_accuracy" : "test_perplexity")
                            .asDouble())
                    .isFinite();
            assertThat(last(out).get("train_loss").asDouble())
                    .isNotEqualTo(lines(out.resolve("metrics.jsonl"))
                            .getFirst()
                            .get("train_loss")
                            .asDouble());
            List<JsonNode> clients = lines(out.resolve("clients.jsonl"));
            assertThat(clients).hasSize(3 * 4); // at steps 0, 3 and 6
            assertThat(clients.getLast().get("client").asInt()).isEqualTo(3);
            assertThat(clients.getLast().get("examples").asInt()).isPositive();
            assertThat(clients.getLast().get("loss").asDouble()).isFinite();
        }
        assertThat(hashes).hasSize(classes ? 2 : 1);
    }

    /** The same numbers in another format are the same problem. */
    @Test
    void theFormatOfTheDataDoesNotMatter() throws Exception {
        assertThat(sha256(train("archive", "train: {x: both.npz#x, y: both.npz#y}")))
                .isEqualTo(sha256(train("files", "")));
    }

    @Test
    void aColumnMakesClients() throws Exception {
        Path out = train("column", CSV + "split: by-column\n-clients");
        assertThat(summary(out).get("split")).hasSize(5);
        assertThat(Files.readString(out.resolve("config.yaml"))).doesNotContain("clients");
        assertThat(Files.readString(out.resolve("report.html"))).contains("</html>");
        assertThat(lines(out.resolve("clients.jsonl"))).hasSize(3 * 5);
        Path named = train("named", CSV + "split: by-column\nclients: 5");
        assertThat(sha256(named)).isEqualTo(sha256(out));
        Path again = temporary.resolve("again");
        assertThat(run(out.resolve("config.yaml"), again).exitCode()).isZero();
        assertThat(sha256(again)).isEqualTo(sha256(out));
    }

    @Test
    void filesExtendFiles() throws Exception {
        files.yaml("general.yaml", "lambda: 2\neta: 0.02\nmethods: {fedavg: {eta: 0.5}}");
        Path inner = Files.createDirectories(files.file("inner"));
        Files.writeString(inner.resolve("middle.yaml"), "extends: ../general.yaml\nlambda: 3\nbatch: 5\n");
        Path mine = Files.writeString(
                inner.resolve("mine.yaml"),
                "extends: middle.yaml\nbatch: 6\nobjective: kl\nmethods: {fedavg: {eta: 0.25}}\n");
        Path out = temporary.resolve("extended");
        CommandRun run = run(mine, out);
        assertThat(run.exitCode()).as(run.err()).isZero();
        String config = Files.readString(out.resolve("config.yaml"));
        assertThat(config).contains("lambda: 3.0", "batch: 6", "eta: 0.02", "objective: kl", "iterations: 6");
        Path flat = train("flat", "lambda: 3\neta: 0.02\nbatch: 6\nobjective: kl");
        assertThat(sha256(flat)).isEqualTo(sha256(out)); // data are found from the directory of the first file
        Path plain = temporary.resolve("plain");
        assertThat(run(mine, plain, "--method", "fedavg", "--set", "objective=mean")
                        .exitCode())
                .isZero();
        assertThat(Files.readString(plain.resolve("config.yaml")))
                .contains("eta: 0.25")
                .doesNotContain("lambda");
    }

    @Test
    void aChangedChoiceDropsTheSettingsOfTheOther() throws Exception {
        String changes = "split: dirichlet\nconcentration: 0.3\nlambda: 0.7";
        Path out = train("changed", changes, "--set", "split=iid", "--set", "objective=cvar", "--set", "level=0.5");
        assertThat(Files.readString(out.resolve("config.yaml")))
                .contains("split: iid", "objective: cvar", "level: 0.5", "smoothing: 0.1")
                .doesNotContain("concentration", "lambda");
        assertRefused(
                run(
                        files.yaml("lambda.yaml", changes),
                        temporary.resolve("no"),
                        "--set",
                        "objective=mean",
                        "--set",
                        "lambda=1"),
                "lambda is not a setting of this run");
    }

    @Test
    @Slow
    void theConfigurationOfARunIsCompleteAnywhere() throws Exception {
        Path out = train("here", "split: dirichlet", "--seed", "7", "--method", "fedcomuon-vr");
        Path elsewhere = Files.createDirectories(temporary.resolve("else/where"));
        Path config = Files.copy(out.resolve("config.yaml"), elsewhere.resolve("again.yaml"));
        var builder = new ProcessBuilder(TrainProcess.command(List.of(config.toString(), "--out", "again")))
                .directory(elsewhere.toFile())
                .redirectErrorStream(true)
                .redirectOutput(elsewhere.resolve("log").toFile());
        assertThat(TrainProcess.end(builder.start()))
                .as(Files.readString(elsewhere.resolve("log")))
                .isZero();
        assertThat(sha256(elsewhere.resolve("again"))).isEqualTo(sha256(out));
    }

    @Test
    void aRunResumesAfterItsFilesHaveMoved() throws Exception {
        Path old = Files.createDirectory(temporary.resolve("old"));
        for (String name : List.of("x.npy", "y.npy")) {
            Files.copy(files.file(name), old.resolve(name));
        }
        String changes = "train: {x: %1$s/x.npy, y: %1$s/y.npy}\ncheckpointEvery: 1".formatted(old);
        Path whole = train("whole", changes, "--iterations", "9");
        Path parts = train("parts", changes, "--iterations", "6");
        Path moved = Files.move(old, temporary.resolve("new"));
        CommandRun lost = CommandRun.of("train", "--resume", parts, "--iterations", "9");
        assertThat(lost.exitCode()).isEqualTo(2);
        assertThat(lost.err()).contains("2 mistakes", "train.x = ", "train.y = ", "no such file");
        CommandRun found = CommandRun.of(
                "train",
                "--resume",
                parts,
                "--iterations",
                "9",
                "--set",
                "train.x=" + moved.resolve("x.npy"),
                "--set",
                "train.y=" + moved.resolve("y.npy"));
        assertThat(found.exitCode()).as(found.err()).isZero();
        assertThat(sha256(parts)).isEqualTo(sha256(whole));
        assertThat(lines(parts.resolve("clients.jsonl"))).hasSize(4 * 4);

        Files.write(moved.resolve("x.npy"), NumpyFiles.npy("<f4", false, "(120, 5)", OwnFiles.values(120, 5, 3, 2)));
        assertAnotherRun(
                parts,
                "data",
                "--set",
                "train.x=" + moved.resolve("x.npy"),
                "--set",
                "train.y=" + moved.resolve("y.npy"));
    }

    /** Its checkpoint is refused because of {@code what}, and the run stays what it was. */
    private static void assertAnotherRun(Path run, String what, Object... more) throws IOException {
        var before = new LinkedHashMap<String, String>();
        for (String name : List.of("config.yaml", "metrics.jsonl", "clients.jsonl", "summary.json")) {
            before.put(name, Files.readString(run.resolve(name)));
        }
        var all = new ArrayList<Object>(List.of("train", "--resume", run, "--iterations", "30"));
        all.addAll(List.of(more));
        CommandRun refused = CommandRun.of(all.toArray());
        assertThat(refused.exitCode()).isEqualTo(2);
        assertThat(refused.err().lines().toList().getLast())
                .contains("is of another run: its config.%s is ".formatted(what));
        for (Map.Entry<String, String> file : before.entrySet()) {
            assertThat(run.resolve(file.getKey())).hasContent(file.getValue());
        }
    }

    /** The file of {@code [dense: 8, relu, dense: 3]} as libtorch writes it. */
    private Path torchScript(String name, Path weights, String activation) throws IOException {
        var module = new JitModule(new QualifiedName("Net"));
        var parts = new LinkedHashMap<String, JitModule>();
        try (SafetensorsFile file = SafetensorsFile.open(weights)) {
            for (SafetensorsFile.Tensor tensor : file.tensors().values()) {
                String[] path = tensor.name().split("\\.", -1);
                long[] shape =
                        tensor.shape().stream().mapToLong(Long::longValue).toArray();
                Tensor values =
                        Tensor.create(file.floats(tensor.name())).view(shape).clone();
                values.set_requires_grad(true);
                parts.computeIfAbsent(path[0], part -> new JitModule(new QualifiedName(part)))
                        .register_parameter(path[1], values, false);
            }
        }
        parts.forEach(module::register_module);
        module.define("""
                def forward(self, x):
                    x = torch.%s(torch.linear(x, self.dense1.weight, self.dense1.bias))
                    return torch.linear(x, self.dense2.weight, self.dense2.bias)
                """.formatted(activation));
        Path file = files.file(name);
        module.save(file.toString());
        return file;
    }

    private static Map<String, float[]> weights(Path run) throws IOException {
        var all = new LinkedHashMap<String, float[]>();
        try (SafetensorsFile file = SafetensorsFile.open(run.resolve("model.safetensors"))) {
            for (String name : file.tensors().keySet()) {
                all.put(name, file.floats(name));
            }
        }
        return all;
    }

    @Test
    void aTorchScriptFileTrainsAsItsLayersDo() throws Exception {
        Path start = train("start", "", "--iterations", "1", "--method", "fedavg");
        Path weights = start.resolve("model.safetensors");
        torchScript("net.pt", weights, "relu");
        Object[] more = {"--iterations", "20", "--init", weights};
        Path layers = train("layers", "checkpointEvery: 1", more);
        Path script = train("script", "model: {torchscript: net.pt}\ncheckpointEvery: 1", "--iterations", "20");
        Map<String, float[]> expected = weights(layers);
        Map<String, float[]> actual = weights(script);
        assertThat(actual.keySet()).isEqualTo(expected.keySet());
        expected.forEach(
                (name, values) -> assertThat(actual.get(name)).as(name).containsExactly(values, within(1e-5f)));
        assertThat(expected.get("dense1.weight")).isNotEqualTo(weights(start).get("dense1.weight"));

        torchScript("net.pt", weights, "tanh"); // the same parameters, but another model
        assertAnotherRun(script, "model_sha256");
    }

    /** Multiples of 1/16, which every type holds. */
    private Path stored(Dtype type, String prefix) throws IOException {
        var random = new SplittableRandom(3);
        List<SafetensorsWriter.Tensor> tensors = List.of(
                SafetensorsWriter.Tensor.of(prefix + "dense1.weight", type, 8, 5),
                SafetensorsWriter.Tensor.of(prefix + "dense1.bias", type, 8),
                SafetensorsWriter.Tensor.of(prefix + "dense2.weight", type, 3, 8),
                SafetensorsWriter.Tensor.of(prefix + "dense2.bias", type, 3));
        Path file = temporary.resolve(prefix + type + ".safetensors");
        try (var writer = SafetensorsWriter.create(file, Map.of(), tensors);
                Arena arena = Arena.ofConfined()) {
            for (SafetensorsWriter.Tensor tensor : tensors) {
                MemorySegment values = arena.allocate(tensor.bytes());
                for (long i = 0; i < tensor.bytes() / type.bytes(); i++) {
                    float value = random.nextInt(-8, 9) / 16f;
                    switch (type) {
                        case F32 -> values.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
                        case F16 -> values.setAtIndex(ValueLayout.JAVA_SHORT, i, Float.floatToFloat16(value));
                        default ->
                            values.setAtIndex(
                                    ValueLayout.JAVA_SHORT, i, (short) (Float.floatToRawIntBits(value) >>> 16));
                    }
                }
                writer.write(tensor.name(), 0, values);
            }
            writer.commit();
        }
        return file;
    }

    @Test
    void weightsAreReadFromEveryType() throws Exception {
        String expected = sha256(train("f32", "", "--init", stored(Dtype.F32, "")));
        assertThat(sha256(train("f16", "", "--init", stored(Dtype.F16, "")))).isEqualTo(expected);
        assertThat(sha256(train("bf16", "", "--init", stored(Dtype.BF16, "")))).isEqualTo(expected);
        String names = "initNames: dense1.weight=old.dense1.weight,dense1.bias=old.dense1.bias,"
                + "dense2.weight=old.dense2.weight,dense2.bias=old.dense2.bias";
        Path named = stored(Dtype.F32, "old.");
        assertThat(sha256(train("names", names + "\ninit: " + named))).isEqualTo(expected);
        assertThat(sha256(train("own", ""))).isNotEqualTo(expected);
        // a threshold is no weight of the network
        assertThat(sha256(train("threshold", "objective: cvar", "--init", named, "--set", names.replace(": ", "="))))
                .isNotEqualTo(expected);
    }

    @Test
    void exportedWeightsAreThoseOfTheModel() throws Exception {
        Path run = train("exported", "");
        Map<String, float[]> expected = weights(run);
        Path npz = temporary.resolve("w.npz");
        Path copy = Files.createDirectory(temporary.resolve("copy")).resolve("model.safetensors");
        for (Path out : List.of(npz, copy)) {
            CommandRun export = CommandRun.of("export", run, out);
            assertThat(export.exitCode()).as(export.err()).isZero();
            assertThat(export.out()).contains("dense1.weight", out.toString());
        }
        Map<String, float[]> copied = weights(copy.getParent());
        assertThat(copied.keySet()).isEqualTo(expected.keySet());
        try (Arena arena = Arena.ofConfined()) {
            for (Map.Entry<String, float[]> tensor : expected.entrySet()) {
                assertThat(copied.get(tensor.getKey())).containsExactly(tensor.getValue());
                Npy.Numbers numbers = Npy.readNumbers(Path.of(npz + "#" + tensor.getKey()), arena);
                assertThat(numbers.data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED))
                        .containsExactly(tensor.getValue());
            }
        }
        // and it is what a run can start from
        Path again = train("again", "", "--init", copy, "--iterations", "1");
        assertThat(lines(again.resolve("metrics.jsonl")).getFirst().get("test_loss"))
                .isEqualTo(last(run).get("test_loss"));
        assertRefused(CommandRun.of("export", run, temporary.resolve("w.bin")), ".npz or .safetensors");
        assertRefused(CommandRun.of("export", temporary.resolve("none"), npz), "does not exist");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "robust;",
                "mean;",
                "kl;",
                "cvar;",
                "meta;",
                "auc;positives: [1]|model: {layers: [dense: 6, tanh, dense: 1]}",
                "mean-variance;data: returns|-train|-testShare|split: by-column|-clients|markets: 3|days: 20|assets: 4|model: {layers: [dense: {out: 1, bias: false}]}",
                "bellman;data: markov-chain|-train|-testShare|split: by-column|-clients|chains: 3|transitions: 20|states: 3|features: 2|model: {layers: [dense: {out: 1, bias: false}]}"
            })
    void devicesDoNotMatterToAnyObjective(String objective) throws Exception {
        String[] parts = objective.split(";", 2);
        String changes = "objective: " + parts[0] + "\n" + parts[1].replace('|', '\n');
        Path one = train("one-" + parts[0], changes, "--threads", "2");
        Path two = train("two-" + parts[0], changes, "--devices", "cpu:0,cpu:1", "--threads", "1");
        assertThat(sha256(two)).isEqualTo(sha256(one));
        assertThat(lines(two.resolve("clients.jsonl"))).isEqualTo(lines(one.resolve("clients.jsonl")));
    }

    @Test
    void arraysOfImagesAreImages() throws Exception {
        String layers = "model: {layers: [conv: {out: 4, kernel: 3, padding: 1}, gelu, avgpool: 2, flatten, dense: 3]}";
        Path out = train("images", "train: {x: images.npy, y: images_y.npy}\nclients: 2\n" + layers);
        assertThat(weights(out).get("conv1.weight")).hasSize(4 * 9);
    }

    /** A path may lead out of the directory of the file: it is only read. */
    @Test
    void pathsMayLeadOutside() throws Exception {
        Path inner = Files.createDirectories(files.file("deeper/inner"));
        Path mine = Files.writeString(
                inner.resolve("mine.yaml"), "extends: ../../files.yaml\ntrain: {x: ../../x.npy, y: ../../y.npy}\n");
        files.yaml("files.yaml", "");
        Path out = temporary.resolve("outside");
        CommandRun run = run(mine, out);
        assertThat(run.exitCode()).as(run.err()).isZero();
    }
}
