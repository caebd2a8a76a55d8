package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.fedcomuon.data.SmallMnist.gzip;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.assertj.core.api.AbstractThrowableAssert;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Archives built block by block, and everything that should not be unpacked. */
class TarballTest {
    private static final long SEED = Long.getLong("tests.seed", 16_11_2026L);
    private static final int MUTATIONS = Soak.mutations(3_000);

    private static final String WANTED = "package/data/wanted";
    private static final byte[] CONTENT = "what is wanted".getBytes(StandardCharsets.US_ASCII);
    private static final long MOST = 1 << 20;

    @TempDir
    Path directory;

    private Path archive;
    private Path target;

    @BeforeEach
    void names() {
        archive = directory.resolve("archive.tgz");
        target = directory.resolve("target");
    }

    @Test
    void takesOutWhatIsWantedAndNothingElse() throws IOException {
        write(
                entry("package/", '5', ""),
                entry("package/package.json", '0', "x".repeat(2000)),
                entry(WANTED, '0', CONTENT),
                entry("package/data/empty", '\0', ""));

        extract();

        assertThat(target).hasBinaryContent(CONTENT);
        try (Stream<Path> files = Files.list(directory)) {
            assertThat(files).containsExactlyInAnyOrder(archive, target);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 511, 512, 513, 200_000})
    void contentOfEverySizeIsWhole(int size) throws IOException {
        var content = new byte[size];
        new Random(size).nextBytes(content);
        write(entry(WANTED, '0', content), entry("after", '0', "more"));

        extract();

        assertThat(target).hasBinaryContent(content);
    }

    @Test
    void aNameMayBeInTwoParts() throws IOException {
        write(entry("wanted", '0', CONTENT, header -> put(header, 345, "package/data")));

        extract();

        assertThat(target).hasBinaryContent(CONTENT);
    }

    @Test
    void gnuHasSomethingElseInThePlaceOfTheFirstPart() throws IOException {
        write(entry(WANTED, '0', CONTENT, header -> {
            put(header, 257, "ustar  ");
            put(header, 345, "14567012345");
        }));

        extract();

        assertThat(target).hasBinaryContent(CONTENT);
    }

    // ---- refused

    /** Links, devices, a pipe, a sparse file, and headers that would change the meaning of the next. */
    @ParameterizedTest
    @ValueSource(chars = {'1', '2', '3', '4', '6', '7', 'S', 'x', 'g', 'L', 'K', '\u001b', '\u00ff'})
    void whatIsNeitherFileNorDirectoryIsRefused(char type) throws IOException {
        write(entry("package/other", type, ""), entry(WANTED, '0', CONTENT));

        refused().hasMessageContaining("'package/other' is neither a file nor a directory");
    }

    @Test
    void aLinkInThePlaceOfWhatIsWantedIsRefused() throws IOException {
        write(entry(WANTED, '2', "", header -> put(header, 157, "/etc/passwd")));

        refused();
        assertThat(target).doesNotExist();
    }

    @ParameterizedTest
    @ValueSource(strings = {"../x", "/etc/x", "package/../../x", "..", "a/..", "a\\..\\x", ""})
    void aNameThatLeadsOutIsRefused(String name) throws IOException {
        write(entry(name, '0', "x"), entry(WANTED, '0', CONTENT));

        refused().hasMessageContaining("leads out of the archive");
    }

    @Test
    void theFirstPartOfANameMayNotLeadOutEither() throws IOException {
        write(entry("x", '0', "x", header -> put(header, 345, "package/..")), entry(WANTED, '0', CONTENT));

        refused().hasMessageContaining("leads out of the archive");
    }

    @Test
    void dotsWithinANameAreHarmless() throws IOException {
        write(entry("package/..x/a..b/.npmignore", '0', "x"), entry(WANTED, '0', CONTENT));

        extract();

        assertThat(target).hasBinaryContent(CONTENT);
    }

    @Test
    void whatIsThereTwiceIsRefused() throws IOException {
        write(entry(WANTED, '0', CONTENT), entry(WANTED, '0', "another"));

        refused().hasMessageContaining("is contained twice");
    }

    @Test
    void whatIsNotThereIsNamed() throws IOException {
        write(entry("package/else", '0', CONTENT));
        refused().hasMessageContaining("it has no '" + WANTED + "'");

        write(entry(WANTED, '5', ""));
        refused().hasMessageContaining("it has no '" + WANTED + "'");
    }

    @Test
    void aDirectoryWithContentIsRefused() throws IOException {
        write(entry("package", '5', "x"));

        refused().hasMessageContaining("has content");
    }

    @ParameterizedTest
    @ValueSource(strings = {"-1", "9", "0x10", "1 2", "", "\u0080\u0000\u0000\u0000"})
    void aSizeThatIsNoOctalNumberIsRefused(String size) throws IOException {
        write(entry(WANTED, '0', "", header -> {
            Arrays.fill(header, 124, 136, (byte) 0);
            put(header, 124, size);
        }));

        refused().hasMessageContaining("only octal digits are allowed");
    }

    @Test
    void aSizeThatIsTooLargeIsRefusedBeforeAnythingIsWritten() throws IOException {
        write(entry(WANTED, '0', "", header -> put(header, 124, "77777777777")));

        refused().hasMessageContaining("larger than the expected maximum of 1048576 bytes");
        assertThat(target).isEmptyFile();
    }

