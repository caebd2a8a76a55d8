package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.NoSuchFileException;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

class MainTest {
    private record Result(int exitCode, String out, String err) {}

    /** Stands for any command: it does nothing, or fails in the way it is told to. */
    @Command(name = "trial")
    private static final class Trial implements Callable<Integer> {
        @Option(names = "--count")
        private int count;

        private final Throwable failure;

        private Trial(Throwable failure) {
            this.failure = failure;
        }

        @Override
        public Integer call() throws Exception {
            switch (failure) {
                case null -> {}
                case Error error -> throw error;
                case Exception exception -> throw exception;
                default -> throw new AssertionError(failure);
            }
            return count;
        }
    }

    private static Result run(String... args) {
        return runWith(null, args);
    }

    private static Result runWith(Throwable failure, String... args) {
        var out = new StringWriter();
        var err = new StringWriter();
        var commandLine = Main.commandLine()
                .addSubcommand(new Trial(failure))
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(err));
        int exitCode = Main.run(commandLine, args);
        return new Result(exitCode, out.toString(), err.toString());
    }

    @ParameterizedTest
    @ValueSource(strings = {"--help", "trial --help"})
    void helpIsNoError(String args) {
        Result result = run(args.split(" "));

        assertThat(result.exitCode()).isZero();
        assertThat(result.out()).startsWith("Usage: fedcomuon").contains("--verbose");
        assertThat(result.err()).isEmpty();
    }

    @Test
    void versionIsTheOneOfTheBuild() {
        assertThat(run("--version").out()).matches("fedcomuon \\d+\\.\\d+\\.\\d+\\S* \\(Java \\d+.*\\)\\R");
    }

    @Test
    void theCommandsOwnExitCodeIsPassedOn() {
        assertThat(run("trial", "--count", "7")).isEqualTo(new Result(7, "", ""));
    }

    @Test
    void noCommandAtAll() {
        assertThat(run()).isEqualTo(badInput("no command given; see 'fedcomuon --help'"));
    }

    @Test
    void unknownOption() {
        assertThat(run("trial", "--zzz")).isEqualTo(badInput("Unknown option: '--zzz'; see 'fedcomuon trial --help'"));
    }

    @Test
    void misspelledOptionIsGuessed() {
        assertThat(run("trial", "--cont")).isEqualTo(badInput("Unknown option: '--cont'; did you mean '--count'?"));
    }

    @Test
    void valueOfTheWrongType() {
        Result result = run("trial", "--count", "many");

        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.err()).hasLineCount(1).contains("--count", "many");
    }

    @Test
    void unknownCommand() {
        assertThat(run("zzz")).isEqualTo(badInput("no such command: 'zzz'; see 'fedcomuon --help'"));
    }

    @Test
    void misspelledCommandIsGuessed() {
        Result result = run("orthogonalise");
        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.err())
                .startsWith("fedcomuon: no such command: 'orthogonalise'; did you mean 'orthogonalize'");
    }

    @Test
    void badInputFoundByACommand() {
        assertThat(runWith(new UsageException("--count 9 is too many\n  at most 5 are there"), "trial"))
                .isEqualTo(badInput("--count 9 is too many; at most 5 are there"));
    }

    @Test
    void anyOtherExceptionIsAFailedRun() {
        assertThat(runWith(new NoSuchFileException("a.npy"), "trial"))
                .isEqualTo(new Result(
                        1, "", "fedcomuon: java.nio.file.NoSuchFileException: a.npy (--verbose shows where)\n"));
    }

    @Test
    void anErrorIsAFailedRunToo() {
        Result result = runWith(new OutOfMemoryError("no room for 3 TB"), "trial");

        assertThat(result.exitCode()).isEqualTo(1);
        assertThat(result.err()).hasLineCount(1).contains("no room for 3 TB");
    }

    @ParameterizedTest
    @ValueSource(strings = {"--verbose trial", "trial --verbose", "trial --verbose --count 3"})
    void verboseShowsTheTraceOfAFailedRun(String args) {
        Result result = runWith(new UsageException("wrong", new IllegalStateException("deep down")), args.split(" "));

        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.err())
                .startsWith("fedcomuon: wrong\n")
                .contains("\tat ")
                .contains("Caused by: java.lang.IllegalStateException: deep down");
    }

    @Test
    void verboseShowsTheTraceOfAUsageError() {
        assertThat(run("trial", "--zzz", "--verbose").err()).contains("\tat ");
    }

    private static Result badInput(String message) {
        return new Result(2, "", "fedcomuon: " + message + "\n");
    }
}
