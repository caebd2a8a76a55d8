package org.fedcomuon;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.fedcomuon.testing.Repository;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Does what {@code docs/research.md} says, as a reader would: writes its files, then runs its commands in their order.
 * Programs in Python are run afterwards, where there is a Python.
 */
@Slow
class ResearchIT {
    private static final Path ROOT = Repository.root();
    private static final Pattern PIECE = Pattern.compile("```([a-z]*)\n(.*?)```", Pattern.DOTALL);
    private static final Pattern NAME = Pattern.compile("(?://|#) (mine/[A-Za-z_]+\\.[a-z]+)\n");

    /** A piece of the page. */
    private record Piece(String language, String text) {
        Path file() {
            var matcher = NAME.matcher(text);
            assertThat(matcher.lookingAt())
                    .as("the first line names a file:\n" + text)
                    .isTrue();
            return work.resolve(matcher.group(1));
        }
    }

    @TempDir
    private static Path work;

    private static final List<Piece> PIECES = new ArrayList<>();
    private static final StringBuilder PRINTED = new StringBuilder();

    @BeforeAll
    static void followThePage() throws Exception {
        PIECE.matcher(Files.readString(ROOT.resolve("docs/research.md")))
                .results()
                .forEach(piece -> PIECES.add(new Piece(piece.group(1), piece.group(2))));
        for (String name : List.of("fedcomuon", "examples", "src")) {
            Files.createSymbolicLink(work.resolve(name), ROOT.resolve(name));
        }
        Files.createDirectory(work.resolve("mine"));
        for (Piece piece : PIECES) {
            if (!piece.language().equals("sh")) {
                Files.writeString(piece.file(), piece.text());
            }
        }
        Launcher launcher = Launcher.in(work).with("JAVA_HOME", System.getProperty("java.home"));
        for (Piece piece : PIECES) {
            if (piece.language().equals("sh")) {
                Launcher.Run run = launcher.shell(piece.text());
                assertThat(run.exitCode())
                        .as(piece.text() + run.out() + run.err())
                        .isZero();
                PRINTED.append(run.out());
            }
        }
    }

    private static String sha256(String run) throws IOException {
        return TrainProcess.sha256(work.resolve(run));
    }

    private static String python(String file) throws Exception {
        return Python.run(work, Files.readString(work.resolve(file)));
    }

    /** A file that no command names would not be tested. */
    @Test
    void everyFileIsUsed() {
        String commands = PIECES.stream()
                .filter(piece -> piece.language().equals("sh"))
                .map(Piece::text)
                .reduce("", String::concat);
        assertThat(PIECES).extracting(Piece::language).containsOnly("sh", "yaml", "java", "python");
        assertThat(PIECES)
                .filteredOn(piece -> List.of("yaml", "java").contains(piece.language()))
                .hasSizeGreaterThan(5)
                .allSatisfy(piece -> assertThat(commands)
                        .contains(work.relativize(piece.file()).toString()));
    }

    @Test
    void yamlAndJavaAreTheSameRuns() throws Exception {
        for (String method : List.of("fedcomuon", "fedmuon", "fedavg")) {
            assertThat(sha256("runs/java/" + method)).as(method).isEqualTo(sha256("runs/yaml/" + method));
            assertThat(PRINTED).contains(method + " " + sha256("runs/java/" + method));
        }
        assertThat(Stream.of("fedcomuon", "fedmuon", "fedavg", "my-method"))
                .allSatisfy(method ->
                        assertThat(work.resolve("runs/four.html")).content().contains(method));
        assertThat(work.resolve("runs/java.html")).content().contains("fedmuon", "</html>");
    }

    @Test
    void seedsDiffer() throws Exception {
        assertThat(sha256("runs/seeds/fedavg-1")).isNotEqualTo(sha256("runs/seeds/fedavg-2"));
    }

    @Test
    void aFileExtendsAnother() throws IOException {
        assertThat(Files.readString(work.resolve("runs/mean/config.yaml")))
                .contains("objective: mean", "split: iid", "clients: 8")
                .doesNotContain("lambda", "concentration");
    }

    @Test
    void aTableIsDividedByItsColumn() throws IOException {
        assertThat(TrainProcess.summary(work.resolve("runs/flowers")).get("split"))
                .hasSize(5);
    }

    @Test
    void theAreaUnderTheCurveGrows() throws IOException {
        List<String> rows = Files.readAllLines(work.resolve("runs/auc/metrics.jsonl"));
        assertThat(rows).hasSize(5);
        assertThat(TrainProcess.summary(work.resolve("runs/auc"))
                        .get("test_auc")
                        .asDouble())
                .isGreaterThan(0.9);
    }

    @Test
    void weightsWithOtherNamesAreTheSame() throws IOException {
        assertThat(sha256("runs/renamed")).isEqualTo(sha256("runs/more"));
        assertThat(sha256("runs/more")).isNotEqualTo(sha256("runs/yaml/fedcomuon"));
    }

    @Test
    void pythonMakesArrays() throws Exception {
        python("mine/make.py");
        Path file = Files.writeString(work.resolve("mine/made.yaml"), """
                extends: shapes.yaml
                train: {x: "own.npz#x", y: "own.npz#y"}
                clients: 3
                model: {layers: [flatten, dense: 3]}
                iterations: 5
                """);
        Launcher.in(work).run("train", file.toString(), "--out", "runs/made").done();
    }

    @Test
    void pythonLoadsSafetensors() throws Exception {
        assertThat(python("mine/load.py").lines())
                .containsExactly(
                        "conv1.weight (8, 1, 3, 3)", "conv1.bias (8,)", "dense1.weight (4, 288)", "dense1.bias (4,)");
    }

    /** Numbers of a program that shares nothing with ours but the file. */
    @Test
    void pythonPredictsFromAnArchive() throws Exception {
        String[] predictedAndTrue = python("mine/load_npz.py").strip().split("\\] \\[", -1);
        assertThat(predictedAndTrue).hasSize(2);
        String[] predicted = predictedAndTrue[0].substring(1).split(" ", -1);
        String[] labels = predictedAndTrue[1].replace("]", "").split(" ", -1);
        long right = Stream.iterate(0, i -> i < 5, i -> i + 1)
                .filter(i -> predicted[i].equals(labels[i]))
                .count();
        assertThat(right).as(String.join(" | ", predictedAndTrue)).isGreaterThanOrEqualTo(3);
    }

    @Test
    void pythonReadsMetrics() throws Exception {
        assertThat(python("mine/read.py").lines()).hasSize(5).last().asString().startsWith("100 0.");
    }
}
