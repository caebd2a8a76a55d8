package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.testing.NumpyFiles;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Problems of a user's own that are wrong: one message that says all that is, exit code 2, and nothing left behind. */
class WrongProblemsIT {
    private static final String BASE = """
            data: arrays
            train: {x: x.npy, y: y.npy}
            testShare: 0.25
            model: {layers: [dense: 8, relu, dense: 3]}
            objective: mean
            clients: 4
            batch: 4
            iterations: 2
            """;

    private static final String IMAGES = "x: images.npy, y: y.npy";
    private static final String TEXT = """
            data: text
            train: text.txt
            length: 8
            model: {layers: [embedding: {words: 14, width: 4}, dense: 14]}
            """;

    @TempDir
    private static Path directory;

    private static OwnFiles files;

    @TempDir
    private Path temporary;

    /**
     * A wrong file.
     *
     * @param changes of {@link #BASE}
     * @param mistakes of the file, each with words that its line has
     */
    record Wrong(String name, String changes, List<List<String>> mistakes) {
        @Override
        public String toString() {
            return name;
        }
    }

    private static List<String> says(String... words) {
        return List.of(words);
    }

    @SafeVarargs
    @SuppressWarnings("varargs")
    private static Wrong wrong(String name, String changes, List<String>... mistakes) {
        return new Wrong(name, changes, List.of(mistakes));
    }

    private static Wrong one(String name, String changes, String... words) {
        return new Wrong(name, changes, List.of(List.of(words)));
    }

    private static String arrays(String x, String y) {
        return "train: {x: %s, y: %s}\n".formatted(x, y);
    }

    private static String layers(String list) {
        return "model: {layers: [%s]}\n".formatted(list);
    }

    private static String table(String file) {
        return "data: csv\ntrain: {file: %s, label: kind, client: who}\n".formatted(file);
    }

