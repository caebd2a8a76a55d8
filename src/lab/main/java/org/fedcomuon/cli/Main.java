package org.fedcomuon.cli;

import java.util.List;
import java.util.ServiceLoader;
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
            SweepCommand.class,
            OrthogonalizeCommand.class,
            CompareCommand.class,
            NoiseCommand.class,
            ReportCommand.class,
            ExportCommand.class,
            ReproduceCommand.class,
            DataCommand.class,
            Main.RunCommand.class,
            Main.TestCommand.class
        })
public final class Main implements Runnable {
    private static final String VERBOSE = "--verbose";

    /**
     * Commands show what this logger would repeat. It is referenced here because a collected logger loses its level.
     */
    private static final Logger OF_RUNS = Logger.getLogger(Federation.class.getName());

    @Spec
    private CommandSpec spec;

    // Here so that every command accepts and documents it; run(CommandLine, ...) reads it before parsing can fail.
    @SuppressWarnings("UnusedVariable")
    @Option(
            names = VERBOSE,
            scope = ScopeType.INHERIT,
            description = "Show the stack trace of an error, and libtorch's C++ frames.")
    private boolean verbose;

    private Main() {}

    /** Runs one command and exits with its exit code. */
    public static void main(String[] args) {
        OF_RUNS.setLevel(Level.OFF);
        var commandLine = commandLine();
        Thread.setDefaultUncaughtExceptionHandler(failures(commandLine, args)::endsThread);
        System.exit(run(commandLine, args));
    }

    /** Returns the command line with the commands of all modules that are present. */
    static CommandLine commandLine() {
        var commandLine = new CommandLine(new Main());
        ServiceLoader.load(Subcommand.class).forEach(commandLine::addSubcommand);
        if (!commandLine.getSubcommands().containsKey("bench")) {
            commandLine.addSubcommand(new BenchCommand());
        }
        return commandLine;
    }

    static int run(CommandLine commandLine, String... args) {
        Failures failures = failures(commandLine, args);
        commandLine.setParameterExceptionHandler(failures);
        commandLine.setExecutionExceptionHandler(failures);
        try {
            return commandLine.execute(args);
        } catch (Error error) { // picocli passes only exceptions to its handlers
            return failures.report(error);
        }
    }

    private static Failures failures(CommandLine commandLine, String... args) {
        boolean verbose = Stream.of(args).takeWhile(arg -> !arg.equals("--")).anyMatch(VERBOSE::equals);
        return new Failures(commandLine.getErr(), verbose);
    }

    /** Runs only when no command is named. */
    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "no command given");
    }

    /** Runs only when no Java file is named, because the launcher runs Java files. */
    @Command(name = "run", description = "Run a Java program of your own, in one file, that uses org.fedcomuon.")
    static final class RunCommand implements Runnable {
        @Parameters(
                arity = "0..*",
                paramLabel = "FILE.java ARGUMENT...",
                description = "The program and its arguments.")
        private List<String> program = List.of();

        @Override
        public void run() {
            throw new UsageException(
                    program.isEmpty()
                            ? "'run' needs a file: ./fedcomuon run FILE.java"
                            : "'run' is a command of the launcher, for .java files: ./fedcomuon run FILE.java");
        }
    }

    /** Exists for the help only: the launcher adds the module of the benchmarks when the command is {@code bench}. */
    @Command(name = "bench", description = "Measure against a peer or the machine's limit, in one run.")
    static final class BenchCommand implements Runnable {
        @Override
        public void run() {
            throw new UsageException("'bench' needs the module org.fedcomuon.bench: ./fedcomuon bench");
        }
    }

    /** Exists for the help only: the launcher runs Maven when the command is {@code test}. */
    @SuppressWarnings("UnusedVariable") // picocli lists them
    @Command(name = "test", description = "Build everything and run all tests, or some.")
    static final class TestCommand implements Runnable {
        @Parameters(
                arity = "0..*",
                paramLabel = "CLASS",
                description = "Only these classes of tests, such as BufferIT.")
        private List<String> classes = List.of();

        @Option(
                names = "--fast",
                description = "Without tests that start other processes or train for long, and without sanitizers.")
        private boolean fast;

        @Option(
                names = "--gpu",
                description = "Only the tests for NVIDIA GPUs, on all GPUs of this machine; writes target/gpu-report.")
        private boolean gpu;

        @Option(
                names = "--soak",
                description = "Only the randomized tests, at full length: mutated files, killed processes.")
        private boolean soak;

        @Option(
                names = "--devices",
                paramLabel = "D",
                description = "With --gpu: the devices to test, such as cuda:1 or cudasim:0,cudasim:1.")
        private String devices = "";

        @Override
        public void run() {
            throw new UsageException("'test' is a command of the launcher: ./fedcomuon test");
        }
    }
}
