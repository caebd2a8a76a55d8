package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.fedcomuon.cli.CommandRun.assertRefused;
import static org.fedcomuon.testing.TrainProcess.summary;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import org.fedcomuon.experiment.Reproduction;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.testing.Cifar10Files;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The presets of text and of meta learning as a user runs them, so small that a run takes no time. */
@Slow
class PresetsIT {
    private static final List<String> METHODS = List.of(
            "fedcomuon",
            "fedcomuon-vr",
            "fedavg",
            "fedmaml",
            "fedmuon",
            "fedmuon-lga",
            "fedmuon-bc",
            "comfedl",
            "local-scgdm",
            "fedprox",
            "scaffold",
            "fedadam",
            "fedyogi",
            "ef21-muon",
            "local-moml",
            "fgdro-kl",
            "fgdro-cvar",
            "feddro");

    @TempDir
    private static Path data;

    @TempDir
    private Path temporary;

    /** A preset, and what makes it tiny. */
    enum Tiny {
        TEXT(
                "wikitext2-robust",
                "text",
                "depth=1 width=16 heads=2 hidden=16 length=8 batch=2 judgedTrain=6 judgedTest=20"),
        CNN(
                "cifar-maml-cnn",
                "images",
                "wide=2 wider=3 narrow=2 dense=8 perClient=20 testPerClient=6 batch=4 judgedTrain=6"),
        VIT(
                "cifar-maml-vit",
                "images",
                "patch=16 depth=1 width=6 heads=3 perClient=20 testPerClient=6 batch=4 judgedTrain=6");

        private final String preset;
        private final String directory;
        private final String settings;

        Tiny(String preset, String directory, String settings) {
            this.preset = preset;
            this.directory = directory;
            this.settings = settings;
        }

        List<String> arguments() {
            var all = new ArrayList<>(List.of("train", preset));
            for (String setting : (settings + " evaluateEvery=3").split(" ", -1)) {
                all.addAll(List.of("--set", setting));
            }
            return all;
        }
    }

    @BeforeAll
    static void write() throws IOException {
        Cifar10Files.directory(data.resolve("images"), 60);
        Path text = Files.createDirectory(data.resolve("text"));
        Files.writeString(text.resolve("wiki.train.tokens"), words(3000));
        Files.writeString(text.resolve("wiki.test.tokens"), words(500));
    }

