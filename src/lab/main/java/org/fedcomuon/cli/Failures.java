package org.fedcomuon.cli;

import static java.util.stream.Collectors.joining;

import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.FileSystemException;
import java.nio.file.InvalidPathException;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Pattern;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.data.FetchException;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.federation.CheckpointException;
import org.fedcomuon.federation.RunLock;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.NativeLimits;
import org.fedcomuon.method.ClientFaultException;
import org.fedcomuon.method.DivergedException;
import picocli.CommandLine;
import picocli.CommandLine.IExecutionExceptionHandler;
import picocli.CommandLine.IParameterExceptionHandler;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.UnmatchedArgumentException;

/** The one place that turns an error into a line on standard error and an exit code. */
final class Failures implements IParameterExceptionHandler, IExecutionExceptionHandler {
    static final int RUN_FAILED = 1;
    static final int BAD_INPUT = 2;

    /** From here on a message of libtorch lists C++ frames, which only the stack trace of --verbose shows. */
    private static final Pattern NATIVE_FRAMES = Pattern.compile("\\s*Exception raised from .*", Pattern.DOTALL);

    /** What the JVM says when it is the heap that is full. */
    private static final Pattern HEAP = Pattern.compile("heap space|GC overhead|array size");

    private final PrintWriter err;
    private final boolean verbose;

    Failures(PrintWriter err, boolean verbose) {
        this.err = err;
        this.verbose = verbose;
    }

    @Override
    public int handleParseException(ParameterException error, String[] args) {
        return report(error);
    }

    @Override
    public int handleExecutionException(Exception error, CommandLine commandLine, ParseResult parseResult) {
        return report(error);
    }

    int report(Throwable error) {
        Verdict verdict = judge(error);
        err.println("fedcomuon: " + text(error, withoutFrames(verdict.message()).strip()));
        if (verbose) {
            error.printStackTrace(err);
        }
        err.flush();
        return verdict.exitCode();
    }

    /**
     * Reports an error that ends a thread. Without memory, others may wait for that thread for ever, so the process
     * ends at once; its files are complete or have no name yet.
     */
    void endsThread(Thread thread, Throwable error) {
        report(error);
        if (error instanceof OutOfMemoryError) {
            Runtime.getRuntime().halt(RUN_FAILED);
        }
    }

    /** Returns a message as one line, except that several mistakes of a configuration have a line each. */
    private static String text(Throwable error, String message) {
        return error instanceof ConfigurationException e && e.mistakes().size() > 1
                ? message.substring(0, message.indexOf(e.mistakes().getFirst())).strip()
                        + e.mistakes().stream().map("%n  %s"::formatted).collect(joining())
                : message.replaceAll("\\s*\\R\\s*", "; ");
    }

    private record Verdict(int exitCode, String message) {}

    private static Verdict judge(Throwable error) {
        return switch (error) {
            case ParameterException e -> new Verdict(BAD_INPUT, explain(e));
            case UsageException e -> new Verdict(BAD_INPUT, Objects.toString(e.getMessage()));
            case ConfigurationException e
            when e.getCause() instanceof InvalidPathException ->
                new Verdict(
                        BAD_INPUT,
                        e.getMessage() + localeHint().map("; "::concat).orElse(""));
            case ConfigurationException e -> new Verdict(BAD_INPUT, Objects.toString(e.getMessage()));
            case MalformedFileException e -> new Verdict(BAD_INPUT, Objects.toString(e.getMessage()));
            case CheckpointException.Unwritten e -> new Verdict(RUN_FAILED, Objects.toString(e.getMessage()));
            case CheckpointException e -> new Verdict(BAD_INPUT, Objects.toString(e.getMessage()));
            case MemberFailedException e -> new Verdict(RUN_FAILED, Objects.toString(e.getMessage()));
            case RunLock.InUseException e -> new Verdict(BAD_INPUT, Objects.toString(e.getMessage()));
            case RunLock.LostException e -> new Verdict(RUN_FAILED, Objects.toString(e.getMessage()));
            case DivergedException e -> new Verdict(RUN_FAILED, Objects.toString(e.getMessage()));
            case ClientFaultException e -> new Verdict(RUN_FAILED, Objects.toString(e.getMessage()));
            case DeviceException.LibraryMissing e -> new Verdict(BAD_INPUT, Objects.toString(e.getMessage()));
            case DeviceException.Unavailable e -> new Verdict(BAD_INPUT, Objects.toString(e.getMessage()));
            case DeviceException.Unsupported e -> new Verdict(BAD_INPUT, Objects.toString(e.getMessage()));
            case DeviceException e -> new Verdict(RUN_FAILED, Objects.toString(e.getMessage()));
            case FetchException e -> new Verdict(RUN_FAILED, Objects.toString(e.getMessage()));
            case FileSystemException e when e.getReason() != null -> new Verdict(RUN_FAILED, e.getMessage());
            case NativeLimits.RefusedException e -> new Verdict(BAD_INPUT, Objects.toString(e.getMessage()));
            case ExceptionInInitializerError e when e.getCause() instanceof RuntimeException cause -> judge(cause);
            case OutOfMemoryError e -> new Verdict(RUN_FAILED, explain(e));
            case UncheckedIOException e
            when e.getCause() instanceof FileSystemException || e.getCause() instanceof MalformedFileException ->
                judge(e.getCause());
            default ->
                // Messages of other exceptions are rarely sufficient: that of NoSuchFileException is only the path.
                new Verdict(RUN_FAILED, withoutFrames(error.toString()) + " (--verbose shows where)");
        };
    }

    /** Without a locale, Java cannot name most files; the launcher sees to one, and programs of one's own may not. */
    private static Optional<String> localeHint() {
        String encoding = System.getProperty("sun.jnu.encoding", "");
        return encoding.equals("UTF-8")
                ? Optional.empty()
                : Optional.of("the locale has names in %s alone: set LC_ALL=C.UTF-8".formatted(encoding));
    }

    private static String explain(OutOfMemoryError error) {
        String what = Objects.toString(error.getMessage());
        long heap = Runtime.getRuntime().maxMemory() >> 20;
        String remedy = HEAP.matcher(what).find()
                ? "the heap of Java has %d MiB at most, and FEDCOMUON_JAVA_OPTS=-Xmx%dm gives it more"
                        .formatted(heap, 2 * heap)
                : "take fewer --threads or --clients";
        return "not enough memory: %s; %s; --resume continues a run from its last checkpoint".formatted(what, remedy);
    }

    private static String withoutFrames(String message) {
        return NATIVE_FRAMES.matcher(message).replaceFirst("");
    }

    /** Returns the message of picocli with a hint: the nearest names, or else the help. */
    private static String explain(ParameterException error) {
        CommandLine command = error.getCommandLine();
        String name = command.getCommandSpec().qualifiedName();
        String what = Objects.toString(error.getMessage());
        List<String> nearest = List.of();
        if (error instanceof UnmatchedArgumentException e) {
            nearest = e.getSuggestions();
            if (!e.isUnknownOption() && !command.getSubcommands().isEmpty()) {
                what = "no such command: '%s'".formatted(e.getUnmatched().getFirst());
            }
        }
        boolean isName = what.contains(InvalidPathException.class.getName()); // it is not the cause
        if (isName && localeHint().isPresent()) {
            return what + "; " + localeHint().get();
        }
        String hint = nearest.isEmpty()
                ? "see '%s --help'".formatted(name)
                : "did you mean %s?"
                        .formatted(nearest.stream().map("'%s'"::formatted).collect(joining(" or ")));
        return what + "; " + hint;
    }
}
