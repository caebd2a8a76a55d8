package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.assertj.core.api.AbstractThrowableAssert;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What an encoder written for this test makes, and everything that is not such a file. */
class PngTest {
    private static final long SEED = Long.getLong("tests.seed", 16_11_2026L);
    private static final int MUTATIONS = Soak.mutations(10_000);

    private static final Path NAME = Path.of("some", "sheet.png");
    private static final Png.Rule ANY = _ -> Optional.empty();

    private static final byte[][] PIXELS = pixels(5, 4, 3);
    private static final byte[] FILE = PngEncoder.encode(PIXELS, 3, 1000, 0, 1, 2, 3, 4);

    @TempDir
    Path directory;

    /** Random, but with runs of equal and of neighbouring values, where filters have ties. */
    private static byte[][] pixels(int rows, int cols, int channels) {
        var random = new Random(rows + 31L * cols + channels);
        var pixels = new byte[rows][cols * channels];
        for (byte[] row : pixels) {
            random.nextBytes(row);
            for (int i = channels; i < row.length; i++) {
                if (random.nextInt(3) == 0) {
                    row[i] = (byte) (row[i - channels] + random.nextInt(3) - 1);
                }
            }
        }
        return pixels;
    }

    private static byte[][] read(byte[] content) throws IOException {
        var rows = new ArrayList<byte[]>();
        Png.read(NAME, content, ANY, (number, samples) -> {
            assertThat(number).isEqualTo(rows.size());
            rows.add(samples.clone());
        });
        return rows.toArray(byte[][]::new);
    }