    @Test
    void aBombIsRefused() throws IOException {
        write(entry("package/zeros", '0', new byte[2 << 20]), entry(WANTED, '0', CONTENT));
        refused().hasMessageContaining("larger than");
        assertThat(target).doesNotExist();

        // After the end of the archive.
        write(entry(WANTED, '0', CONTENT), new byte[2 << 20]);
        refused().hasMessageContaining("larger than");
    }

    @Test
    void theLimitIsForAllFilesTogether() throws IOException {
        byte[][] many = Stream.generate(() -> entry("package/x", '0', new byte[100_000]))
                .limit(12)
                .toArray(byte[][]::new);
        write(many);

        refused().hasMessageContaining("larger than");
    }

    @Test
    void aWrongChecksumIsRefused() throws IOException {
        byte[] entry = entry(WANTED, '0', CONTENT);
        entry[3] ^= 1;
        write(entry);

        refused().hasMessageContaining("wrong checksum");
    }

    @Test
    void whatIsNoArchiveIsRefused() throws IOException {
        Files.write(archive, "<html>no such package</html>".getBytes(StandardCharsets.US_ASCII));
        refused().hasMessageContaining("not in gzip format");

        Files.write(archive, gzip("x".repeat(600).getBytes(StandardCharsets.US_ASCII)));
        refused().hasMessageContaining("not a tar archive");

        Files.write(archive, new byte[0]);
        refused().hasMessageContaining("truncated");
    }

    @Test
    void nothingThatIsThereIsOverwritten() throws IOException {
        write(entry(WANTED, '0', CONTENT));
        Files.writeString(target, "mine");

        assertThatThrownBy(this::extract).isInstanceOf(FileAlreadyExistsException.class);
        assertThat(target).hasContent("mine");
    }

    @Test
    void everyTruncationIsRefused() throws IOException {
        byte[] whole = gzip(concat(entry(WANTED, '0', CONTENT), entry("b", '0', "more"), new byte[1024]));
        for (int length = 0; length < whole.length; length++) {
            Files.write(archive, Arrays.copyOf(whole, length));
            refused().hasMessageContaining("truncated");
        }
        byte[] tar = concat(entry(WANTED, '0', CONTENT), entry("b", '0', "more"));
        for (int length = 0; length <= tar.length; length += 64) {
            Files.write(archive, gzip(Arrays.copyOf(tar, length)));
            refused().hasMessageContaining("truncated");
        }
    }

    @Test
    @Tag(Soak.TAG)
    void mutationsAreUnpackedOrRefused() throws IOException {
        var random = new Random(SEED);
        byte[] original = concat(entry("a", '0', "x"), entry(WANTED, '0', CONTENT), new byte[1024]);
        try (var mutations = new Mutations("tar.gz", SEED, MalformedFileException.class)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] tar = original.clone();
                int at = random.nextInt(2048);
                tar[at] = (byte) random.nextInt(256);
                if (random.nextInt(4) > 0) {
                    seal(tar, 0); // or else the checksum would find everything
                    seal(tar, 1024);
                }
                Files.deleteIfExists(archive); // to write over it would wait for the disk
                Files.write(archive, gzip(tar));
                Files.deleteIfExists(target);
                mutations.feed(tar, archive + ": ", () -> {
                    extract();
                    return assertThat(target).isRegularFile();
                });
            }
            mutations.end(0.1, 0.9);
        }
        try (Stream<Path> files = Files.list(directory)) {
            assertThat(files).isSubsetOf(archive, target);
        }
    }

    // ---- tools

    private void extract() throws IOException {
        Tarball.extract(archive, Map.of(WANTED, target), MOST);
    }

    private AbstractThrowableAssert<?, ? extends Throwable> refused() throws IOException {
        Files.deleteIfExists(target);
        return assertThatThrownBy(this::extract)
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(archive + ": ")
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }

    private void write(byte[]... entries) throws IOException {
        Files.write(archive, gzip(concat(concat(entries), new byte[1024])));
    }

    private static byte[] entry(String name, char type, String content) {
        return entry(name, type, content.getBytes(StandardCharsets.US_ASCII));
    }

    private static byte[] entry(String name, char type, byte[] content) {
        return entry(name, type, content, _ -> {});
    }

    private static byte[] entry(String name, char type, String content, Consumer<byte[]> change) {
        return entry(name, type, content.getBytes(StandardCharsets.US_ASCII), change);
    }

    private static byte[] entry(String name, char type, byte[] content, Consumer<byte[]> change) {
        byte[] entry = new byte[512 + (content.length + 511) / 512 * 512];
        put(entry, 0, name);
        put(entry, 124, "%011o".formatted(content.length));
        entry[156] = (byte) type;
        put(entry, 257, "ustar\00000");
        System.arraycopy(content, 0, entry, 512, content.length);
        change.accept(entry);
        seal(entry, 0);
        return entry;
    }

    /** Puts the right checksum into the header at {@code at}. */
    private static void seal(byte[] tar, int at) {
        Arrays.fill(tar, at + 148, at + 156, (byte) ' ');
        int sum = 0;
        for (int i = at; i < at + 512; i++) {
            sum += Byte.toUnsignedInt(tar[i]);
        }
        put(tar, at + 148, "%06o\0".formatted(sum));
    }

    private static void put(byte[] header, int at, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
        System.arraycopy(bytes, 0, header, at, bytes.length);
    }

    private static byte[] concat(byte[]... parts) {
        var whole = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            whole.writeBytes(part);
        }
        return whole.toByteArray();
    }
}
