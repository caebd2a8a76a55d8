package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class ReportCommandIT {
    @TempDir
    private Path temporary;

    private record Result(int exitCode, String out, String err) {}

    private static Result run(Object... arguments) {
        var out = new StringWriter();
        var err = new StringWriter();
        CommandLine commandLine =
                Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        int exitCode = Main.run(
                commandLine,
                Stream.concat(Stream.of("report"), Stream.of(arguments))
                        .map(Object::toString)
                        .toArray(String[]::new));
        return new Result(exitCode, out.toString(), err.toString());
    }

    private Path runDirectory(String name, String method) throws IOException {
        Path directory = Files.createDirectory(temporary.resolve(name));
        Files.writeString(directory.resolve("config.yaml"), "method: %s\nseed: 42\n".formatted(method));
        Files.writeString(directory.resolve("metrics.jsonl"), "{\"step\": 5, \"test_accuracy\": 0.9}\n");
        Files.writeString(directory.resolve("summary.json"), "{\"java\": \"25.0.3\"}");
        return directory;
    }

    private static void assertRefused(Result result, String... words) {
        assertThat(result.exitCode()).as(result.err()).isEqualTo(2);
        assertThat(result.err().lines())
                .singleElement()
                .asString()
                .startsWith("fedcomuon: ")
                .contains(words);
        assertThat(result.out()).isEmpty();
    }

    @Test
    void onePageIsLeftWithItsRun() throws IOException {
        Path directory = runDirectory("first", "fedavg");
        // twice, by two names
        Result result = run(directory, directory.resolve("../first"));

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
        Result result = run(runDirectory("first", "fedavg"), runDirectory("second", "fedcomuon"), "--out", page);

        assertThat(result.exitCode()).as(result.err()).isZero();
        assertThat(result.out().strip()).isEqualTo(page.toString());
        assertThat(Files.readString(page)).contains("<h1>2 runs</h1>", "fedavg", "fedcomuon");
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
