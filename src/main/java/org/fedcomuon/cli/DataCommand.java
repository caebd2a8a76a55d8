package org.fedcomuon.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Consumer;
import org.fedcomuon.data.Mnist;
import org.fedcomuon.data.MnistDownload;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code fedcomuon data}: which datasets there are, and how to get the others. */
@Command(name = "data", description = "List datasets, or get one.")
final class DataCommand implements Runnable {
    private static final String MNIST = "mnist";
    /** Of the presets, and not there yet. */
    private static final List<String> PLANNED = List.of("cifar10", "wikitext2");

    /** {@link MnistDownload#get}, or a test's own. */
    @FunctionalInterface
    interface Fetch {
        boolean get(Path directory, Consumer<String> progress) throws IOException, InterruptedException;
    }

    private final Fetch fetch;

    @Spec
    private CommandSpec spec;

    @SuppressWarnings("UnusedMethod") // picocli's
    private DataCommand() {
        this(new MnistDownload()::get);
    }

    DataCommand(Fetch fetch) {
        this.fetch = fetch;
    }

    /** Reached only when neither is named. */
    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "'data' needs 'list' or 'get NAME'");
    }

    @Command(name = "list", description = "List datasets: what is packaged, what is there, and how to get the rest.")
    void list(
            @Option(
                            names = "--data-dir",
                            paramLabel = "DIR",
                            description = "Where to look; a directory in the user's cache by default.")
                    Optional<Path> dataDir)
            throws IOException {
        Path directory = dataDir.orElseGet(MnistDownload::defaultDirectory);
        PrintWriter out = spec.commandLine().getOut();
        out.printf("%-10s packaged: %d training and 10000 test images, 3.5 MB%n", MNIST, Mnist.POOL);
        out.printf("%-10s whole set, 60000 training and 10000 test images: %s%n", "", wholeSet(directory, dataDir));
        PLANNED.forEach(name -> out.printf("%-10s not available yet%n", name));
        out.flush();
    }

    private static String wholeSet(Path directory, Optional<Path> dataDir) throws IOException {
        try {
            long bytes = 0;
            for (Path file : Mnist.files(directory)) {
                bytes += Files.size(file);
            }
            return String.format(Locale.ROOT, "in %s, %.1f MB", directory, bytes / 1e6);
        } catch (NoSuchFileException _) {
            return "not in %s; get it (11 MB) with: ./fedcomuon data get %s%s"
                    .formatted(
                            directory,
                            MNIST,
                            dataDir.map(" --data-dir %s"::formatted).orElse(""));
        }
    }

    @Command(
            name = "get",
            description = "Get a dataset with npm, check it, and put it into a directory; mnist can be had.")
    void get(
            @Parameters(paramLabel = "NAME", description = "mnist.") String name,
            @Option(
                            names = "--data-dir",
                            paramLabel = "DIR",
                            description = "Where its files go; a directory in the user's cache by default.")
                    Optional<Path> dataDir)
            throws IOException, InterruptedException {
        if (PLANNED.contains(name)) {
            throw new UsageException("NAME '%s' cannot be had yet; '%s' can".formatted(name, MNIST));
        }
        if (!name.equals(MNIST)) {
            throw new UsageException("no such NAME: '%s'; '%s' can be had".formatted(name, MNIST));
        }
        Path directory = dataDir.orElseGet(MnistDownload::defaultDirectory);
        PrintWriter out = spec.commandLine().getOut();
        boolean fetched;
        try {
            fetched = fetch.get(directory, what -> {
                out.println(what);
                out.flush();
            });
        } catch (FileSystemException e) {
            throw new UsageException("--data-dir %s cannot be written to: %s".formatted(directory, e), e);
        }
        out.printf("%s: %s%n", fetched ? "the whole of MNIST is in" : "already there", directory);
        out.flush();
    }
}
