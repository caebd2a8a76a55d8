package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.data.Cifar10;
import org.fedcomuon.data.FetchException;
import org.fedcomuon.data.Mnist;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class DataCommandTest {
    @TempDir
    Path directory;

    private final List<Path> fetched = new ArrayList<>();
    private final List<String> asked = new ArrayList<>();

    private CommandRun run(DataCommand.Fetch fetch, Object... arguments) {
        return CommandRun.of(
                new CommandLine(new DataCommand(noting("mnist", fetch), noting("cifar10", fetch))), arguments);
    }

    private DataCommand.Fetch noting(String what, DataCommand.Fetch fetch) {
        return (to, progress) -> {
            fetched.add(to);
            asked.add(what);
            return fetch.get(to, progress);
        };
    }

    private static CommandRun fails(int exitCode, String message) {
        return new CommandRun(exitCode, "", "fedcomuon: " + message + '\n');
    }

    private static boolean never(Path to) {
        throw new AssertionError("nothing is to be fetched to " + to);
    }

    @Test
    void getSaysWhereTheDataIs() {
        CommandRun result = run(
                (_, progress) -> {
                    progress.accept("fetching");
                    return true;
                },
                "get",
                "mnist",
                "--data-dir",
                directory);

        assertThat(result)
                .isEqualTo(new CommandRun(0, "fetching\nthe whole of MNIST is in: %s\n".formatted(directory), ""));
        assertThat(fetched).containsExactly(directory);
    }

    @Test
    void getSaysThatItIsThere() {
        assertThat(run((_, _) -> false, "get", "mnist", "--data-dir", directory))
                .isEqualTo(new CommandRun(0, "already there: %s\n".formatted(directory), ""));
    }

    @Test
    void getGoesToTheCacheByDefault() {
        assertThat(run((_, _) -> false, "get", "mnist").exitCode()).isZero();
        assertThat(fetched).containsExactly(Mnist.defaultDirectory());
    }

    @Test
    void whatCannotBeFetchedIsAFailedRun() {
        assertThat(run(
                        (_, _) -> {
                            throw new FetchException("npm is missing; install it");
                        },
                        "get",
                        "mnist"))
                .isEqualTo(fails(1, "npm is missing; install it"));
    }

    @Test
    void aDirectoryThatCannotBeWrittenToIsBadInput() {
        CommandRun result = run(
                (to, _) -> {
                    throw new NotDirectoryException("" + to);
                },
                "get",
                "mnist",
                "--data-dir",
                directory);

        assertThat(result)
                .isEqualTo(fails(
                        2,
                        "--data-dir %s cannot be written to: java.nio.file.NotDirectoryException: %s"
                                .formatted(directory, directory)));
    }

    @Test
    void cifar10CanBeHadToo() {
        assertThat(run((_, _) -> true, "get", "cifar10", "--data-dir", directory))
                .isEqualTo(new CommandRun(0, "the whole of CIFAR-10 is in: %s\n".formatted(directory), ""));
        assertThat(run((_, _) -> false, "get", "cifar10"))
                .isEqualTo(new CommandRun(0, "already there: %s\n".formatted(Cifar10.defaultDirectory()), ""));
        assertThat(fetched).containsExactly(directory, Cifar10.defaultDirectory());
        assertThat(asked).containsExactly("cifar10", "cifar10");
    }

    @Test
    void wikitext2CannotBeDownloaded() throws IOException {
        assertThat(run((to, _) -> never(to), "get", "wikitext2", "--data-dir", directory))
                .isEqualTo(fails(
                        2,
                        "NAME 'wikitext2' cannot be downloaded, because no package has its training text; put train.txt"
                                + " and test.txt into %s, from https://github.com/pytorch/examples/tree/main/word_language_model/data/wikitext-2"
                                        .formatted(directory)));
        Files.writeString(directory.resolve("wiki.train.tokens"), "a");
        assertThat(run((to, _) -> never(to), "get", "wikitext2", "--data-dir", directory)
                        .exitCode())
                .isEqualTo(2);
        Files.writeString(directory.resolve("wiki.test.tokens"), "a");
        assertThat(run((to, _) -> never(to), "get", "wikitext2", "--data-dir", directory))
                .isEqualTo(new CommandRun(0, "already there: %s\n".formatted(directory), ""));
    }

    @Test
    void othersCannotBeHad() {
        assertThat(run((to, _) -> never(to), "get", "imagenet"))
                .isEqualTo(fails(2, "no such NAME: 'imagenet'; 'mnist' and 'cifar10' can be downloaded"));
    }

    @Test
    void badUsage() {
        assertThat(run((to, _) -> never(to)))
                .isEqualTo(fails(2, "'data' needs 'list' or 'get NAME'; see 'data --help'"));
        assertThat(run((to, _) -> never(to), "get"))
                .isEqualTo(fails(2, "Missing required parameter: 'NAME'; see 'data get --help'"));
        assertThat(run((to, _) -> never(to), "gt", "mnist"))
                .isEqualTo(fails(2, "no such command: 'gt'; see 'data --help'"));
    }

    @Test
    void listSaysWhatIsNotThere() {
        assertThat(run((to, _) -> never(to), "list", "--data-dir", directory))
                .isEqualTo(new CommandRun(0, """
                        mnist      packaged: 12000 training and 10000 test images, 3.5 MB
                                   whole set, 60000 training and 10000 test images: not in %s; \
                        get it (11 MB) with: ./fedcomuon data get mnist --data-dir %s
                        cifar10    whole set, 50000 training and 10000 test images: not in %s; \
                        get it (139 MB) with: ./fedcomuon data get cifar10 --data-dir %s
                        wikitext2  packaged: validation and test text, 0.8 MB, for a quick form
                                   whole set, with the training text: not in %s; put train.txt and test.txt there, \
                        from https://github.com/pytorch/examples/tree/main/word_language_model/data/wikitext-2
                        """.formatted(directory, directory, directory, directory, directory), ""));
    }

    @Test
    void listSaysWhatIsThere() throws IOException {
        for (String name : List.of("train-images", "train-labels", "t10k-images", "t10k-labels")) {
            Files.write(
                    directory.resolve(name + (name.endsWith("images") ? "-idx3-ubyte" : "-idx1-ubyte.gz")),
                    new byte[100_000]);
        }
        for (String name : List.of("test_batch", "data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4")) {
            Files.write(directory.resolve(name + ".bin"), new byte[100_000]);
        }
        Files.write(directory.resolve("test.txt"), new byte[100_000]);
        assertThat(run((to, _) -> never(to), "list", "--data-dir", directory).out())
                .contains("whole set, 60000 training and 10000 test images: in %s, 0.4 MB\n".formatted(directory))
                .contains("whole set, 50000 training and 10000 test images: not in %s;".formatted(directory))
                .contains("with the training text: not in %s;".formatted(directory));

        Files.write(directory.resolve("data_batch_5.bin"), new byte[200_000]);
        Files.write(directory.resolve("train.txt"), new byte[200_000]);
        assertThat(run((to, _) -> never(to), "list", "--data-dir", directory).out())
                .contains("whole set, 50000 training and 10000 test images: in %s, 0.7 MB\n".formatted(directory))
                .contains("with the training text: in %s, 0.3 MB\n".formatted(directory));
    }

    @Test
    void theCommandIsThereWithTheOthers() {
        assertThat(CommandRun.of("--help").out()).containsPattern("data +List data sets, or download one");
        assertThat(CommandRun.of("data", "get", "--help").out())
                .startsWith("Usage: fedcomuon data get")
                .contains("--data-dir", "--verbose");
        assertThat(CommandRun.of("data", "get", "nothing"))
                .isEqualTo(fails(2, "no such NAME: 'nothing'; 'mnist' and 'cifar10' can be downloaded"));
    }
}
