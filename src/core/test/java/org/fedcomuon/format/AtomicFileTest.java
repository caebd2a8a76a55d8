package org.fedcomuon.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Text files that are there as a whole. */
class AtomicFileTest {
    @TempDir
    private Path directory;

    @Test
    void threadsThatWriteTheSameFileDoNotMeet() throws Exception {
        Path file = directory.resolve("text");
        AtomicFile.write(file, "0".repeat(100_000));
        try (var threads = Executors.newFixedThreadPool(4)) {
            var writing = new ArrayList<Future<?>>();
            for (int i = 0; i < 4; i++) {
                String text = Integer.toString(i).repeat(100_000);
                writing.add(threads.submit(() -> {
                    for (int again = 0; again < 50; again++) {
                        AtomicFile.write(file, text);
                        assertThat(Files.readString(file).chars().distinct()).hasSize(1);
                    }
                    return true;
                }));
            }
            for (Future<?> each : writing) {
                each.get();
            }
        }
        assertThat(Files.readString(file)).hasSize(100_000);
        assertThat(directory).isDirectoryNotContaining(each -> each.toString().endsWith(".part"));
    }

    @Test
    void replacesWhatIsThereAndLeavesNothingBeside() throws IOException {
        Path file = directory.resolve("report.html");
        AtomicFile.write(file, "one");
        AtomicFile.write(file, "two");
        assertThat(file).hasContent("two");
        assertThat(directory.toFile().list()).hasSize(1);
    }

    @Test
    void aLinkInItsPlaceIsReplacedAndNotFollowed() throws IOException {
        Path precious = Files.writeString(directory.resolve("precious"), "precious");
        Path file = Files.createSymbolicLink(directory.resolve("report.html"), precious);
        AtomicFile.write(file, "text");
        assertThat(precious).hasContent("precious");
        assertThat(Files.isSymbolicLink(file)).isFalse();
        assertThat(file).hasContent("text");
    }

    /** The directory of the run may have been made by another user, with links under every predictable name. */
    @Test
    void aNameOfThePartThatCouldBeGuessedIsNotUsed() throws IOException {
        Path precious = Files.writeString(directory.resolve("precious"), "precious");
        Files.createSymbolicLink(
                directory.resolve(
                        ".report.html.%d.part".formatted(ProcessHandle.current().pid())),
                precious);
        AtomicFile.write(directory.resolve("report.html"), "text");
        assertThat(precious).hasContent("precious");
    }

    @Test
    void whatCannotBeWrittenLeavesWhatWasThere() throws IOException {
        Path file = Files.createDirectories(directory.resolve("taken/full")).getParent();
        assertThatThrownBy(() -> AtomicFile.write(file, "text")).isInstanceOf(IOException.class);
        assertThat(file).isDirectory();
        assertThat(directory.toFile().list()).hasSize(1);
    }
}
