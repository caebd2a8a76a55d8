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
import org.fedcomuon.data.Cifar10;
import org.fedcomuon.data.Mnist;
import org.fedcomuon.data.WikiText2;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code fedcomuon data}: lists data sets, and downloads those that are not packaged. */
@Command(name = "data", description = "List data sets, or download one.")
final class DataCommand implements Runnable {
    private static final String MNIST = "mnist";
    private static final String CIFAR10 = "cifar10";
    private static final String WIKITEXT2 = "wikitext2";

    /** The repository that has the training text. */
    private static final String WIKITEXT2_HOME =
            "https://github.com/pytorch/examples/tree/main/word_language_model/data/wikitext-2";

    /** A download, which tests replace. */
    @FunctionalInterface
    interface Fetch {
        boolean get(Path directory, Consumer<String> progress) throws IOException, InterruptedException;
    }

    private final Fetch mnist;
    private final Fetch cifar10;

    @Spec
    private CommandSpec spec;

    @SuppressWarnings("UnusedMethod") // called by picocli
    private DataCommand() {
        this(Mnist::download, Cifar10::download);
    }

    DataCommand(Fetch mnist, Fetch cifar10) {
        this.mnist = mnist;
        this.cifar10 = cifar10;
    }

    /** Runs only when no subcommand is named. */
    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "'data' needs 'list' or 'get NAME'");
    }

    @Command(
            name = "list",
            description = "List data sets: which are packaged, which are downloaded, and how to get the others.")
    void list(
            @Option(
                            names = "--data-dir",
                            paramLabel = "DIR",
                            description = "The directory to search; directories in the user's cache by default.")
                    Optional<Path> dataDir)
            throws IOException {
        PrintWriter out = spec.commandLine().getOut();
        out.printf("%-10s packaged: %d training and 10000 test images, 3.5 MB%n", MNIST, Mnist.POOL);
        Path directory = dataDir.orElseGet(Mnist::defaultDirectory);
        out.printf(
                "%-10s whole set, 60000 training and 10000 test images: %s%n",
                "", whatIsThere(directory, Mnist::files, get(11, MNIST, dataDir)));
        directory = dataDir.orElseGet(Cifar10::defaultDirectory);
        out.printf(
                "%-10s whole set, 50000 training and 10000 test images: %s%n",
                CIFAR10, whatIsThere(directory, Cifar10::files, get(139, CIFAR10, dataDir)));
        directory = dataDir.orElseGet(WikiText2::defaultDirectory);
        out.printf("%-10s packaged: validation and test text, 0.8 MB, for a quick form%n", WIKITEXT2);
        out.printf(
                "%-10s whole set, with the training text: %s%n",
                "",
                whatIsThere(
                        directory, DataCommand::wikitext2, "put train.txt and test.txt there, from " + WIKITEXT2_HOME));
        out.flush();
    }

    /** Finds the files of a data set in a directory. */
    @FunctionalInterface
    private interface Finder {
        List<Path> files(Path directory) throws NoSuchFileException;
    }

    private static String get(int megabytes, String name, Optional<Path> dataDir) {
        return "get it (%d MB) with: ./fedcomuon data get %s%s"
                .formatted(
                        megabytes,
                        name,
                        dataDir.map(" --data-dir %s"::formatted).orElse(""));
    }

    private static List<Path> wikitext2(Path directory) throws NoSuchFileException {
        if (!WikiText2.hasTrainingText(directory)) {
            throw new NoSuchFileException(directory.toString());
        }
        return WikiText2.files(directory);
    }

    private static String whatIsThere(Path directory, Finder finder, String otherwise) throws IOException {
        try {
            long bytes = 0;
            for (Path file : finder.files(directory)) {
                bytes += Files.size(file);
            }
            return String.format(Locale.ROOT, "in %s, %.1f MB", directory, bytes / 1e6);
        } catch (NoSuchFileException _) {
            return "not in %s; %s".formatted(directory, otherwise);
        }
    }

    @Command(
            name = "get",
            description = "Download a data set with npm, check it, and put it into a directory; mnist or cifar10.")
    void get(
            @Parameters(paramLabel = "NAME", description = "mnist or cifar10.") String name,
            @Option(
                            names = "--data-dir",
                            paramLabel = "DIR",
                            description = "The directory for its files; a directory in the user's cache by default.")
                    Optional<Path> dataDir)
            throws IOException, InterruptedException {
        switch (name) {
            case MNIST -> get(mnist, "the whole of MNIST", dataDir.orElseGet(Mnist::defaultDirectory));
            case CIFAR10 -> get(cifar10, "the whole of CIFAR-10", dataDir.orElseGet(Cifar10::defaultDirectory));
            case WIKITEXT2 ->
                get((directory, _) -> explainDownload(directory), "", dataDir.orElseGet(WikiText2::defaultDirectory));
            default ->
                throw new UsageException(
                        "no such NAME: '%s'; '%s' and '%s' can be downloaded".formatted(name, MNIST, CIFAR10));
        }
    }

    private void get(Fetch fetch, String what, Path directory) throws IOException, InterruptedException {
        PrintWriter out = spec.commandLine().getOut();
        boolean fetched;
        try {
            fetched = fetch.get(directory, said -> {
                out.println(said);
                out.flush();
            });
        } catch (FileSystemException e) {
            throw new UsageException("--data-dir %s cannot be written to: %s".formatted(directory, e), e);
        }
        out.printf("%s: %s%n", fetched ? what + " is in" : "already there", directory);
        out.flush();
    }

    /** Explains how to get a data set that cannot be downloaded, unless its files are in the directory. */
    private static boolean explainDownload(Path directory) {
        try {
            wikitext2(directory);
            return false;
        } catch (NoSuchFileException _) {
            throw new UsageException(
                    ("NAME '%s' cannot be downloaded, because no package has its training text; put train.txt"
                                    + " and test.txt into %s, from %s")
                            .formatted(WIKITEXT2, directory, WIKITEXT2_HOME));
        }
    }
}