    // ---- what is read

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4})
    void everyFilterIsUndone(int filter) throws IOException {
        for (int channels : new int[] {1, 2, 3, 4}) {
            for (int cols : new int[] {1, 2, 17, 300}) {
                byte[][] pixels = pixels(9, cols, channels);
                assertThat(read(PngEncoder.encode(pixels, channels, 1 << 16, filter)))
                        .as("%d channels, %d columns", channels, cols)
                        .isDeepEqualTo(pixels);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 7, 100, 1 << 20})
    void theDataMayBeInPieces(int piece) throws IOException {
        byte[][] pixels = pixels(40, 50, 3);
        assertThat(read(PngEncoder.encode(pixels, 3, piece, 4, 3, 2, 1, 0, 0, 2, 4)))
                .isDeepEqualTo(pixels);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4, 8})
    void numbersOfFewBitsAreUnpacked(int depth) throws IOException {
        var random = new Random(depth);
        var numbers = new int[7][13];
        var grey = new byte[7][13];
        var colours = new byte[7][39];
        var palette = new byte[3 << depth];
        random.nextBytes(palette);
        for (int y = 0; y < 7; y++) {
            for (int x = 0; x < 13; x++) {
                int value = random.nextInt(1 << depth);
                numbers[y][x] = value;
                grey[y][x] = (byte) Math.round(255.0 * value / ((1 << depth) - 1));
                System.arraycopy(palette, 3 * value, colours[y], 3 * x, 3);
            }
        }
        byte[] greyFile = PngEncoder.packed(numbers, depth);
        assertThat(read(greyFile)).isDeepEqualTo(grey);
        assertThat(Png.size(NAME, greyFile)).isEqualTo(new PixelSize(13, 7, 1));
        byte[] colourFile = PngEncoder.packed(numbers, depth, palette);
        assertThat(read(colourFile)).isDeepEqualTo(colours);
        assertThat(Png.size(NAME, colourFile)).isEqualTo(new PixelSize(13, 7, 3));
    }

    @Test
    void coloursThatThePaletteDoesNotHaveAreRefused() {
        int[][] numbers = {{0, 1, 2}};
        refused(() -> read(PngEncoder.packed(numbers, 2, (byte) 1, (byte) 2, (byte) 3, (byte) 4, (byte) 5, (byte) 6)))
                .hasMessageContaining("row 0 has colour 2, but the palette has only 2");
        refused(() -> read(PngEncoder.packed(numbers, 2, (byte) 1, (byte) 2)))
                .hasMessageContaining("a palette of 2 bytes, PLTE; from 1 to 256 colours of three bytes");
    }

    /** Made with another program: 3 x 2 pixels, Paeth and average. */
    @Test
    void aFileFromElsewhereIsRead() throws IOException {
        byte[] file = HexFormat.of().parseHex(FOREIGN);
        assertThat(read(file)).isDeepEqualTo(new byte[][] {
            {10, 20, 30, 40, 50, 60, (byte) 250, (byte) 251, (byte) 252},
            {0, (byte) 255, 1, 2, 3, 4, (byte) 200, 100, 50}
        });
    }

    private static final String FOREIGN = "89504e470d0a1a0a0000000d49484452000000030000000208020000001216f14d0000001b49"
            + "44415478da63e1129103824b270f30fffefae95df633afa79b004bf809fb9498f8c20000000049454e44ae426082";

    @Test
    void rowsAreReadFromAFileWithTheSizeThatWasAsked() throws IOException {
        Path file = Files.write(directory.resolve("a.png"), PngEncoder.encode(pixels(3, 2, 4), 4, 9, 1));
        var sizes = new ArrayList<PixelSize>();
        var rows = new ArrayList<byte[]>();
        Png.read(
                file,
                size -> {
                    sizes.add(size);
                    return Optional.empty();
                },
                (_, samples) -> rows.add(samples.clone()));

        assertThat(sizes).containsExactly(new PixelSize(2, 3, 4));
        assertThat(rows.toArray(byte[][]::new)).isDeepEqualTo(pixels(3, 2, 4));
    }

    @Test
    void whatIsOfNoInterestIsPassedOver() throws IOException {
        byte[] more = insert(
                FILE,
                33,
                PngEncoder.chunk("gAMA", (byte) 1, (byte) 2),
                PngEncoder.chunk("tEXt", new byte[200_000]),
                PngEncoder.chunk("PLTE", (byte) 1, (byte) 2, (byte) 3),
                PngEncoder.chunk("IDAT"));
        byte[] all = insert(more, more.length - 12, PngEncoder.chunk("IDAT"), PngEncoder.chunk("tIME", (byte) 0));
        assertThat(read(all)).isDeepEqualTo(PIXELS);
    }

    // ---- what is refused

    @Test
    void everyTruncationIsRefused() {
        byte[] pieces = PngEncoder.encode(PIXELS, 3, 10, 4);
        for (byte[] whole : List.of(FILE, pieces)) {
            for (int length = 0; length < whole.length; length++) {
                byte[] part = Arrays.copyOf(whole, length);
                refused(() -> read(part)).hasMessageMatching(length == 0 ? ".*empty.*" : ".*truncated.*");
            }
        }
    }

    @Test
    void everyDamagedBitIsFound() {
        for (int at = 0; at < FILE.length; at++) {
            for (int bit = 0; bit < 8; bit++) {
                byte[] damaged = FILE.clone();
                damaged[at] ^= (byte) (1 << bit);
                refused(() -> read(damaged));
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "0, 4, 8, 2, 0, 0 x 4 pixels",
        "4, 0, 8, 2, 0, 4 x 0 pixels",
        "-1, 4, 8, 2, 0, 4294967295 x 4 pixels",
        "4, -2147483648, 8, 2, 0, 4 x 2147483648 pixels",
        "4, 4, 16, 2, 0, color type 2 with 16 bits is not supported",
        "4, 4, 16, 0, 0, color type 0 with 16 bits is not supported",
        "4, 4, 3, 0, 0, color type 0 with 3 bits is not supported",
        "4, 4, 4, 2, 0, color type 2 with 4 bits is not supported",
        "4, 4, 4, 4, 0, color type 4 with 4 bits is not supported",
        "4, 4, 8, 1, 0, color type 1 with 8 bits is not supported",
        "4, 4, 8, 7, 0, color type 7 with 8 bits is not supported",
        "4, 4, 8, 3, 0, 'a palette of 0 bytes, PLTE; from 1 to 256 colours'",
        "4, 4, 8, 2, 1, interlaced",
        "2147483647, 2147483647, 8, 6, 0, rows of 2147483647 pixels; 4194304 are possible",
        "5592406, 1, 8, 2, 0, rows of 5592406 pixels; 5592405 are possible",
    })
    void headersOfAnotherKindAreRefused(int cols, int rows, int depth, int color, int interlace, String words) {
        byte[] file = PngEncoder.file(PngEncoder.header(cols, rows, depth, color, interlace), new byte[20], 20);
        refused(() -> read(file)).hasMessageContaining(words);
    }

    @Test
    void otherMethodsAreRefused() {
        for (int at : new int[] {10, 11}) {
            byte[] header = PngEncoder.header(4, 5, 8, 2, 0);
            header[at] = 1;
            refused(() -> read(PngEncoder.file(header, new byte[20], 20))).hasMessageContaining("only one, 0");
        }
    }

    @Test
    void theImageHasToBeWholeAndNoMore() {
        byte[] raw = PngEncoder.filtered(PIXELS, 3, 1);
        byte[] header = PngEncoder.header(4, 5, 8, 2, 0);
        byte[] stream = PngEncoder.deflate(raw);

        byte[] shorter = PngEncoder.deflate(Arrays.copyOf(raw, raw.length - 1));
        refused(() -> read(PngEncoder.file(header, shorter, 99))).hasMessageContaining("ends in row 4");
        byte[] longer = PngEncoder.deflate(Arrays.copyOf(raw, raw.length + 1));
        refused(() -> read(PngEncoder.file(header, longer, 99))).hasMessageContaining("more image data");
        byte[] cut = Arrays.copyOf(stream, stream.length - 1);
        refused(() -> read(PngEncoder.file(header, cut, 99))).hasMessageContaining("ends before its checksum");
        byte[] half = Arrays.copyOf(stream, stream.length / 2);
        refused(() -> read(PngEncoder.file(header, half, 99))).hasMessageContaining("is incomplete: it ends in row");
        byte[] trailing = Arrays.copyOf(stream, stream.length + 1);
        for (int piece : new int[] {99, stream.length}) {
            refused(() -> read(PngEncoder.file(header, trailing, piece))).hasMessageContaining("trailing bytes");
        }
        byte[] wrong = stream.clone();
        wrong[stream.length - 1] ^= 1;
        refused(() -> read(PngEncoder.file(header, wrong, 99))).hasMessageContaining("data check");
        refused(() -> read(PngEncoder.file(header, new byte[0], 99))).hasMessageContaining("no image data, IDAT");
    }

    @Test
    void anUnknownFilterIsRefused() {
        for (int filter : new int[] {5, 255}) {
            refused(() -> read(PngEncoder.encode(PIXELS, 3, 99, 1, 2, filter)))
                    .hasMessageContaining("row 2 has filter %d; from 0 to 4", filter);
        }
    }

    @Test
    void chunksThatMayNotBeThereAreRefused() {
        refused(() -> read(insert(FILE, 33, PngEncoder.chunk("ABCD"))))
                .hasMessageContaining("'ABCD', which is unknown");
        refused(() -> read(insert(FILE, 33, PngEncoder.chunk("IHDR", new byte[13]))))
                .hasMessageContaining("'IHDR'");
        refused(() -> read(insert(FILE, 33, PngEncoder.chunk("a\nb!")))).hasMessageContaining("'a\\u000ab!'");
        refused(() -> read(insert(FILE, 8, PngEncoder.chunk("tEXt")))).hasMessageContaining("does not start with");
        refused(() -> read(insert(FILE, FILE.length, new byte[1]))).hasMessageContaining("after the last chunk");
        refused(() -> read(insert(FILE, FILE.length - 12, PngEncoder.chunk("IDAT", (byte) 0))))
                .hasMessageContaining("trailing bytes after the image data");
        byte[] end =
                insert(Arrays.copyOf(FILE, FILE.length - 12), FILE.length - 12, PngEncoder.chunk("IEND", (byte) 0));
        refused(() -> read(end)).hasMessageContaining("IEND, has data");
        byte[] long32 = FILE.clone();
        ByteBuffer.wrap(long32).putInt(33, Integer.MIN_VALUE);
        refused(() -> read(long32)).hasMessageContaining("with 2147483648 bytes is not possible");
    }

    /** Data in chunks that another one parts. */
    @Test
    void theDataMayNotBeInterrupted() {
        byte[] pieces = PngEncoder.encode(PIXELS, 3, 10, 4);
        int second = 33 + 12 + 10;
        refused(() -> read(insert(pieces, second, PngEncoder.chunk("tEXt")))).hasMessageContaining("is incomplete");
    }

    /** It would become 64 MB; nothing of it is looked at but the byte that is too much. */
    @Test
    void aBombIsNotInflated() {
        byte[] stream = PngEncoder.deflate(new byte[64 << 20]);
        byte[] cut = Arrays.copyOf(stream, stream.length / 2);
        // A reader that continued to the end would find it missing.
        refused(() -> read(PngEncoder.file(PngEncoder.header(4, 1, 8, 2, 0), cut, 1 << 16)))
                .hasMessageContaining("more image data");
    }

    @Test
    void theRuleIsAskedBeforeTheDataIsRead() {
        byte[] cut = Arrays.copyOf(FILE, 33);
        refused(() -> Png.read(
                        NAME, cut, size -> Optional.of("not %s rows\nplease".formatted(size.rows())), (_, _) -> {}))
                .hasMessage(NAME + ": not 5 rows\\u000aplease");
    }

    @Test
    void whatIsNoFileIsNamed() {
        Path none = directory.resolve("none");
        assertThatThrownBy(() -> Png.read(none, ANY, (_, _) -> {}))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(none + ": no such file");
        assertThatThrownBy(() -> Png.read(directory, ANY, (_, _) -> {}))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(directory + " is a directory");
        refused(() -> read("GIF89a, not a PNG".getBytes(StandardCharsets.US_ASCII)))
                .hasMessageContaining("not a PNG file");
    }

    // ---- whatever comes

    /** Bytes of the file, of which most are found by a checksum; and of what is in its chunks, with right checksums. */
    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() {
        var random = new Random(SEED);
        byte[] raw = PngEncoder.filtered(PIXELS, 3, 0, 1, 2, 3, 4);
        byte[] palette = PngEncoder.packed(new int[][] {{0, 1, 1}, {1, 0, 1}}, 1, new byte[6]);
        try (var mutations =
                new Mutations("PNG", SEED, MalformedFileException.class).allocating(4 * Gunzip.RATIO, 1 << 18)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] header = PngEncoder.header(4, 5, 8, 2, 0);
                byte[] bytes = switch (i % 4) {
                    case 0 -> mutate(random.nextInt(4) == 0 ? palette : FILE, random);
                    case 1 -> PngEncoder.file(mutate(header, random), PngEncoder.deflate(raw), 20);
                    case 2 -> PngEncoder.file(header, mutate(PngEncoder.deflate(raw), random), 20);
                    default -> PngEncoder.file(header, PngEncoder.deflate(mutate(raw, random)), 20);
                };
                mutations.feed(bytes, NAME + ": ", () -> {
                    PixelSize size = Png.size(NAME, bytes);
                    byte[][] rows = read(bytes);
                    assertThat(rows).hasDimensions(size.rows(), size.cols() * size.channels());
                    return true;
                });
            }
            mutations.end(0.01, 0.5);
        }
    }

    private static byte[] mutate(byte[] original, Random random) {
        byte[] bytes = original.clone();
        for (int changes = 1 + random.nextInt(3); changes > 0; changes--) {
            int at = random.nextInt(Math.max(bytes.length, 1));
            if (bytes.length == 0 || random.nextInt(6) == 0) {
                bytes = Arrays.copyOf(bytes, at + random.nextInt(9));
            } else if (random.nextBoolean()) {
                bytes[at] = (byte) random.nextInt(256);
            } else {
                bytes[at] ^= (byte) (1 << random.nextInt(8));
            }
        }
        return bytes;
    }

    // ---- tools

    private static AbstractThrowableAssert<?, ? extends Throwable> refused(ThrowingCallable call) {
        return assertThatThrownBy(call)
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(NAME + ": ")
                .satisfies(e ->
                        assertThat(e.getMessage()).doesNotContainPattern("\\R").hasSizeLessThan(240));
    }

    private static byte[] insert(byte[] file, int at, byte[]... chunks) {
        var bytes = new ByteArrayOutputStream();
        bytes.write(file, 0, at);
        for (byte[] chunk : chunks) {
            bytes.writeBytes(chunk);
        }
        bytes.write(file, at, file.length - at);
        return bytes.toByteArray();
    }
}