    static Stream<Wrong> files() {
        return Stream.of(
                // arrays
                one("fewer labels than examples", arrays("x.npy", "short_y.npy"), "x.npy", "(24, 5)", "23 labels"),
                one("a negative label", arrays("x.npy", "negative_y.npy"), "negative_y.npy", "label -1", "example 3"),
                one("a label that is not whole", arrays("x.npy", "half_y.npy"), "half_y.npy", "label 0.5", "whole"),
                one("a label out of range", arrays("x.npy", "large_y.npy"), "large_y.npy", "4000000000", "from 0 to"),
                one("one-hot labels", arrays("x.npy", "x.npy"), "x.npy", "y.argmax(axis=1)"),
                one("NaN in the data", arrays("nan_x.npy", "y.npy"), "nan_x.npy", "NaN", "example 2", "x[2, 1]"),
                one("infinity in the data", arrays("inf_x.npy", "y.npy"), "inf_x.npy", "Infinity", "finite"),
                one("values for float64 only", arrays("huge_x.npy", "y.npy"), "huge_x.npy", "range of float32"),
                one("channels last", arrays("last_x.npy", "y.npy"), "last_x.npy", "x.transpose(0, 3, 1, 2)"),
                one("numbers without features", arrays("y.npy", "y.npy"), "y.npy", "(24,)", "(count, features)"),
                one("a header that claims two gigabytes", arrays("claim_x.npy", "y.npy"), "claim_x.npy", "500000000"),
                one("a header that is no header", arrays("broken_x.npy", "y.npy"), "broken_x.npy", "descr"),
                one("a file that is no array", arrays("text.txt", "y.npy"), "text.txt", "NPY"),
                one("an empty file", arrays("empty.npy", "y.npy"), "empty.npy"),
                one("a truncated array", arrays("cut_x.npy", "y.npy"), "cut_x.npy", "bytes"),
                one("a truncated archive", arrays("cut.npz#x", "y.npy"), "cut.npz", "damaged"),
                one("an archive without that name", arrays("both.npz#z", "y.npy"), "both.npz", "no array 'z'", "x, y"),
                one("an archive of two arrays", arrays("both.npz", "y.npy"), "both.npz", "2 arrays", "both.npz#x"),
                one("a zip bomb", arrays("bomb.npz#x", "y.npy"), "bomb.npz#x", "bytes"),
                one("a directory", arrays("tree", "y.npy"), "tree is a directory", "an NPY file"),
                wrong(
                        "two files that are missing",
                        arrays("none_x.npy", "none_y.npy"),
                        says("train.x = ", "none_x.npy", "no such file"),
                        says("train.y = ", "none_y.npy", "no such file")),
                one(
                        "test examples of another shape",
                        "test: {x: wide_x.npy, y: y.npy}\n-testShare",
                        "wide_x.npy",
                        "x.npy"),
                wrong(
                        "training and test labels",
                        arrays("x.npy", "negative_y.npy") + "test: {x: x.npy, y: half_y.npy}\n-testShare",
                        says("negative_y.npy", "label -1"),
                        says("half_y.npy", "label 0.5")),

                // test examples
                one("no test examples", "-testShare", "test.x and test.y", "testShare"),
                one("test labels alone", "test: {y: y.npy}\n-testShare", "test.y is given alone", "test.x and test.y"),
                one("test examples twice", "test: {x: x.npy, y: y.npy}", "both", "test.x", "testShare"),
                one("a test share of nothing", "testShare: 0", "testShare = 0", "more than 0 and less than 1"),
                one("a test share of all", "testShare: 1", "testShare = 1", "more than 0 and less than 1"),

                // tables
                one("a ragged table", table("ragged.csv"), "ragged.csv", "line 3"),
                one("a column twice", table("twice.csv"), "twice.csv", "'a'"),
                one("no such label", table("t.csv").replace("label: kind", "label: king"), "t.csv", "king", "kind"),
                one("no such client", table("t.csv").replace("client: who", "client: whom"), "t.csv", "whom", "who"),
                one("text among numbers", table("text.csv"), "text.csv", "line 4", "'b'", "many"),
                one("an empty cell", table("gap.csv"), "gap.csv", "line 2"),
                one("a table without rows", table("head.csv"), "head.csv"),
                one("a table that is not UTF-8", table("latin.csv"), "latin.csv", "UTF-8"),

                // images and text
                one("images of two sizes", "data: images\ntrain: sizes\n" + layers("flatten, dense: 2"), "sizes", "8"),
                one("a directory without classes", "data: images\ntrain: tree", "tree", "class"),
                one("a class without images", "data: images\ntrain: hollow", "hollow"),
                one("an image that is none", "data: images\ntrain: fake", "fake", "0.png"),
                one("a missing directory", "data: images\ntrain: nowhere", "train = ", "nowhere", "no such file"),
                wrong(
                        "a text that is too short",
                        TEXT + "length: 5000",
                        says("text.txt", "words for training", "a block of 5000"),
                        says("text.txt", "words for testing")),
                one(
                        "a text of one word",
                        TEXT + "train: same.txt\ntest: text.txt\n-testShare",
                        "same.txt",
                        "a single word"),
                one("classes of a text", TEXT + "split: dirichlet", "split = dirichlet needs classes", "iid"),
                one("positives of a text", TEXT + "positives: [1]", "positives needs classes"),

                // models
                one("an unknown layer", layers("dence: 8, dense: 3"), "layers[1]", "dence", "did you mean 'dense'"),
                wrong(
                        "several wrong layers",
                        layers("dense: many, relu: 3, conv: {out: 8}, dense: 3"),
                        says("layers[1]", "dense needs out, a whole number from 1, not \"many\""),
                        says("layers[2]", "relu has no sizes"),
                        says("layers[3]", "conv needs kernel")),
                one("an unknown size", layers("dense: {outs: 3}"), "layers[1]", "outs", "did you mean 'out'"),
                one("no layers", layers(""), "layers = []", "a list of layers"),
                one("layers that are a word", "model: layers\nlayers: dense", "layers = dense", "a list of layers"),
                one("a layer within a residual", layers("residual: [foo], dense: 3"), "layers[1].residual[1]", "foo"),
                one("the last layer has too few outputs", layers("dense: 2"), "model = layers", "3", "2"),
                one("a residual of differing shapes", layers("residual: [dense: 4], dense: 3"), "residual", "4", "5"),
                one("a convolution of rows", layers("conv: {out: 2, kernel: 3}, flatten, dense: 3"), "layers", "conv"),
                one(
                        "a kernel larger than the image",
                        "train: {%s}\n".formatted(IMAGES) + layers("conv: {out: 2, kernel: 9}, flatten, dense: 3"),
                        "kernel",
                        "9",
                        "8"),
                one("two models", "model: {layers: [dense: 3], torchscript: m.pt}", "model has 2 entries"),
                one("a model that does not fit", "model: lenet", "model = lenet takes", "data = arrays has"),
                one("an unknown model", "model: resnet", "no model is called 'resnet'"),
                one("a TorchScript file that is none", "model: {torchscript: text.txt}", "torchscript = ", "text.txt"),
                one(
                        "a TorchScript file that is missing",
                        "model: {torchscript: m.pt}",
                        "torchscript = ",
                        "no such file"),
                one(
                        "a class that is not found",
                        "model: {class: org.example.None}",
                        "class = org.example.None",
                        "--class-path"),
                one(
                        "a class that is no network",
                        "model: {class: java.lang.String}",
                        "java.lang.String does not implement"),

                // weights
                one("weights that are missing", "init: w.safetensors", "init = ", "w.safetensors", "no such file"),
                one("weights of another format", "init: text.txt", "text.txt"),
                one("weights of other shapes", "init: wide.safetensors", "wide.safetensors", "[8, 6]", "[8, 5]"),
                one(
                        "weights that lack tensors",
                        "init: small.safetensors",
                        "small.safetensors",
                        "no tensor 'dense2.weight'",
                        "no tensor 'dense2.bias'",
                        "it has the tensors dense1.weight, dense1.bias"),
                one(
                        "names that are no names",
                        "init: small.safetensors\ninitNames: dense1",
                        "initNames = dense1",
                        "a list"),

                // splits
                one("more clients than examples", "clients: 50", "split = iid", "18 are too few for 50 clients"),
                one(
                        "a split that leaves clients without examples",
                        "split: dirichlet\nconcentration: 0.001\nclients: 12",
                        "split = dirichlet",
                        "concentration of 0.001",
                        "would do"),
                one("clients by a column that is not there", "split: by-column\n-clients", "split = by-column"),
                one(
                        "clients by a column of another number",
                        table("t.csv") + "split: by-column\nclients: 7\n" + layers("dense: 3"),
                        "split = by-column",
                        "7 clients",
                        "3 groups"),
                one(
                        "shares of three classes",
                        "split: positive-shares\nperClient: 4",
                        "split = positive-shares",
                        "3 classes"),
                one("a share out of range", "split: positive-shares\nshares: [0.5, 2]", "shares = 0.5,2"),
                one(
                        "an unknown split",
                        "split: dirichlett",
                        "no split is called 'dirichlett'",
                        "did you mean 'dirichlet'"),

                // objectives
                one(
                        "the area under the curve of three classes",
                        "objective: auc\n" + layers("dense: 1"),
                        "two classes",
                        "3"),
                wrong(
                        "clients without one of two classes",
                        table("sorted.csv") + "objective: auc\nsplit: by-column\n-clients\n" + layers("dense: 1"),
                        says("client 0 has no positive example"),
                        says("client 1 has no negative example")),
                one(
                        "the area under the curve of a text",
                        TEXT + "objective: auc\n" + layers("embedding: {words: 14, width: 4}, dense: 1"),
                        "objective = auc needs classes"),
                one(
                        "the Bellman equation of rows",
                        "objective: bellman\n" + layers("dense: 1"),
                        "objective = bellman needs"),
                one(
                        "a network for the Bellman equation",
                        "data: markov-chain\n-train\n-testShare\nsplit: by-column\n-clients\nobjective: bellman\n"
                                + layers("dense: 1"),
                        "objective = bellman",
                        "bias: false"),
                one(
                        "two returns of a portfolio",
                        "objective: mean-variance\n" + layers("dense: 2"),
                        "model = layers",
                        "2",
                        "1"),
                one("an unknown objective", "objective: kll", "no objective is called 'kll'", "did you mean 'kl'"),
                one("a level of one", "objective: cvar\nlevel: 1", "level = 1", "less than 1"),
                one("positives that are all", "positives: [0, 1, 2]", "positives"),
                one("positives that no example has", "positives: [7]", "positives", "7"),

                // the file itself
                one("unknown data", "data: array", "no data is called 'array'", "did you mean 'arrays'"),
                one(
                        "an unknown method",
                        "method: fedcomun",
                        "no method is called 'fedcomun'",
                        "did you mean 'fedcomuon'"),
                one("an unknown setting", "cleints: 4", "no setting is called 'cleints'", "did you mean 'clients'"),
                one("a setting of other data", "assets: 4", "assets is not a setting of this run", "data = returns"),
                one("a list for a number", "clients: [4, 5]", "clients is a list; a single value is needed"),
                one("a mapping for a number", "batch: {size: 4}", "batch is a mapping; a single value is needed"),
                one("a mapping for a list", "positives: {one: 1}", "positives is a mapping; a list of single values"),
                one("a list for a mapping", "train: [x.npy, y.npy]", "train is a list", "{x: FILE, y: FILE}"),
                one("methods that are a list", "methods: [fedavg]", "methods is not a mapping"),
                one("a method that is a number", "methods: {fedavg: 3}", "methods.fedavg is not a mapping"),
                one("nothing for a number", "clients:", "clients is empty; a single value is needed"),
                one("a word for a number", "batch: four", "batch = four", "a whole number from 1"),
                wrong(
                        "nothing but a model",
                        "-data\n-train\n-testShare\n-model\nmodel: lenet\n",
                        says("data is not set")),
                wrong("no files", "-train", says("train.x is not set"), says("train.y is not set")),
                one("a file that extends itself", "extends: extends_itself.yaml", "leads back"),
                one("a file that extends one that extends it", "extends: back.yaml", "back.yaml", "leads back"),
                one("a file that extends none", "extends: nothing.yaml", "nothing.yaml cannot be read"),
                one("a file that extends no preset", "extends: mnist-robus", "did you mean 'mnist-robust'"),
                one("a path that leads outside", arrays("../outside_x.npy", "y.npy"), "outside_x.npy", "no such file"),

                // all at once
                wrong(
                        "mistakes of every kind",
                        "clients: none\nobjective: kll\nlambda: 3\nmodel: {layers: [dence: 3]}\ninit: w.safetensors\n"
                                + arrays("none.npy", "y.npy"),
                        says("no objective is called 'kll'"),
                        says("clients = none"),
                        says("layers[1]", "dence"),
                        says("init = ", "no such file"),
                        says("train.x = ", "no such file")),
                wrong(
                        "data, weights and class",
                        arrays("nan_x.npy", "y.npy") + "init: text.txt\nmodel: {class: org.example.None}",
                        says("nan_x.npy", "NaN"),
                        says("class = org.example.None"),
                        says("text.txt")),
                wrong(
                        "objective, model, split and weights",
                        "objective: auc\nclients: 50\ninit: text.txt",
                        says("objective = auc needs two classes"),
                        says("model = layers"),
                        says("split = iid"),
                        says("text.txt")));
    }

