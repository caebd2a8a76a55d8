package org.fedcomuon.cli;

import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.fedcomuon.federation.Federation;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/** The {@code fedcomuon} command. The launcher at the root of the repository starts it. */
@Command(
        name = "fedcomuon",
        description = "Federated compositional optimization with orthogonalized momentum.",
        scope = ScopeType.INHERIT, // help and version options for every command
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        subcommands = {
            DevicesCommand.class,
            TrainCommand.class,
            OrthogonalizeCommand.class,
            CompareCommand.class,
            ReportCommand.class,
            ReproduceCommand.class,
            BenchCommand.class,
            DataCommand.class,
            Main.RunCommand.class,
            Main.TestCommand.class
        })
public final class Main implements Runnable {
    private static final String VERBOSE = "--verbose";

    /** Its log says what a command shows in its own way. Held, because a level is forgotten with its logger. */
    private static final Logger OF_RUNS = Logger.getLogger(Federation.class.getName());

    @Spec
    private CommandSpec spec;

    // Here so that every command accepts and documents it; run(CommandLine, ...) reads it before parsing can fail.
    @SuppressWarnings("UnusedVariable")
    @Option(names = VERBOSE, scope = ScopeType.INHERIT, description = "Show the stack trace of an error.")
    private boolean verbose;

    private Main() {}

    /** Runs one command and exits with its exit code. */
    public static void main(String[] args) {
        OF_RUNS.setLevel(Level.OFF);
        System.exit(run(commandLine(), args));
    }

    static CommandLine commandLine() {
        return new CommandLine(new Main());
    }

    static int run(CommandLine commandLine, String... args) {
        boolean verbose = Stream.of(args).takeWhile(arg -> !arg.equals("--")).anyMatch(VERBOSE::equals);
        var failures = new Failures(commandLine.getErr(), verbose);
        commandLine.setParameterExceptionHandler(failures);
        commandLine.setExecutionExceptionHandler(failures);
        try {
            return commandLine.execute(args);
        } catch (Error error) { // picocli hands only exceptions to its handlers
            return failures.report(error);
        }
    }

    /** Reached only when no command is named. */
    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "no command given");
    }

    /** Reached only when what follows is no Java file: the launcher runs those. */
    @Command(name = "run", description = "Run a Java program of your own, in one file, that uses org.fedcomuon.")
    static final class RunCommand implements Runnable {
        @Parameters(
                arity = "0..*",
                paramLabel = "FILE.java ARGUMENT...",
                description = "The program, and what it is given.")
        private List<String> program = List.of();

        @Override
        public void run() {
            throw new UsageException(
                    program.isEmpty()
                            ? "'run' needs a file: ./fedcomuon run FILE.java"
                            : "'run' is the launcher's to do, for a file that ends in .java: ./fedcomuon run FILE.java");
        }
    }

    /** For the help only: the launcher runs Maven when the command is {@code test}. */
    @Command(name = "test", description = "Build everything and run all tests.")
    static final class TestCommand implements Runnable {
        @Option(
                names = "--gpu",
                description = "Only those of NVIDIA GPUs, on all that are here; leaves target/gpu-report.json.")
        private boolean gpu;

        @Option(
                names = "--soak",
                description = "Only those of chance, for as long as it takes: mutated files, processes killed.")
        private boolean soak;

        @Option(
                names = "--devices",
                paramLabel = "D",
                description = "With --gpu: on these instead, such as cuda:1 or cudasim:0,cudasim:1.")
        private String devices = "";

        @Override
        public void run() {
            throw new UsageException("'test' is the launcher's to do: ./fedcomuon test%s%s%s"
                    .formatted(
                            gpu ? " --gpu" : "",
                            soak ? " --soak" : "",
                            devices.isEmpty() ? "" : " --devices " + devices));
        }
    }
}
