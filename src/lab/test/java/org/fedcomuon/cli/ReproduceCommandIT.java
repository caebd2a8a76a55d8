package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.experiment.Rates;
import org.fedcomuon.experiment.RatesReport;
import org.fedcomuon.testing.Repository;
import org.fedcomuon.testing.Slow;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class ReproduceCommandIT {
    @TempDir
    private Path temporary;

    /** What the command asked for. */
    private record Asked(List<String> methods, List<Long> lengths, int seeds) {}

    private final List<Asked> asked = new ArrayList<>();

    /** With measurements that fall as the theory says, times T to the power of {@code deviation}. */
    private CommandRun run(double deviation, Object... arguments) {
        return run(
                (subjects, lengths, seeds, progress) -> {
                    asked.add(
                            new Asked(subjects.stream().map(Rates.Subject::name).toList(), lengths, seeds));
                    progress.accept("measuring");
                    return new RatesReport(
                            8,
                            subjects.stream()
                                    .map(subject -> curve(subject, lengths, subject.theory() + deviation))
                                    .toList());
                },
                arguments);
    }

    private static RatesReport.Curve curve(Rates.Subject subject, List<Long> lengths, double slope) {
        return new RatesReport.Curve(
                subject.name(),
                subject.orthogonalizer().name(),
                subject.theory(),
                subject.least(),
                subject.greatest(),
                lengths.stream()
                        .map(length -> new RatesReport.Run(length, List.of(Math.pow((double) length, slope))))
                        .toList());
    }

    private static CommandRun run(ReproduceCommand.Measurement measurement, Object... arguments) {
        return CommandRun.of(new CommandLine(new ReproduceCommand(measurement)), arguments);
    }

    private static JsonNode json(Path directory) throws IOException {
        return JsonMapper.shared().readTree(Files.readString(directory.resolve("rates.json")));
    }

    private void assertRefused(CommandRun result, String... words) {
        CommandRun.assertRefused(result, words);
        assertThat(result.out()).isEmpty();
        assertThat(asked).isEmpty();
    }

    @Test
    void aFullRunThatAgrees() throws Exception {
        CommandRun result = run(0, "rates", "--out", temporary);

        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(result.err()).isEmpty();
        assertThat(asked)
                .containsExactly(new Asked(
                        List.of("fedcomuon", "fedcomuon-vr", "fedcomuon", "fedcomuon-vr"),
                        List.of(256L, 512L, 1024L, 2048L, 4096L, 8192L, 16384L),
                        4));
        assertThat(result.out().lines())
                .startsWith("measuring")
                .endsWith(
                        temporary.resolve("rates.json").toString(),
                        temporary.resolve("rates.html").toString())
                .anyMatch(line -> line.matches("fedcomuon-vr +exact +-0\\.333 +-0\\.333 +-0\\.39 to -0\\.27 +agrees"))
                .noneMatch(line -> line.contains("too short for a conclusion"));
        assertThat(json(temporary).get("quick").asBoolean()).isFalse();
        assertThat(json(temporary).get("curves"))
                .hasSize(4)
                .allMatch(curve -> curve.get("agrees").asBoolean());
        assertThat(Files.readString(temporary.resolve("rates.html"))).contains("All 4 slopes agree");
    }

    @Test
    void aSlopeThatDoesNotAgreeFailsTheRunOnceTheFilesAreWritten() throws Exception {
        CommandRun result = run(0.1, "rates", "--methods", "fedcomuon-vr", "--out", temporary);

        assertThat(result.exitCode()).isEqualTo(1);
        assertThat(result.err().lines())
                .singleElement()
                .asString()
                .startsWith("fedcomuon: 2 of 2 slopes")
                .endsWith("rates.html");
        assertThat(result.out()).contains("-0.233", "does not agree");
        assertThat(json(temporary).get("curves"))
                .hasSize(2)
                .noneMatch(curve -> curve.get("agrees").asBoolean());
        assertThat(Files.readString(temporary.resolve("rates.html"))).contains("2 of 2 slopes do not agree");
    }

    @Test
    void aQuickRunIsInconclusive() throws Exception {
        CommandRun result = run(0.1, "rates", "--quick", "--out", temporary);

        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(result.err()).isEmpty();
        assertThat(asked.getFirst().lengths()).containsExactly(256L, 512L, 1024L, 2048L);
        assertThat(asked.getFirst().seeds()).isEqualTo(2);
        assertThat(result.out()).contains("does not agree", "too short for a conclusion");
        assertThat(json(temporary).get("quick").asBoolean()).isTrue();
        assertThat(Files.readString(temporary.resolve("rates.html"))).contains("too short for a conclusion");
    }

    @Test
    void methodsAndSeedsAreTheUsers() {
        assertThat(run(0, "rates", "--methods", "fedcomuon", "--seeds", "7", "--out", temporary)
                        .exitCode())
                .isZero();
        assertThat(asked.getFirst().methods()).containsOnly("fedcomuon");
        assertThat(asked.getFirst().seeds()).isEqualTo(7);
    }

    @Test
    void badInput() throws Exception {
        assertRefused(run(0, "ratse"), "no such FIGURE: 'ratse'", "'rates'", "maml-vit");
        assertRefused(run(0), "FIGURE");
        assertRefused(run(0, "rates", "--seeds", "0"), "--seeds 0", "range 1 to");
        assertRefused(run(0, "rates", "--seeds", "-3"), "--seeds -3");
        assertRefused(run(0, "rates", "--seeds", "1001"), "--seeds 1001", "1000");
        assertRefused(run(0, "rates", "--seeds", "many"), "--seeds", "many");
        assertRefused(run(0, "rates", "--methods", "fedcomuon,fedavg"), "'fedavg'", "fedcomuon and fedcomuon-vr");
        Path file = Files.createFile(temporary.resolve("file"));
        assertRefused(run(0, "rates", "--out", file), "--out", file.toString());
        assertRefused(run(0, "rates", "--out", file.resolve("below")), "--out", file.toString());
        // The one of the launcher is the same.
        assertRefused(CommandRun.of("reproduce", "ratse"), "'ratse'");
    }

    @Test
    void measuresAndLeavesBothFiles() throws Exception {
        Path out = temporary.resolve("new/rates");
        CommandRun result = run(
                (subjects, lengths, seeds, progress) -> Rates.run(subjects, List.of(8L, 16L, 64L), seeds, progress),
                "rates",
                "--quick",
                "--seeds",
                1,
                "--out",
                out);

        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(result.out().lines().filter(line -> line.contains("T = "))).hasSize(4 * 3);
        JsonNode json = json(out);
        assertThat(json.get("figure").asString()).isEqualTo("rates");
        assertThat(json.get("clients").asInt()).isEqualTo(Rates.CLIENTS);
        assertThat(json.get("curves")).hasSize(4);
        for (JsonNode curve : json.get("curves")) {
            boolean reduced = curve.get("method").asString().equals("fedcomuon-vr");
            assertThat(curve.get("theory").asDouble()).isCloseTo(reduced ? -1.0 / 3 : -1.0 / 4, within(1e-12));
            double slope = curve.get("slope").asDouble();
            assertThat(slope).isBetween(-1.0, 0.5);
            assertThat(curve.get("agrees").asBoolean())
                    .isEqualTo(slope >= curve.get("least").asDouble()
                            && slope <= curve.get("greatest").asDouble());
            assertThat(curve.get("runs")).hasSize(3);
            for (JsonNode run : curve.get("runs")) {
                assertThat(run.get("norms")).hasSize(1);
                assertThat(run.get("norms").get(0).asDouble()).isPositive();
                assertThat(run.get("mean")).isEqualTo(run.get("norms").get(0));
            }
            assertThat(curve.get("runs").get(2).get("iterations").asLong()).isEqualTo(64);
        }
        assertThat(Files.readString(out.resolve("rates.html")))
                .contains("fedcomuon-vr", "newton-schulz", "T = 64", "too short for a conclusion");
        assertThat(out).isDirectoryNotContaining(file -> file.toString().endsWith(".part"));
    }

    /** The values in the documentation give the tables and answers that stand beside them. */
    @ParameterizedTest
    @CsvSource({
        "mnist, robust-mnist, false",
        "mnist/tuned, robust-mnist, false",
        "mnist, tau-mnist, false",
        "wikitext2, wikitext2, true",
        "cifar10, maml-cnn, true",
        "cifar10, tau-maml, true",
        "cifar10, maml-vit, true",
        "auc, auc, false"
    })
    void publishedAnswersFollowFromPublishedValues(String directory, String figure, boolean quick) throws Exception {
        Path published = Repository.root().resolve("docs/results").resolve(directory);
        CommandRun result = fromFile(figure, published.resolve(figure + ".json"), quick);

        assertThat(result.exitCode()).as(result.err()).isZero();
        List<String> lines = Files.readAllLines(temporary.resolve(figure + ".md"));
        assertThat(lines).filteredOn(line -> line.startsWith("- ")).isNotEmpty();
        assertThat(Files.readAllLines(published.resolve(figure + ".md"))).containsAll(lines.subList(1, lines.size()));
        assertThat(result.out()).contains(lines.subList(1, lines.size()));
    }

    private CommandRun fromFile(String figure, Path file, boolean quick) {
        var arguments = new ArrayList<Object>(List.of(figure, "--from", file, "--out", temporary));
        if (quick) {
            arguments.add("--quick");
        }
        return run(0, arguments.toArray());
    }

    /** What is written can be read again, with runs that diverged. */
    @Test
    void aFileGivesTheSameFileAgain() throws Exception {
        Path first = Files.writeString(temporary.resolve("first.json"), """
                {"figure": "auc", "changes": {}, "rows": [
                  {"row": "fedavg", "seeds": [42, 43], "diverged": [43], "sha256": ["a", ""],
                   "metrics": {"test_auc": {"values": [0.5, null]}}},
                  {"row": "fedmuon", "seeds": [42, 43], "diverged": [], "sha256": ["b", "c"],
                   "metrics": {"test_auc": {"values": [0.75, 0.875]}}}]}
                """);
        assertThat(fromFile("auc", first, false).exitCode()).isZero();
        Path second = temporary.resolve("auc.json");
        String once = Files.readString(second);
        assertThat(once).contains("\"values\" : [ 0.5, null ]", "\"mean\" : 0.8125", "fedcomuon was not run");
        assertThat(Files.readString(temporary.resolve("auc.md")))
                .contains("| fedavg | 2 | diverged with 1 |", "| fedmuon | 2 | 0.8125 ± 0.0884 |");
        assertThat(fromFile("auc", second, false).exitCode()).isZero();
        assertThat(Files.readString(second)).isEqualTo(once);
    }

    @Test
    void valuesThatAreNotOfTheFigureAreRefused() throws Exception {
        Path file = temporary.resolve("values.json");
        assertRefused(fromFile("auc", file, false), "--from", file.toString());
        for (String text : List.of(
                "",
                "[]",
                "{\"figure\": \"auc\"",
                "{\"figure\": \"auc\", \"changes\": {}}",
                "{\"figure\": \"auc\", \"changes\": {}, \"rows\": [{\"row\": 1}]}",
                row("[42]", "[1e999]"),
                row("[42]", "[1, 2]"),
                row("[42]", "[\"1\"]"),
                row("[42.5]", "[1]"))) {
            Files.writeString(file, text);
            assertRefused(fromFile("auc", file, false), "--from", file.toString());
        }
        Files.writeString(file, row("[42]", "[1]"));
        assertRefused(fromFile("tau-mnist", file, false), "reproduce auc", "reproduce tau-mnist");
        assertRefused(fromFile("auc", file, true), "the settings of the preset", "iterations=60");
        assertRefused(run(0, "auc", "--from", file, "--seeds", 2), "--seeds", "--from");
        assertRefused(run(0, "rates", "--from", file), "--from", "rates");
        assertRefused(run(0, "auc", "--parallel", "0"), "--parallel 0", "cores");
        assertRefused(run(0, "auc", "--from", file, "--tuned", temporary), "--tuned", "--from");
    }

    /** The settings that a sweep has found are in the runs, the tables and the file, and stay when that is read. */
    @Test
    void settingsComeFromASweep() throws Exception {
        Path sweep = Files.createDirectory(temporary.resolve("sweep"));
        String trained = "auc";
        assertRefused(run(0, trained, "--tuned", sweep), "sweep.json");
        assertRefused(run(0, "rates", "--tuned", sweep), "--tuned", "rates");
        assertRefused(run(0, "rates", "--quick", "--medium"), "--quick", "--medium");
        Path file = sweep.resolve("sweep.json");
        Files.writeString(file, sweep("mnist-auc", false));
        assertRefused(run(0, trained, "--tuned", sweep), "0 of 4 trials");
        Files.writeString(file, sweep("mnist-robust", true));
        assertRefused(run(0, trained, "--tuned", sweep), "a sweep of mnist-robust", "mnist-auc");
        Files.writeString(file, sweep("mnist-auc", true));
        assertRefused(run(0, trained, "--tuned", sweep), "no settings of fedmuon");
        Files.writeString(file, "{\"complete\": true}");
        assertRefused(run(0, trained, "--tuned", sweep), "not the file of a sweep");
    }

    @Test
    @Slow
    void runsHaveTheSettingsOfASweep() throws Exception {
        Path sweep = Files.createDirectory(temporary.resolve("sweep"));
        Files.writeString(sweep.resolve("sweep.json"), sweep("mnist-robust", true));
        String[] figure = {"robust-mnist", "--quick", "--methods", "fedavg", "--tuned", sweep.toString()};
        CommandRun tuned = train(temporary.resolve("tuned"), figure, "--seeds", "1");
        assertThat(tuned.out()).contains("Settings found on validation examples: fedavg eta=0.25.");
        assertThat(Files.readString(temporary.resolve("tuned/fedavg-42/config.yaml")))
                .contains("eta: 0.25");
        Path file = temporary.resolve("tuned/robust-mnist.json");
        String once = Files.readString(file);
        assertThat(fromFile("robust-mnist", file, true).exitCode()).isZero();
        assertThat(Files.readString(temporary.resolve("robust-mnist.json")))
                .isEqualTo(once)
                .contains("0.25");
    }

    private static String sweep(String preset, boolean complete) {
        return """
                {"preset": "%s", "complete": %s, "planned": 4, "trials": [], "rankings": [{"settings": [
                  {"method": "fedavg", "settings": {"eta": "0.125"}, "trials": []},
                  {"method": "fedavg", "settings": {"eta": "0.25"}, "mean": 0.75, "trials": []},
                  {"method": "fedavg", "settings": {"eta": "0.5"}, "mean": 0.5, "trials": []}]}]}
                """.formatted(preset, complete);
    }

    private static String row(String seeds, String values) {
        return """
                {"figure": "auc", "changes": {}, "rows": [
                  {"row": "a", "seeds": %s, "diverged": [], "sha256": [], "metrics": {"test_auc": {"values": %s}}}]}
                """.formatted(seeds, values);
    }

    /** Seeds can be added later, and runs side by side leave the same weights. */
    @Test
    @Slow
    void runsThatExistAreKept() throws Exception {
        String[] figure = {"robust-mnist", "--quick", "--methods", "fedavg,fedcomuon"};
        CommandRun two = train(temporary.resolve("two"), figure, "--seeds", "2", "--parallel", "2");
        assertThat(two.out()).contains("fedcomuon, seed 43: test accuracy").doesNotContain("seed 44");
        CommandRun three = train(temporary.resolve("two"), figure, "--seeds", "3");
        assertThat(three.out().lines().filter(line -> line.endsWith(": exists already")))
                .hasSize(4);
        assertThat(three.out()).contains("fedcomuon, seed 44: test accuracy", "| fedavg | 3 |");
        train(temporary.resolve("one"), figure, "--seeds", "2");
        for (String run : List.of("fedavg-42", "fedavg-43", "fedcomuon-42", "fedcomuon-43")) {
            assertThat(sha256(temporary.resolve("two").resolve(run)))
                    .isEqualTo(sha256(temporary.resolve("one").resolve(run)));
        }
    }

    private static CommandRun train(Path out, String[] figure, String... more) {
        var arguments = new ArrayList<Object>(List.of("reproduce"));
        arguments.addAll(List.of(figure));
        arguments.addAll(List.of(more));
        arguments.addAll(List.of("--out", out.toString()));
        CommandRun result =
                CommandRun.of(arguments.stream().map(Object::toString).toArray());
        assertThat(result.exitCode()).as(result.err()).isZero();
        return result;
    }

    private static String sha256(Path run) throws IOException {
        return JsonMapper.shared()
                .readTree(Files.readString(run.resolve("summary.json")))
                .get("sha256")
                .asString();
    }
}