    @BeforeAll
    static void write() throws IOException {
        files = new OwnFiles(directory, BASE);
        double[] x = OwnFiles.values(24, 5, 3, 1);
        double[] y = OwnFiles.labels(24, 3);
        files.array("x.npy", "<f4", "(24, 5)", x);
        files.array("y.npy", "<i8", "(24,)", y);
        files.array("short_y.npy", "<i8", "(23,)", Arrays.copyOf(y, 23));
        files.array("negative_y.npy", "<i2", "(24,)", with(y, 3, -1));
        files.array("half_y.npy", "<f4", "(24,)", with(y, 3, 0.5));
        files.array("large_y.npy", "<u4", "(24,)", with(y, 3, 4e9));
        files.array("nan_x.npy", "<f4", "(24, 5)", with(x, 11, Double.NaN));
        files.array("inf_x.npy", "<f8", "(24, 5)", with(x, 11, Double.POSITIVE_INFINITY));
        files.array("huge_x.npy", "<f8", "(24, 5)", with(x, 11, 1e300));
        files.array("wide_x.npy", "<f4", "(24, 6)", new double[144]);
        files.array("last_x.npy", "|u1", "(24, 8, 8, 3)", new double[24 * 192]);
        files.array("images.npy", "|u1", "(24, 8, 8)", new double[24 * 64]);
        files.array("claim_x.npy", "<f4", "(24, 500000000)", x);
        files.array("cut_x.npy", "<f4", "(24, 5)", Arrays.copyOf(x, 100));
        byte[] whole = NumpyFiles.npy("<f4", false, "(24, 5)", x);
        String broken = new String(whole, StandardCharsets.ISO_8859_1).replace("'descr'", "'desks'");
        Files.writeString(files.file("broken_x.npy"), broken, StandardCharsets.ISO_8859_1);
        Files.createFile(files.file("empty.npy"));
        var arrays = new LinkedHashMap<String, byte[]>();
        arrays.put("x", whole);
        arrays.put("y", NumpyFiles.npy("<i8", false, "(24,)", y));
        byte[] archive = Files.readAllBytes(NumpyFiles.npz(files.file("both.npz"), arrays));
        Files.write(files.file("cut.npz"), Arrays.copyOf(archive, archive.length / 2));
        bomb();
        tables();
        Files.createDirectory(files.file("tree"));
        files.images("sizes", "png", 2, 8, 8);
        files.images("sizes/left/more", "png", 1, 6, 8);
        Files.move(files.file("sizes/left/more/right/0.png"), files.file("sizes/left/other.png"));
        for (String part : List.of("left/0.png", "left", "right", "")) {
            Files.deleteIfExists(files.file("sizes/left/more").resolve(part));
        }
        files.images("hollow", "png", 2, 8, 8);
        Files.createDirectory(files.file("hollow/middle"));
        files.images("fake", "png", 2, 8, 8);
        Files.writeString(files.file("fake/left/0.png"), "not an image");
        files.text("text.txt", 1000);
        Files.writeString(files.file("same.txt"), "word ".repeat(30));
        Block first = Block.matrix("dense1.weight", 8, 5);
        Block bias = Block.vector("dense1.bias", 8);
        weights("small.safetensors", first, bias);
        weights(
                "wide.safetensors",
                Block.matrix("dense1.weight", 8, 6),
                bias,
                Block.matrix("dense2.weight", 3, 8),
                Block.vector("dense2.bias", 3));
        files.yaml("back.yaml", "extends: extends_back.yaml");
    }