    /** Some words are rarer than others, so that there is something to learn. */
    private static String words(int count) {
        var random = new Random(count);
        var text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            text.append((char) ('a' + random.nextInt(1 + random.nextInt(26)))).append(i % 20 == 19 ? '\n' : ' ');
        }
        return text.toString();
    }

    private static CommandRun train(Tiny tiny, Path out, String... more) {
        var all = new ArrayList<>(tiny.arguments());
        all.addAll(List.of("--out", out.toString()));
        all.addAll(List.of(more));
        if (!all.contains("--data-dir")) {
            all.addAll(List.of("--data-dir", data.resolve(tiny.directory).toString()));
        }
        return CommandRun.of(all.toArray());
    }

    private static JsonNode line(Path directory, int number) throws IOException {
        return JsonMapper.shared()
                .readTree(Files.readAllLines(directory.resolve("metrics.jsonl")).get(number));
    }

    @ParameterizedTest
    @EnumSource
    void everyMethodTrains(Tiny tiny) throws Exception {
        var hashes = new HashSet<String>();
        for (String method : METHODS) {
            Path out = temporary.resolve(method);
            CommandRun run = train(tiny, out, "--method", method, "--iterations", "6");
            assertThat(run.exitCode()).as("%s: %s", method, run.err()).isZero();
            assertThat(run.err()).contains("GiB of memory");
            assertThat(summary(out).get("diverged").asBoolean()).isFalse();
            assertThat(line(out, 2).get("train_loss").asDouble())
                    .isFinite()
                    .isNotEqualTo(line(out, 0).get("train_loss").asDouble());
            assertThat(summary(out).get("memory_estimate_bytes").asLong()).isGreaterThan(500L << 20);
            assertThat(Files.readString(out.resolve("report.html"))).contains("</html>");
            hashes.add(summary(out).get("sha256").asString());
        }
        assertThat(hashes).hasSize(METHODS.size());
    }

    @ParameterizedTest
    @EnumSource
    void devicesThreadsAndInterruptionsGiveBitIdenticalResults(Tiny tiny) throws Exception {
        String[] vr = {"--method", "fedcomuon-vr", "--tau", "3", "--checkpoint-every", "1"};
        Path whole = temporary.resolve("whole");
        Path spread = temporary.resolve("spread");
        Path parts = temporary.resolve("parts");
        assertThat(train(tiny, whole, with(vr, "--iterations", "9", "--threads", "2"))
                        .exitCode())
                .isZero();
        assertThat(train(tiny, spread, with(vr, "--iterations", "9", "--threads", "1", "--devices", "cpu:0,cpu:1"))
                        .exitCode())
                .isZero();
        assertThat(train(tiny, parts, with(vr, "--iterations", "5")).exitCode()).isZero();
        CommandRun rest = CommandRun.of(
                "train",
                "--resume",
                parts.toString(),
                "--iterations",
                "9",
                "--data-dir",
                data.resolve(tiny.directory).toString());
        assertThat(rest.exitCode()).as(rest.err()).isZero();
        String sha256 = summary(whole).get("sha256").asString();
        assertThat(summary(spread).get("sha256").asString()).isEqualTo(sha256);
        assertThat(summary(parts).get("sha256").asString()).isEqualTo(sha256);
        // and the same metrics
        assertThat(line(spread, 3).get("test_loss")).isEqualTo(line(whole, 3).get("test_loss"));
    }

    /** A preset with several inner values, and what makes it tiny. */
    enum Zoo {
        AUC("mnist-auc", "clients=4 perClient=40 shares=0.1,0.5 batch=6"),
        PORTFOLIO("portfolio", "markets=4 days=20 assets=5 batch=5"),
        POLICY("policy-evaluation", "chains=4 transitions=20 states=4 features=2 batch=5");

        private final String preset;
        private final String settings;

        Zoo(String preset, String settings) {
            this.preset = preset;
            this.settings = settings;
        }

        CommandRun train(Path out, String... more) {
            var all = new ArrayList<>(List.of("train", preset, "--out", out.toString()));
            for (String setting : (settings + " evaluateEvery=3").split(" ", -1)) {
                all.addAll(List.of("--set", setting));
            }
            all.addAll(List.of(more));
            return CommandRun.of(all.toArray());
        }
    }

    @ParameterizedTest
    @EnumSource
    void everyMethodForSeveralInnerValuesTrains(Zoo zoo) throws Exception {
        var hashes = new HashSet<String>();
        for (String method : METHODS) {
            Path out = temporary.resolve(method);
            CommandRun run = zoo.train(out, "--method", method, "--iterations", "6");
            assertThat(run.exitCode()).as("%s: %s", method, run.err()).isZero();
            assertThat(line(out, 2).get("train_objective").asDouble())
                    .isFinite()
                    .isNotEqualTo(line(out, 0).get("train_objective").asDouble());
            assertThat(Files.readAllLines(out.resolve("clients.jsonl"))).hasSize(3 * 4);
            assertThat(Files.readString(out.resolve("report.html"))).contains("<h2>Clients</h2>", "</html>");
            assertThat(hashes.add(summary(out).get("sha256").asString()))
                    .as(method)
                    .isTrue();
        }
    }

    @ParameterizedTest
    @EnumSource
    void devicesAndInterruptionsDoNotMatterToSeveralInnerValues(Zoo zoo) throws Exception {
        String[] vr = {"--method", "fedcomuon-vr", "--tau", "3", "--checkpoint-every", "1"};
        Path whole = temporary.resolve("whole");
        Path spread = temporary.resolve("spread");
        Path parts = temporary.resolve("parts");
        assertThat(zoo.train(whole, with(vr, "--iterations", "9", "--threads", "2"))
                        .exitCode())
                .isZero();
        assertThat(zoo.train(spread, with(vr, "--iterations", "9", "--threads", "1", "--devices", "cpu:0,cpu:1"))
                        .exitCode())
                .isZero();
        // schedules depend on the number of steps, which a rate that is constant does not
        String[] constant = with(vr, "--set", "eta=0.01");
        Path first = temporary.resolve("first");
        assertThat(zoo.train(first, with(constant, "--iterations", "9")).exitCode())
                .isZero();
        assertThat(zoo.train(parts, with(constant, "--iterations", "5")).exitCode())
                .isZero();
        CommandRun rest = CommandRun.of("train", "--resume", parts.toString(), "--iterations", "9");
        assertThat(rest.exitCode()).as(rest.err()).isZero();
        assertThat(summary(spread).get("sha256")).isEqualTo(summary(whole).get("sha256"));
        assertThat(summary(parts).get("sha256")).isEqualTo(summary(first).get("sha256"));
        assertThat(Files.readAllLines(parts.resolve("clients.jsonl")).stream()
                        .filter(row -> !row.startsWith("{\"step\":5,"))) // where the first part ended
                .isEqualTo(Files.readAllLines(first.resolve("clients.jsonl")));
    }

    private static String[] with(String[] some, String... more) {
        var all = new ArrayList<>(List.of(some));
        all.addAll(List.of(more));
        return all.toArray(String[]::new);
    }

    @Test
    void textIsJudgedByPerplexity() throws Exception {
        Path out = temporary.resolve("run");
        CommandRun run = train(Tiny.TEXT, out, "--iterations", "30", "--set", "eta=0.05");
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).contains("test_perplexity").doesNotContain("accuracy");
        assertThat(run.err())
                .contains("but not WikiText-2: 3150 training and 525 test tokens", "a vocabulary of 28", "blocks of 8");
        JsonNode last = line(out, 10);
        assertThat(last.get("test_perplexity").asDouble())
                .isCloseTo(Math.exp(last.get("test_loss").asDouble()), within(1e-9))
                .isLessThan(line(out, 0).get("test_perplexity").asDouble());
        assertThat(last.propertyNames()).doesNotContain("test_accuracy", "worst_client_accuracy");
        assertThat(Files.readString(out.resolve("report.html"))).contains("test perplexity");
    }

    /** The losses of WikiText-2 over lambda, and more: exponents of 57 where it has 5 to 20. */
    @Test
    void aLargeExponentNeitherOverflowsNorFreezes() throws Exception {
        for (String method : List.of("fedcomuon", "fedcomuon-vr")) {
            double[] start = new double[2];
            double[] end = new double[2];
            String[] lambdas = {"0.06", "1000"};
            for (int i = 0; i < 2; i++) {
                Path out = temporary.resolve(method + i);
                CommandRun run = train(
                        Tiny.TEXT,
                        out,
                        with(
                                new String[] {"--method", method, "--iterations", "30"},
                                "--set",
                                "lambda=" + lambdas[i],
                                "--set",
                                "eta=0.05"));
                assertThat(run.exitCode()).as(run.err()).isZero();
                start[i] = line(out, 0).get("train_loss").asDouble();
                end[i] = line(out, 10).get("train_loss").asDouble();
            }
            assertThat(start[0]).isGreaterThan(3.2).isEqualTo(start[1]);
            assertThat(end[0]).isLessThan(start[0] - 0.2);
            assertThat(end[0]).isLessThan(end[1] + 0.2); // about as far as with the plain mean
        }
    }

    @Test
    void theMetaTestIsAfterAdaptation() throws Exception {
        Path little = temporary.resolve("little");
        Path much = temporary.resolve("much");
        assertThat(train(Tiny.VIT, little, "--iterations", "1", "--set", "inner=1e-9")
                        .exitCode())
                .isZero();
        assertThat(train(Tiny.VIT, much, "--iterations", "1", "--set", "inner=0.5")
                        .exitCode())
                .isZero();
        for (String metric : List.of("train_loss", "test_loss")) { // of the same W0
            assertThat(Math.abs(line(much, 0).get(metric).asDouble()
                            - line(little, 0).get(metric).asDouble()))
                    .isGreaterThan(1e-3);
        }
    }

    @Test
    void aRunThatCannotFitIsRefusedWithTheFigure() {
        Path out = temporary.resolve("never");
        assertRefused(
                train(Tiny.TEXT, out, "--memory-limit", "0.5"),
                "this run needs about 0.8 GiB of memory: 0.0 GiB for the method's variables",
                "only 0.5 GiB are allowed");
        // The paper's size: 10 clients with 6 variables of 50 million parameters, and more with the whole vocabulary.
        assertRefused(
                CommandRun.of(
                        "train",
                        "wikitext2-robust",
                        "--method",
                        "fedcomuon-vr",
                        "--memory-limit",
                        "8",
                        "--out",
                        out.toString()),
                "this run needs about",
                "only 8.0 GiB are allowed");
        assertRefused(train(Tiny.TEXT, out, "--memory-limit", "-1"), "--memory-limit -1");
        assertThat(out.resolve("config.yaml")).doesNotExist();
    }

    @Test
    void badDataAreOneLine() throws Exception {
        Path out = temporary.resolve("never");
        Path bad = Files.createDirectory(temporary.resolve("bad"));
        Path test = Files.writeString(bad.resolve("wiki.test.tokens"), words(500));
        assertRefused(text(out, bad), "missing", "train.txt", bad.toString());
        Path train = Files.writeString(bad.resolve("wiki.train.tokens"), "");
        assertRefused(text(out, bad), train.toString());
        Files.writeString(train, "word word word word word word word word word word word\n");
        assertRefused(text(out, bad), train.toString(), "a single word");
        Files.writeString(train, "a b\n");
        assertRefused(text(out, bad), train.toString(), "a block of 8");
        Files.delete(test);
        assertRefused(text(out, bad), "missing", "test.txt");

        assertRefused(images(out, bad), "missing", "data get cifar10");
        Path small = Cifar10Files.directory(temporary.resolve("small"), 10);
        assertRefused(images(out, small), "10 clients with 20 examples each");
        Path batch = small.resolve("data_batch_2.bin");
        Files.write(batch, new byte[3072]);
        assertRefused(images(out, small), batch.toString(), "3072 bytes");
        Files.delete(batch);
        assertRefused(images(out, small), "data_batch_2.bin is missing");
        assertThat(out.resolve("config.yaml")).doesNotExist();
        assertThat(out.resolve("metrics.jsonl")).doesNotExist();
    }

    private static CommandRun text(Path out, Path directory) {
        return train(Tiny.TEXT, out, "--iterations", "3", "--data-dir", directory.toString());
    }

    private static CommandRun images(Path out, Path directory) {
        return train(Tiny.CNN, out, "--iterations", "3", "--data-dir", directory.toString());
    }

    @ParameterizedTest
    @CsvSource({"wikitext2, TEXT", "maml-cnn, CNN", "tau-maml, CNN", "maml-vit, VIT"})
    void figuresAreMadeOfTinyRuns(String name, Tiny tiny) throws Exception {
        Map<String, String> changes = new LinkedHashMap<>(Map.of("iterations", "6", "evaluateEvery", "2"));
        for (String setting : tiny.settings.split(" ", -1)) {
            String[] parts = setting.split("=", -1);
            changes.put(parts[0], parts[1]);
        }
        Reproduction figure = Reproduction.of(name, Reproduction.Form.QUICK).changed(changes);
        var out = new StringWriter();
        var options = new Training.Options(
                List.of("cpu:0"),
                Optional.empty(),
                2,
                Optional.of(data.resolve(tiny.directory)),
                OptionalLong.empty(),
                Optional.empty(),
                false,
                "test");
        new ReproduceTraining(figure, new PrintWriter(out)).run(temporary, 2, options, 1);

        assertThat(out.toString())
                .containsOnlyOnce(tiny == Tiny.TEXT ? "test tokens" : "test images"); // not for each run
        JsonNode json = JsonMapper.shared().readTree(Files.readString(temporary.resolve(name + ".json")));
        assertThat(json.get("rows")).hasSize(figure.rows().size());
        String metric = tiny == Tiny.TEXT ? "test_perplexity" : "test_accuracy";
        for (JsonNode row : json.get("rows")) {
            JsonNode metrics = row.get("metrics");
            assertThat(metrics.get(metric).get("values")).hasSize(2);
            JsonNode losses = metrics.get("test_loss").get("values");
            assertThat(losses.get(0)).isNotEqualTo(losses.get(1)); // of two seeds
        }
        assertThat(json.get("claims"))
                .hasSizeGreaterThanOrEqualTo(4)
                .noneMatch(claim -> claim.get("comparisons").isEmpty());
        String table = Files.readString(temporary.resolve(name + ".md"));
        assertThat(table).contains("| fedcomuon", metric, "over 2 seeds");
        assertThat(table.contains("accuracy")).isEqualTo(tiny != Tiny.TEXT);
        assertThat(Files.readString(temporary.resolve(name + ".html"))).contains("<h2>Claims</h2>", "</html>");
    }

    @Test
    void aFigureWithoutItsDataIsRefused() throws Exception {
        Path empty = Files.createDirectory(temporary.resolve("empty"));
        for (String name : List.of("maml-cnn", "tau-maml", "maml-vit")) {
            CommandRun run = CommandRun.of(
                    "reproduce", name, "--quick", "--data-dir", empty.toString(), "--out", temporary.toString());
            assertRefused(run, "the data are missing", "./fedcomuon data get cifar10");
        }
    }

    @Test
    void partsThatDoNotFitTogether() {
        Path out = temporary.resolve("never");
        CommandRun other = train(Tiny.CNN, out, "--set", "model=lenet");
        assertThat(other.exitCode()).isEqualTo(2);
        assertThat(other.err().lines())
                .hasSize(1 + 4)
                .filteredOn(line -> line.contains("is not a setting of this run; it requires model = cifar-cnn"))
                .hasSize(4);
        assertRefused(train(Tiny.VIT, out, "--set", "heads=4"), "heads");
        assertRefused(train(Tiny.VIT, out, "--set", "patch=5"), "patch");
        assertRefused(train(Tiny.TEXT, out, "--set", "dropout=1"), "dropout");
        assertRefused(train(Tiny.CNN, out, "--set", "chi=0.05"), "0.05");
    }
}
