package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReportCommandIT {
    @TempDir
    private Path temporary;

    private static CommandRun run(Object... arguments) {
        return CommandRun.of(
                Stream.concat(Stream.of("report"), Stream.of(arguments)).toArray());
    }

    private Path runDirectory(String name, String method) throws IOException {
        Path directory = Files.createDirectory(temporary.resolve(name));
        Files.writeString(directory.resolve("config.yaml"), "method: %s\nseed: 42\n".formatted(method));
        Files.writeString(directory.resolve("metrics.jsonl"), "{\"step\": 5, \"test_accuracy\": 0.9}\n");
        Files.writeString(directory.resolve("summary.json"), "{\"java\": \"25.0.3\"}");
        return directory;
    }

    private static void assertRefused(CommandRun result, String... words) {
        CommandRun.assertRefused(result, words);
        assertThat(result.out()).isEmpty();
    }

    @Test
    void onePageIsLeftWithItsRun() throws IOException {
        Path directory = runDirectory("first", "fedavg");
        // twice, by two names
        CommandRun result = run(directory, directory.resolve("../first"));

        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(result.err()).isEmpty();
        assertThat(result.out().strip())
                .isEqualTo(directory.resolve("report.html").toString());
        assertThat(Files.readString(directory.resolve("report.html")))
                .contains("<h1>first</h1>", "90.00 %", "fedavg", "25.0.3");
        assertThat(directory).isDirectoryNotContaining(file -> file.toString().endsWith(".part"));
    }

    @Test
    void severalOverEachOther() throws IOException {
        Path page = temporary.resolve("page.html");
        CommandRun result = run(runDirectory("first", "fedavg"), runDirectory("second", "fedcomuon"), "--out", page);

        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(result.out().strip()).isEqualTo(page.toString());
        assertThat(Files.readString(page)).contains("<h1>2 runs</h1>", "fedavg", "fedcomuon");
    }

    @Test
    void theMainChartAsAFile() throws IOException {
        Path page = temporary.resolve("page.html");
        Path figure = temporary.resolve("figure.svg");
        Path first = runDirectory("first", "fedavg");
        CommandRun result = run(first, runDirectory("second", "fedcomuon"), "--out", page, "--figure", figure);

        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(result.out().lines()).containsExactly(figure.toString(), page.toString());
        assertThat(page).exists();
        assertThat(Files.readString(figure))
                .startsWith("<svg xmlns=")
                .contains("<title>2 runs</title>", ">fedavg</text>", ">fedcomuon</text>");

        assertRefused(run(first, "--figure", temporary), "--figure " + temporary, "directory");
        Files.writeString(first.resolve("metrics.jsonl"), "");
        Files.delete(figure);
        assertRefused(run(first, "--figure", figure), "--figure " + figure, "no run has an evaluation");
        assertThat(figure).doesNotExist();
    }

    @Test
    void badInput() throws IOException {
        Path good = runDirectory("good", "fedavg");
        Path none = temporary.resolve("none");
        assertRefused(run(), "DIR");
        assertRefused(run(none), none.toString(), "no such directory");
        assertRefused(run(good, temporary), temporary.resolve("config.yaml").toString());
        assertRefused(run(good, "--out", temporary), "--out " + temporary, "directory");
        assertRefused(run(good, "--out", none.resolve("page.html")), "--out", "cannot be written");
        Files.writeString(good.resolve("metrics.jsonl"), "{\"step\"");
        assertRefused(run(good), good.resolve("metrics.jsonl").toString(), "line 1");
        assertThat(good.resolve("report.html")).doesNotExist();
    }
}
