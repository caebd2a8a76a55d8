package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.fedcomuon.data.SmallMnist.gzip;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.fedcomuon.file.MalformedFileException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files read as a whole, and files of records. */
class FileContentTest {
    private static final byte[] TEXT = "some text".getBytes(StandardCharsets.US_ASCII);

    @TempDir
    Path directory;

    private Path file(byte[] content) throws IOException {
        return Files.write(directory.resolve("file"), content);
    }

    @Test
    void contentIsTheSameCompressedOrNot() throws IOException {
        assertThat(FileContent.read(file(TEXT), "a text", 9)).isEqualTo(TEXT);
        assertThat(FileContent.read(file(gzip(TEXT)), "a text", 9)).isEqualTo(TEXT);
        assertThat(FileContent.read(Path.of("name"), gzip(TEXT), 9)).isEqualTo(TEXT);
        assertThat(FileContent.read(file(new byte[0]), "a text", 9)).isEmpty();
    }

    @Test
    void largerFilesAreRefused() throws IOException {
        for (byte[] content : List.of(TEXT, gzip(TEXT), Arrays.copyOf(gzip(new byte[64 << 20]), 1000))) {
            Path file = file(content);
            assertThatThrownBy(() -> FileContent.read(file, "a text", 8))
                    .isInstanceOf(MalformedFileException.class)
                    .hasMessage(file + ": larger than the limit of 8 bytes");
        }
    }

    @Test
    void damageIsRefused() throws IOException {
        byte[] whole = gzip(TEXT);
        for (int length = 2; length < whole.length; length++) {
            Path file = file(Arrays.copyOf(whole, length));
            assertThatThrownBy(() -> FileContent.read(file, "a text", 100))
                    .isInstanceOf(MalformedFileException.class)
                    .hasMessageContaining("truncated");
        }
    }

    @Test
    void whatIsNoFileIsNamed() {
        Path none = directory.resolve("none");
        assertThatThrownBy(() -> FileContent.read(none, "a text", 9))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(none + ": no such file");
        assertThatThrownBy(() -> FileContent.read(directory, "a text", 9))
                .hasMessage(directory + " is a directory; name a text");
        assertThatThrownBy(() -> FixedRecords.count(none, 3, 9))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(none + ": no such file");
    }

    @Test
    void recordsComeInOrder() throws IOException {
        var records = new ArrayList<String>();
        FixedRecords.read(file(TEXT), 3, 3, (number, bytes) -> {
            assertThat(number).isEqualTo(records.size());
            records.add(new String(bytes, StandardCharsets.US_ASCII));
        });
        assertThat(records).containsExactly("som", "e t", "ext");
        assertThat(FixedRecords.count(file(TEXT), 3, 3)).isEqualTo(3);
    }

    @Test
    void otherLengthsAreRefused() throws IOException {
        assertRefused(new byte[0], "the file is empty; records of 3 bytes are needed");
        assertRefused(new byte[8], "8 bytes are 2 records of 3 bytes and a part of one; copy or fetch it again");
        assertRefused(new byte[12], "4 records of 3 bytes; at most 3 are possible");
    }

    private void assertRefused(byte[] content, String message) throws IOException {
        Path file = file(content);
        assertThatThrownBy(() -> FixedRecords.read(file, 3, 3, (_, _) -> {
                    throw new AssertionError("nothing is to be read");
                }))
                .isInstanceOf(MalformedFileException.class)
                .hasMessage(file + ": " + message);
    }
}