    private static double[] with(double[] values, int at, double value) {
        double[] changed = values.clone();
        changed[at] = value;
        return changed;
    }

    /** A megabyte that becomes a gigabyte of zeros, with a header that asks for little. */
    private static void bomb() throws IOException {
        try (var zip = new ZipOutputStream(Files.newOutputStream(files.file("bomb.npz")))) {
            zip.putNextEntry(new ZipEntry("x.npy"));
            zip.write(NumpyFiles.npy("<f4", false, "(24, 5)", new double[120]));
            var zeros = new byte[1 << 20];
            for (int i = 0; i < 256; i++) {
                zip.write(zeros);
            }
        }
    }

    private static void tables() throws IOException {
        List<String> good = Files.readAllLines(files.table("t.csv", 24, 3, 3));
        table("ragged.csv", good, 2, good.get(2) + ",1");
        table("twice.csv", good, 0, "a,a,kind,who");
        table("text.csv", good, 3, "1,many,kind1,who1");
        table("gap.csv", good, 1, "1,,kind1,who1");
        Files.writeString(files.file("head.csv"), good.getFirst() + "\n");
        Files.writeString(files.file("latin.csv"), good.getFirst() + "\n1,2,\u00e4,x\n", StandardCharsets.ISO_8859_1);
        var sorted = new ArrayList<>(List.of("a,kind,who"));
        for (int i = 0; i < 24; i++) {
            int client = i / 8;
            sorted.add("%d,%s,%d".formatted(i, client == 0 || (client == 2 && i % 2 == 0) ? "no" : "yes", client));
        }
        Files.write(files.file("sorted.csv"), sorted);
    }

