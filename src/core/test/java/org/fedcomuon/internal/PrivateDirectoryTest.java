package org.fedcomuon.internal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Comparator;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Native code is loaded only from where no other user can have put it. */
class PrivateDirectoryTest {
    /** In the directory of the build: a temporary one may be below directories of anybody's. */
    private Path base;

    @BeforeEach
    void make() throws IOException {
        Path target = Files.createDirectories(Path.of(System.getProperty("basedir", "."), "target"));
        base = Files.createTempDirectory(target.toRealPath(), "private-");
    }

    @AfterEach
    void remove() throws IOException {
        System.clearProperty(NativeLibrary.CACHE_PROPERTY);
        try (Stream<Path> files = Files.walk(base)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    private static void permit(Path file, String permissions) throws IOException {
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(permissions));
    }

    private static String permissions(Path file) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
    }

    private static void refused(Path directory, boolean vouched, String words) {
        assertThatThrownBy(() -> PrivateDirectory.make(directory, vouched))
                .isInstanceOf(FileSystemException.class)
                .hasMessageContaining(words);
    }

    @Test
    void whatIsMadeIsForItsUserAlone() throws IOException {
        Path made = PrivateDirectory.make(base.resolve("a/b"), true);
        assertThat(permissions(made)).isEqualTo("rwx------");
        assertThat(permissions(base.resolve("a"))).isEqualTo("rwx------");
    }

    @ParameterizedTest
    @ValueSource(strings = {"rwxrwxrwx", "rwx----w-", "rwx---rwx"})
    void whereOthersCanWriteNothingIsLoadedFrom(String permissions) throws IOException {
        permit(base, permissions);
        refused(base, true, "other users can write to it");
    }

    @Test
    void whatIsAnotherUsersIsRefused() throws IOException {
        assertThatThrownBy(() -> PrivateDirectory.make(base, true, PrivateDirectory.self() + 1))
                .isInstanceOf(FileSystemException.class)
                .hasMessageContaining("it belongs to another user");
    }

    @Test
    void aDirectoryAboveThatOthersCanRenameInIsRefusedUnlessTheUserVouches() throws IOException {
        Path shared = Files.createDirectory(base.resolve("shared"));
        permit(shared, "rwxrwxrwx");
        refused(shared.resolve("cache"), false, "other users can write to %s, above it".formatted(shared));
        assertThat(PrivateDirectory.make(shared.resolve("cache"), true)).isDirectory();
    }

    @Test
    void aLinkIsResolvedBeforeItIsLookedAt() throws IOException {
        Path open = Files.createDirectory(base.resolve("open"));
        permit(open, "rwxrwxrwx");
        refused(Files.createSymbolicLink(base.resolve("link"), open), true, open + ": other users can write to it");
        Path own = PrivateDirectory.make(base.resolve("own"), true);
        Path link = Files.createSymbolicLink(base.resolve("harmless"), own);
        assertThat(PrivateDirectory.make(link, true)).isEqualTo(own);
    }

    @Test
    void aLibraryThatOthersCouldHaveWrittenIsReplaced() throws IOException {
        System.setProperty(NativeLibrary.CACHE_PROPERTY, base.resolve("cache").toString());
        byte[] content = {1, 2, 3};
        Path file = NativeCache.unpack("libx.so", content);
        assertThat(permissions(file)).isEqualTo("rw-------");
        Object first = Files.getAttribute(file, "unix:ino");
        assertThat(NativeCache.unpack("libx.so", content)).isEqualTo(file);
        assertThat(Files.getAttribute(file, "unix:ino")).isEqualTo(first);

        permit(file, "rw-rw-rw-"); // equal, but a process that has it open could change it afterwards
        assertThat(NativeCache.unpack("libx.so", content)).isEqualTo(file);
        assertThat(permissions(file)).isEqualTo("rw-------");

        Path elsewhere = Files.write(base.resolve("elsewhere"), content);
        Files.delete(file);
        Files.createSymbolicLink(file, elsewhere);
        assertThat(NativeCache.unpack("libx.so", content)).isEqualTo(file);
        assertThat(file).isRegularFile().hasBinaryContent(content);
        assertThat(Files.isSymbolicLink(file)).isFalse();
        assertThat(elsewhere).hasBinaryContent(content);
    }

    @Test
    void whatUnpacksToTemporaryFilesGetsADirectoryOfItsOwn() throws IOException {
        System.setProperty(NativeLibrary.CACHE_PROPERTY, base.resolve("cache").toString());
        String before = System.getProperty("java.io.tmpdir");
        var seen = new AtomicReference<Path>();
        NativeCache.withOwnTemporaryDirectory(() -> {
            Path directory = Path.of(System.getProperty("java.io.tmpdir"));
            seen.set(directory);
            assertThat(directory).isEmptyDirectory();
            try {
                assertThat(permissions(directory)).isEqualTo("rwx------");
                Files.createFile(directory.resolve("libx.so"));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
        assertThat(seen.get().getParent()).isEqualTo(base.resolve("cache"));
        assertThat(seen.get()).doesNotExist();
        assertThat(System.getProperty("java.io.tmpdir")).isEqualTo(before);

        permit(base.resolve("cache"), "rwxrwxrwx");
        assertThatThrownBy(() -> NativeCache.withOwnTemporaryDirectory(() -> {
                    throw new AssertionError("must not run");
                }))
                .isInstanceOf(FileSystemException.class);
    }

    @Test
    void javaCppHasASafePlaceOrNone() throws IOException {
        String name = "org.bytedeco.javacpp.cachedir";
        String before = System.getProperty(name);
        Path home = base.resolve("home");
        try {
            System.setProperty(name, "/a/users/own");
            assertThat(NativeCache.settleJavaCpp(home)).isEmpty();
            assertThat(System.getProperty(name)).isEqualTo("/a/users/own");

            // A home that cannot be written to: ours is next, not the directory for temporary files.
            System.clearProperty(name);
            Files.createFile(home);
            System.setProperty(
                    NativeLibrary.CACHE_PROPERTY, base.resolve("cache").toString());
            assertThat(NativeCache.settleJavaCpp(home)).isEmpty();
            assertThat(System.getProperty(name))
                    .isEqualTo(base.resolve("cache/javacpp").toString());

            System.clearProperty(name);
            System.setProperty(NativeLibrary.CACHE_PROPERTY, home.toString());
            assertThat(NativeCache.settleJavaCpp(home))
                    .hasValueSatisfying(reason -> assertThat(reason)
                            .contains("no safe place for JavaCPP's libraries", "-Dfedcomuon.cache=DIR")
                            .doesNotContain("\n"));
            assertThat(System.getProperty(name)).isNull();
        } finally {
            if (before == null) {
                System.clearProperty(name);
            } else {
                System.setProperty(name, before);
            }
        }
    }
}
