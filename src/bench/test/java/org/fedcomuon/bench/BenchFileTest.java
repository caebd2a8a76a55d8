package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.cli.UsageException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What one run leaves, a table of several says. */
class BenchFileTest {
    @TempDir
    private Path directory;

    private Path run(String name, double scale) {
        Path file = directory.resolve(name);
        BenchFile.write(
                file,
                List.of(
                        new BenchReport(
                                "round",
                                "cpu:0 (some processor)",
                                "ratio = ...",
                                List.of(
                                        new BenchReport.Row("mnist, fedcomuon: fedcomuon, 2 threads", 0.1, 0.01, 0, 1),
                                        new BenchReport.Row(
                                                "mnist, fedcomuon: libtorch loop, 1 + 1 threads",
                                                0.3,
                                                0.01,
                                                0,
                                                3 * scale,
                                                Map.of("gradient", 0.5, "other", 0.5),
                                                List.of()),
                                        new BenchReport.Row(
                                                "mnist, fedcomuon: libtorch loop, 2 + 1 threads",
                                                0.2,
                                                0.01,
                                                0,
                                                2 * scale))),
                        new BenchReport(
                                "compose",
                                "cpu:0 (some processor)",
                                "",
                                List.of(
                                        new BenchReport.Row("1e+08 elements, d = 1: triad", 0.1, 0, 12, 1),
                                        new BenchReport.Row(
                                                "1e+08 elements, d = 1: compose_momentum", 0.1, 0, 12, 0.97)))));
        return file;
    }

    @Test
    void thePeerCountsAtItsBestAndRunsFromLeastToGreatest() {
        String table = BenchTable.of(List.of(BenchFile.read(run("a.json", 1)), BenchFile.read(run("b.json", 1.1))));
        assertThat(table)
                .contains("cpu:0 (some processor)")
                .containsPattern("\\d{4}-\\d\\d-\\d\\d; from the least to the greatest of 2 runs")
                .contains("| mnist, fedcomuon | 2.00 to 2.20 | | | |")
                .contains("| 1e+08 elements, d = 1: compose_momentum | 0.97 | | | |")
                .doesNotContain("| 1e+08 elements, d = 1: triad |");
        assertThat(BenchTable.of(BenchTable.only("compose", List.of(BenchFile.read(run("a.json", 1))))))
                .contains("compose_momentum")
                .doesNotContain("mnist");
    }

    @Test
    void goesBetweenTheLinesThatSaySo() throws Exception {
        Path page = Files.writeString(directory.resolve("performance.md"), """
                before
                <!-- bench round: made by ./fedcomuon bench round --table -->
                old rounds
                <!-- bench: end -->
                <!-- bench: made by ./fedcomuon bench --table -->
                old
                <!-- bench: end -->
                after
                """);
        BenchFile.replaceTable(page, "new\n", Optional.empty());
        BenchFile.replaceTable(page, "new rounds\n", Optional.of("round"));
        assertThat(page).hasContent("""
                before
                <!-- bench round: made by ./fedcomuon bench round --table -->
                new rounds
                <!-- bench: end -->
                <!-- bench: made by ./fedcomuon bench --table -->
                new
                <!-- bench: end -->
                after
                """);
        Path other = Files.writeString(directory.resolve("other.md"), "nothing\n");
        assertThatThrownBy(() -> BenchFile.replaceTable(other, "new\n", Optional.empty()))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("other.md")
                .hasMessageContaining("bench: end");
    }

    @Test
    void otherFilesAreRefusedByName() throws Exception {
        assertThatThrownBy(() -> BenchFile.read(directory.resolve("none.json")))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("none.json: no such file");
        for (String text : List.of("", "[]", "{", "{\"date\": \"yesterday\", \"suites\": []}", "{\"suites\": [{}]}")) {
            Path file = Files.writeString(directory.resolve("bad.json"), text);
            assertThatThrownBy(() -> BenchFile.read(file))
                    .as(text)
                    .isInstanceOf(UsageException.class)
                    .hasMessageContaining("not written by bench --json");
        }
    }
}
