package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.federation.RunLock;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

class MainTest {
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

    private static CommandRun run(String... args) {
        return runWith(null, args);
    }

    private static CommandRun runWith(Throwable failure, String... args) {
        return CommandRun.of(Main.commandLine().addSubcommand(new Trial(failure)), (Object[]) args);
    }

    @ParameterizedTest
    @ValueSource(strings = {"--help", "trial --help"})
    void helpIsNoError(String args) {
        CommandRun result = run(args.split(" "));

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
        assertThat(run("trial", "--count", "7")).isEqualTo(new CommandRun(7, "", ""));
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
        CommandRun result = run("trial", "--count", "many");

        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.err()).hasLineCount(1).contains("--count", "many");
    }

    @Test
    void unknownCommand() {
        assertThat(run("zzz")).isEqualTo(badInput("no such command: 'zzz'; see 'fedcomuon --help'"));
    }

    @Test
    void misspelledCommandIsGuessed() {
        CommandRun result = run("orthogonalise");
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
                .isEqualTo(new CommandRun(
                        1, "", "fedcomuon: java.nio.file.NoSuchFileException: a.npy (--verbose shows where)\n"));
    }

    @Test
    void aFullHeapNamesTheOptionThatMakesItLarger() {
        CommandRun result = runWith(new OutOfMemoryError("Java heap space"), "trial");
        assertThat(result.exitCode()).isEqualTo(1);
        assertThat(result.err())
                .startsWith("fedcomuon: not enough memory: Java heap space; the heap of Java has ")
                .contains("FEDCOMUON_JAVA_OPTS=-Xmx")
                .hasLineCount(1);
        CommandRun other = runWith(new OutOfMemoryError("unable to create native thread"), "trial");
        assertThat(other.exitCode()).isEqualTo(1);
        assertThat(other.err())
                .contains("unable to create native thread", "--threads")
                .hasLineCount(1);
    }

    @Test
    @Slow
    @Timeout(120)
    void aThreadWithoutMemoryEndsTheProcess(@TempDir Path temporary) throws Exception {
        Path log = temporary.resolve("log");
        List<String> arguments =
                List.of("train", "mnist-robust", "--iterations", "1000000", "--quiet", "--out", temporary + "/run");
        Process process = TrainProcess.start(log, ChildJvm.command(List.of(), ThreadWithoutMemory.class, arguments));
        assertThat(TrainProcess.end(process)).isEqualTo(1);
        assertThat(Files.readString(log))
                .startsWith("fedcomuon: not enough memory: Java heap space")
                .hasLineCount(1);
    }

    /** A run in which a thread of a library finds the heap full. */
    static final class ThreadWithoutMemory {
        private ThreadWithoutMemory() {}

        public static void main(String[] args) {
            Thread.ofPlatform().daemon().start(() -> {
                while (!Files.exists(Path.of(args[args.length - 1], RunLock.FILE))) {
                    Thread.onSpinWait();
                }
                throw new OutOfMemoryError("Java heap space");
            });
            Main.main(args);
        }
    }

    /** As a program of one's own may be started; the launcher sees to a locale. */
    @Test
    @Slow
    @Timeout(120)
    void withoutALocaleANameThatJavaCannotReadIsOneLine(@TempDir Path temporary) throws Exception {
        assumeTrue("UTF-8".equals(System.getProperty("sun.jnu.encoding")), "this JVM cannot write the name either");
        for (List<String> arguments : List.of(
                List.of("train", "mnist-robust", "--out", temporary + "/l\u00e4uft"),
                List.of("train", temporary + "/l\u00e4uft.yaml"),
                List.of("train", "mnist-robust", "--data-dir", temporary + "/l\u00e4uft"))) {
            var builder = new ProcessBuilder(ChildJvm.command(List.of(), "org.fedcomuon.cli.Main", arguments))
                    .redirectErrorStream(true)
                    .redirectOutput(temporary.resolve("log").toFile());
            builder.environment().put("LC_ALL", "C");
            assertThat(TrainProcess.end(builder.start())).isEqualTo(2);
            assertThat(Files.readString(temporary.resolve("log"), StandardCharsets.ISO_8859_1))
                    .startsWith("fedcomuon: ")
                    .contains("set LC_ALL=C.UTF-8")
                    .hasLineCount(1);
        }
    }

    @Test
    void anErrorIsAFailedRunToo() {
        CommandRun result = runWith(new OutOfMemoryError("no room for 3 TB"), "trial");

        assertThat(result.exitCode()).isEqualTo(1);
        assertThat(result.err()).hasLineCount(1).contains("no room for 3 TB");
    }

    @ParameterizedTest
    @ValueSource(strings = {"--verbose trial", "trial --verbose", "trial --verbose --count 3"})
    void verboseShowsTheTraceOfAFailedRun(String args) {
        CommandRun result =
                runWith(new UsageException("wrong", new IllegalStateException("deep down")), args.split(" "));

        assertThat(result.exitCode()).isEqualTo(2);
        assertThat(result.err())
                .startsWith("fedcomuon: wrong\n")
                .contains("\tat ")
                .contains("Caused by: java.lang.IllegalStateException: deep down");
    }

    /** Neither in the line of a command that libtorch fails, nor in that of a client's fault. */
    @Test
    void framesOfLibtorchAreShownByVerboseAlone() {
        Throwable error = catchThrowable(() -> {
            try (Tensor a = torch.ones(2, 3);
                    Tensor b = torch.ones(4, 5)) {
                a.matmul(b);
            }
        });
        assertThat(error).hasMessageContaining("frame #0"); // or there is nothing to test
        String line = "java.lang.RuntimeException: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)";

        assertThat(runWith(error, "trial"))
                .isEqualTo(new CommandRun(1, "", "fedcomuon: %s (--verbose shows where)\n".formatted(line)));
        assertThat(runWith(error, "trial", "--verbose").err())
                .startsWith("fedcomuon: %s (--verbose shows where)\n".formatted(line))
                .contains("frame #0", "\tat ");
        assertThat(new ClientFault(3, 7, ClientFault.Kind.THREW, error.toString()))
                .hasToString("client 3 failed in step 7: " + line);
    }

    @Test
    void verboseShowsTheTraceOfAUsageError() {
        assertThat(run("trial", "--zzz", "--verbose").err()).contains("\tat ");
    }

    private static CommandRun badInput(String message) {
        return new CommandRun(2, "", "fedcomuon: " + message + "\n");
    }
}
