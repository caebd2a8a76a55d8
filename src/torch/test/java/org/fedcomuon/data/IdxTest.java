package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.fedcomuon.data.SmallMnist.gzip;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
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

/** Files built byte by byte, and everything that is not such a file. */
class IdxTest {
    private static final long SEED = Long.getLong("tests.seed", 16_11_2026L);
    private static final int MUTATIONS = Soak.mutations(5_000);

    private static final Path NAME = Path.of("some", "images");
    private static final Idx.Rule ANY = _ -> Optional.empty();

    /** Two images of 2 x 3. */
    private static final byte[] IMAGES = hex("00000803 00000002 00000002 00000003", "000102030405", "fffefdfcfbfa");
    /** Five labels. */
    private static final byte[] LABELS = hex("00000801 00000005", "0401020300");

    @TempDir
    Path directory;

    // ---- what is read

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void imagesAreReadCompressedOrNot(boolean compressed) throws IOException {
        IdxArray array = read(compressed ? gzip(IMAGES) : IMAGES, 3);

        assertThat(array.shape()).containsExactly(2, 2, 3);
        assertThat(array.data().toArray(ValueLayout.JAVA_BYTE))
                .containsExactly(0, 1, 2, 3, 4, 5, -1, -2, -3, -4, -5, -6);
        assertThat(array.data().isReadOnly()).isTrue();
        assertThat(array.header()).isEqualTo(Arrays.copyOf(IMAGES, 16));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void labelsAreReadFromAFile(boolean compressed) throws IOException {
        Path file = Files.write(directory.resolve("labels"), compressed ? gzip(LABELS) : LABELS);

        IdxArray array = Idx.read(file, 1, ANY);

        assertThat(array.shape()).containsExactly(5);
        assertThat(array.data().toArray(ValueLayout.JAVA_BYTE)).containsExactly(4, 1, 2, 3, 0);
        assertThat(array.header()).isEqualTo(Arrays.copyOf(LABELS, 8));
    }

    @Test
    void largeFilesAreReadToo() throws IOException {
        var content = new byte[300_000];
        new Random(1).nextBytes(content);
        byte[] file = concat(hex("00000803 00000bb8 0000000a 0000000a"), content);

        assertThat(read(file, 3).data().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(content);
        assertThat(read(gzip(file), 3).data().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(content);
    }

    /** A name as the gzip tool writes it, and whatever else a header may have. */
    @ParameterizedTest
    @ValueSource(strings = {"08 6100", "10 616200", "04 0300 010203", "02 abcd", "01", "1f 0100 ff 6100 6200 abcd"})
    void everyHeaderOfGzipIsRead(String flagsAndFields) throws IOException {
        byte[] plain = gzip(LABELS);
        byte[] extra = hex(flagsAndFields);
        byte[] file = concat(
                Arrays.copyOf(plain, 3),
                Arrays.copyOf(extra, 1),
                Arrays.copyOfRange(plain, 4, 10),
                Arrays.copyOfRange(extra, 1, extra.length),
                Arrays.copyOfRange(plain, 10, plain.length));

        assertThat(read(file, 1).shape()).containsExactly(5);
        for (int length = 2; length < 10 + extra.length; length++) {
            int cut = length;
            refused(() -> read(Arrays.copyOf(file, cut), 1)).hasMessageContaining("truncated");
        }
    }

    // ---- what is refused

    @Test
    void everyTruncationIsRefused() {
        for (byte[] whole : List.of(IMAGES, gzip(IMAGES))) {
            for (int length = 0; length < whole.length; length++) {
                byte[] part = Arrays.copyOf(whole, length);
                refused(() -> read(part, 3))
                        .hasMessageMatching(length > 1 ? ".*truncated.*" : ".*(truncated|empty|not an IDX).*");
            }
        }
    }

    @Test
    void everyTruncationOfWhatIsCompressedIsRefused() {
        for (int length = 0; length < IMAGES.length; length++) {
            byte[] part = gzip(Arrays.copyOf(IMAGES, length));
            refused(() -> read(part, 3)).hasMessageMatching(".*(truncated|nothing is compressed).*");
        }
    }

    @Test
    void trailingBytesAreRefused() {
        byte[] more = concat(IMAGES, new byte[7]);
        refused(() -> read(more, 3))
                .hasMessageContaining("7 trailing bytes")
                .hasMessageContaining("2 x 2 x 3 needs 12");
        refused(() -> read(gzip(more), 3)).hasMessageContaining("trailing bytes after the data");
        refused(() -> read(concat(gzip(IMAGES), new byte[1]), 3)).hasMessageContaining("trailing bytes after it");
        refused(() -> read(concat(gzip(IMAGES), gzip(LABELS)), 3)).hasMessageContaining("trailing bytes after it");
    }

    @Test
    void damageToWhatIsCompressedIsFound() {
        byte[] file = gzip(IMAGES);
        for (int at : new int[] {file.length - 8, file.length - 4}) { // checksum, length
            byte[] damaged = file.clone();
            damaged[at] ^= 1;
            refused(() -> read(damaged, 3)).hasMessageContaining("damaged").hasMessageContaining("fetch it again");
        }
        byte[] method = file.clone();
        method[2] = 7;
        refused(() -> read(method, 3)).hasMessageContaining("unknown kind of gzip");
    }

    @Test
    void theOtherFileOfTheTwoIsRefused() {
        refused(() -> read(LABELS, 3))
                .hasMessageContaining("1 dimension, as labels have")
                .hasMessageContaining("other");
        refused(() -> read(gzip(IMAGES), 1))
                .hasMessageContaining("3 dimensions, as images have")
                .hasMessageContaining("other");
        refused(() -> read(hex("00000802 00000001 00000001 00"), 3))
                .hasMessageContaining("2 dimensions")
                .hasMessageNotContaining("other file");
        refused(() -> read(hex("00000800"), 3)).hasMessageContaining("0 dimensions");
    }

    @ParameterizedTest
    @CsvSource({
        "50 4b 03 04, not an IDX file",
        "03 08 00 00, not an IDX file",
        "00 01 08 03, not an IDX file",
        "00 00 0d 03, float32",
        "00 00 09 01, signed bytes",
        "00 00 0b 01, 16-bit",
        "00 00 0c 01, 32-bit",
        "00 00 0e 01, float64",
        "00 00 00 03, unknown",
    })
    void anotherMagicIsRefused(String magic, String words) {
        byte[] file = concat(hex(magic), new byte[28]);
        refused(() -> read(file, 3)).hasMessageContaining(words);
    }

    @ParameterizedTest
    @CsvSource({
        "00000000 00000002 00000003, dimension 1 of 3 is 0",
        "00000002 00000002 00000000, dimension 3 of 3 is 0",
        "ffffffff 00000001 00000001, 4294967295",
        "80000000 00000000 00000001, 2147483648",
        "7fffffff 00000001 00000001, too large",
        "7fffffff 7fffffff 7fffffff, too large",
        "00010000 00010000 00000001, too large",
        "00100000 00000010 00000010, needs 268435456",
    })
    void aHeaderThatPromisesTheImpossibleIsRefused(String shape, String words) {
        byte[] file = concat(hex("00000803" + shape), new byte[12]);
        refused(() -> read(gzip(file), 3)).hasMessageContaining(words);
        refused(() -> read(file, 3));
    }

    /** It would become 64 MB; nothing of it is looked at but the byte that is too much. */
    @Test
    void aGzipBombIsNotInflated() {
        byte[] bomb = gzip(concat(IMAGES, new byte[64 << 20]));
        byte[] cut = Arrays.copyOf(bomb, bomb.length / 2);
        // A reader that continued to the end would find it missing.
        refused(() -> read(cut, 3)).hasMessageContaining("trailing bytes after the data");
    }

    @Test
    void theRuleIsAskedBeforeTheDataIsRead() {
        byte[] cut = Arrays.copyOf(IMAGES, 16);
        Idx.Rule rule = shape -> Optional.of("not %s images\nplease".formatted(shape.getFirst()));
        for (byte[] file : List.of(cut, gzip(cut))) {
            refused(() -> Idx.read(NAME, file, 3, rule)).hasMessage(NAME + ": not 2 images\\u000aplease");
        }
    }

    @Test
    void theRuleIsNotAskedAboutTheImpossible() {
        var asked = new AtomicBoolean();
        refused(() -> Idx.read(NAME, hex("00000801 ffffffff 00"), 1, _ -> {
            asked.set(true);
            return Optional.empty();
        }));
        assertThat(asked).isFalse();
    }

    @Test
    void whatIsNoFileIsNamed() {
        Path none = directory.resolve("none");
        assertThatThrownBy(() -> Idx.read(none, 1, ANY))
                .isInstanceOf(NoSuchFileException.class)
                .hasMessage(none + ": no such file");
        assertThatThrownBy(() -> Idx.read(directory, 1, ANY))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(directory + " is a directory");
    }

    // ---- whatever comes

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() {
        var random = new Random(SEED);
        List<byte[]> originals = List.of(IMAGES, LABELS, gzip(IMAGES), gzip(LABELS));
        try (var mutations = new Mutations("IDX", SEED, MalformedFileException.class)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] bytes = mutate(originals.get(random.nextInt(originals.size())), random);
                int rank = random.nextBoolean() ? 1 : 3;
                mutations.feed(bytes, NAME + ": ", () -> {
                    IdxArray array = read(bytes, rank);
                    assertThat(array.shape()).hasSize(rank);
                    return assertThat(array.data().byteSize()).isLessThan(2L * bytes.length);
                });
            }
            mutations.end(0.01, 0.5);
        }
    }

    private static byte[] mutate(byte[] original, Random random) {
        byte[] bytes = original.clone();
        for (int changes = 1 + random.nextInt(3); changes > 0; changes--) {
            int at = random.nextInt(Math.max(bytes.length, 1));
            switch (random.nextInt(5)) {
                case 0 -> bytes = Arrays.copyOf(bytes, at);
                case 1 -> bytes = concat(bytes, new byte[random.nextInt(9)]);
                case 2 ->
                    bytes = concat(
                            Arrays.copyOf(bytes, at),
                            Arrays.copyOfRange(bytes, Math.min(at + 1, bytes.length), bytes.length));
                case 3 -> {
                    if (bytes.length > 0) {
                        bytes[at] = (byte) random.nextInt(256);
                    }
                }
                default -> {
                    if (bytes.length > 0) {
                        bytes[at] ^= (byte) (1 << random.nextInt(8));
                    }
                }
            }
        }
        return bytes;
    }

    // ---- the array itself

    @Test
    void anArrayThatDoesNotFitItsShapeIsRefused() {
        MemorySegment six = MemorySegment.ofArray(new byte[6]);
        assertThatThrownBy(() -> new IdxArray(List.of(2, 2), six)).hasMessage("the shape 2 x 2 does not fit 6 bytes");
        assertThatThrownBy(() -> new IdxArray(List.of(-2, -3), six)).hasMessageContaining("empty dimension");
        assertThatThrownBy(() -> new IdxArray(List.of(), MemorySegment.ofArray(new byte[1])))
                .isInstanceOf(IllegalArgumentException.class);
    }

    // ---- tools

    private static IdxArray read(byte[] content, int rank) throws IOException {
        return Idx.read(NAME, content, rank, ANY);
    }

    private static AbstractThrowableAssert<?, ? extends Throwable> refused(ThrowingCallable call) {
        return assertThatThrownBy(call)
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(NAME + ": ")
                .satisfies(e ->
                        assertThat(e.getMessage()).doesNotContainPattern("\\R").hasSizeLessThan(240));
    }

    private static byte[] hex(String... texts) {
        return HexFormat.of().parseHex(String.join("", texts).replace(" ", ""));
    }

    private static byte[] concat(byte[]... parts) {
        ByteBuffer whole = ByteBuffer.allocate(
                Arrays.stream(parts).mapToInt(part -> part.length).sum());
        for (byte[] part : parts) {
            whole.put(part);
        }
        return whole.array();
    }
}