    private static void table(String name, List<String> good, int line, String text) throws IOException {
        var lines = new ArrayList<>(good);
        lines.set(line, text);
        Files.write(files.file(name), lines);
    }

    private static void weights(String name, Block... blocks) throws IOException {
        Layout layout = Layout.of(blocks);
        new Point(layout, Floats.zeros(layout.length())).save(files.file(name), Map.of());
    }

    @ParameterizedTest
    @MethodSource("files")
    void aWrongFileIsOneMessage(Wrong wrong) throws IOException {
        String name = wrong.name.contains("extends itself")
                ? "extends_itself.yaml"
                : wrong.name.contains("that extends it") ? "extends_back.yaml" : "wrong.yaml";
        Path file = files.yaml(name, wrong.changes);
        Path out = temporary.resolve("out");
        CommandRun run = CommandRun.of("train", file, "--out", out);
        List<String> lines = run.err().lines().toList();
        assertThat(run.exitCode()).as(run.err()).isEqualTo(2);
        assertThat(lines.getFirst()).startsWith("fedcomuon: ");
        assertThat(run.err()).doesNotContain("Exception", "\tat ");
        List<String> said = lines;
        if (wrong.mistakes.size() > 1) {
            assertThat(lines.getFirst()).contains("%d mistakes".formatted(wrong.mistakes.size()));
            said = lines.subList(1, lines.size());
        }
        assertThat(said).as(run.err()).hasSameSizeAs(wrong.mistakes);
        for (int i = 0; i < said.size(); i++) {
            assertThat(said.get(i)).contains(wrong.mistakes.get(i));
        }
        assertThat(run.out()).isEmpty();
        assertThat(temporary).isEmptyDirectory();
    }

    /** What the wrong ones are changes of is right: it is the change that is refused. */
    @Test
    void theFileThatTheyChangeIsRight() throws IOException {
        for (String changes : List.of(
                "",
                table("t.csv") + "split: by-column\n-clients",
                "data: images\ntrain: hollow/../ok\n" + layers("flatten, dense: 2"),
                TEXT,
                "positives: [1, 2]\nclients: 2\nobjective: auc\n" + layers("dense: 1"))) {
            files.images("ok", "png", 8, 8, 8);
            Path out = temporary.resolve("out" + changes.length());
            CommandRun run = CommandRun.of("train", files.yaml("right.yaml", changes), "--out", out);
            assertThat(run.exitCode()).as(run.err()).isZero();
        }
    }
}
