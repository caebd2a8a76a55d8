package org.fedcomuon.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import javax.imageio.IIOImage;
import javax.imageio.ImageIO;
import javax.imageio.ImageWriteParam;
import javax.imageio.ImageWriter;
import javax.imageio.stream.MemoryCacheImageOutputStream;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class JpegTest {
    private static final long SEED = Long.getLong("tests.seed", 18_11_2026L);
    private static final int MUTATIONS = Soak.mutations(2_000);
    private static final Path NAME = Path.of("some", "image.jpg");

    /** A smooth image, which survives compression: red grows to the right, green downwards, blue is constant. */
    static int sample(int channels, int channel, int x, int y) {
        return channels == 1 ? 40 + 3 * x + 2 * y : channel == 0 ? 30 + 5 * x : channel == 1 ? 20 + 6 * y : 90;
    }

    /** As the encoder of the JDK writes it. */
    static byte[] encode(int cols, int rows, int channels, boolean progressive) {
        var image = new BufferedImage(
                cols, rows, channels == 1 ? BufferedImage.TYPE_BYTE_GRAY : BufferedImage.TYPE_INT_RGB);
        for (int y = 0; y < rows; y++) {
            for (int x = 0; x < cols; x++) {
                for (int channel = 0; channel < channels; channel++) {
                    image.getRaster().setSample(x, y, channel, sample(channels, channel, x, y));
                }
            }
        }
        var bytes = new ByteArrayOutputStream();
        ImageWriter writer = ImageIO.getImageWritersByFormatName("jpeg").next();
        try (var out = new MemoryCacheImageOutputStream(bytes)) {
            ImageWriteParam settings = writer.getDefaultWriteParam();
            settings.setCompressionMode(ImageWriteParam.MODE_EXPLICIT);
            settings.setCompressionQuality(0.98f);
            settings.setProgressiveMode(progressive ? ImageWriteParam.MODE_DEFAULT : ImageWriteParam.MODE_DISABLED);
            writer.setOutput(out);
            writer.write(null, new IIOImage(image, null, null), settings);
        } catch (IOException e) {
            throw new AssertionError(e);
        } finally {
            writer.dispose();
        }
        return bytes.toByteArray();
    }

    private static byte[] read(byte[] content) throws IOException {
        try (var jpeg = new Jpeg()) {
            return jpeg.read(NAME, content);
        }
    }

    private static void assertSame(byte[] samples, int cols, int rows, int channels) {
        assertThat(samples).hasSize(cols * rows * channels);
        for (int channel = 0; channel < channels; channel++) {
            for (int y = 0; y < rows; y++) {
                for (int x = 0; x < cols; x++) {
                    int found = Byte.toUnsignedInt(samples[(channel * rows + y) * cols + x]);
                    assertThat(Math.abs(found - sample(channels, channel, x, y)))
                            .as("channel %d, row %d, column %d", channel, y, x)
                            .isLessThanOrEqualTo(channels == 1 ? 2 : 9); // colours are kept at half the resolution
                }
            }
        }
    }

    // ---- what is read

    @ParameterizedTest
    @CsvSource({
        "16, 16, 1, false",
        "16, 16, 3, false",
        "13, 7, 3, false",
        "1, 1, 1, false",
        "16, 9, 3, true",
        "9, 5, 1, true"
    })
    void imagesAreRead(int cols, int rows, int channels, boolean progressive) throws IOException {
        byte[] file = encode(cols, rows, channels, progressive);
        assertThat(Jpeg.isJpeg(file)).isTrue();
        assertThat(Jpeg.size(NAME, file)).isEqualTo(new PixelSize(cols, rows, channels));
        assertSame(read(file), cols, rows, channels);
    }

    @Test
    void oneReaderReadsManyImages() throws IOException {
        try (var jpeg = new Jpeg()) {
            byte[] first = jpeg.read(NAME, encode(8, 8, 3, false));
            assertThatThrownBy(() -> jpeg.read(NAME, Arrays.copyOf(encode(8, 8, 3, false), 300)))
                    .isInstanceOf(MalformedFileException.class);
            assertSame(jpeg.read(NAME, encode(12, 8, 1, true)), 12, 8, 1);
            assertThat(jpeg.read(NAME, encode(8, 8, 3, false))).isEqualTo(first);
        }
    }

    /** A profile that is none, a preview that is none, a comment, and fill bytes: the decoder gets none of them. */
    @Test
    void whatIsOfNoInterestIsPassedOver() throws IOException {
        byte[] file = encode(16, 16, 3, false);
        byte[] profile = segment(0xe2, "ICC_PROFILE\0\1\1 and then nonsense".getBytes(StandardCharsets.US_ASCII));
        byte[] exif = segment(0xe1, "Exif\0\0 nonsense too".getBytes(StandardCharsets.US_ASCII));
        byte[] comment = segment(0xfe, new byte[60_000]);
        byte[] more = insert(insert(insert(insert(file, profile), exif), comment), new byte[] {-1, -1, -1});
        assertThat(read(more)).isEqualTo(read(file));
    }

    // ---- what is refused

    @Test
    void everyTruncationIsRefused() {
        byte[] file = encode(16, 16, 3, false);
        for (int length = 0; length < file.length - 2; length++) {
            byte[] part = Arrays.copyOf(file, length);
            assertThatThrownBy(() -> read(part))
                    .as("%d of %d bytes", length, file.length)
                    .isInstanceOf(MalformedFileException.class)
                    .hasMessageStartingWith(NAME + ": ");
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0xc3, 0xc5, 0xc7, 0xc9, 0xcb, 0xcf})
    void otherKindsAreRefused(int marker) {
        byte[] file = encode(8, 8, 1, false);
        file[frame(file) + 1] = (byte) marker;
        refused(file, "a kind of JPEG, ff %02x, that is not supported".formatted(marker));
    }

    @Test
    void framesThatCannotBeAreRefused() {
        refused(changed(4, 12), "1 channels of 12 bits are not supported; grey and RGB of 8 bits are");
        refused(changed(9, 4), "4 channels of 8 bits are not supported");
        refused(changed(9, 2), "2 channels of 8 bits are not supported");
        byte[] none = changed(6, 0);
        refused(none, "8 x 0 pixels; from 1 to 65535 are possible");
        byte[] bomb = changed(5, 255);
        bomb[frame(bomb) + 7] = (byte) 255;
        refused(bomb, "65288 x 65288 pixels need 4262522944 bytes; a file of");
        byte[] file = encode(8, 8, 1, false);
        byte[] again = Arrays.copyOfRange(file, frame(file), frame(file) + 13);
        refused(insert(file, again), "two images in one");
        refused(new byte[] {-1, (byte) 0xd8, -1, (byte) 0xda, 0, 2}, "the image data come before the size");
        refused(new byte[] {-1, (byte) 0xd8, -1, (byte) 0xd9}, "is damaged at byte 2");
        refused("GIF89a".getBytes(StandardCharsets.US_ASCII), "not a JPEG file");
    }

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() {
        var random = new Random(SEED);
        byte[][] files = {encode(8, 8, 3, false), encode(9, 8, 1, true)};
        try (var mutations = new Mutations("JPEG", SEED, MalformedFileException.class).allocating(1 << 15, 1 << 22)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] bytes = mutate(files[i % 2], random);
                mutations.feed(bytes, NAME + ": ", () -> {
                    PixelSize size = Jpeg.size(NAME, bytes);
                    return assertThat(read(bytes)).hasSize(size.cols() * size.rows() * size.channels());
                });
            }
            mutations.end(0.05, 0.9);
        }
    }

    // ---- tools

    static byte[] mutate(byte[] original, Random random) {
        byte[] bytes = original.clone();
        for (int changes = 1 + random.nextInt(3); changes > 0; changes--) {
            int at = random.nextInt(Math.max(bytes.length, 1));
            if (bytes.length == 0 || random.nextInt(6) == 0) {
                bytes = Arrays.copyOf(bytes, at + random.nextInt(9));
            } else {
                bytes[at] = (byte) random.nextInt(256);
            }
        }
        return bytes;
    }

    /** Where the marker of the frame is. */
    private static int frame(byte[] file) {
        for (int i = 2; ; i++) {
            if (file[i] == -1 && (file[i + 1] & 0xff) >= 0xc0 && (file[i + 1] & 0xff) <= 0xc2) {
                return i;
            }
        }
    }

    private static byte[] changed(int at, int value) {
        byte[] file = encode(8, 8, 1, false);
        file[frame(file) + at] = (byte) value;
        return file;
    }

    private static byte[] segment(int marker, byte[] data) {
        var bytes = new ByteArrayOutputStream();
        bytes.write(0xff);
        bytes.write(marker);
        bytes.write((data.length + 2) >> 8);
        bytes.write(data.length + 2);
        bytes.writeBytes(data);
        return bytes.toByteArray();
    }

    /** Before the first segment. */
    private static byte[] insert(byte[] file, byte[] segment) {
        var bytes = new ByteArrayOutputStream();
        bytes.write(file, 0, 2);
        bytes.writeBytes(segment);
        bytes.write(file, 2, file.length - 2);
        return bytes.toByteArray();
    }

    private static void refused(byte[] file, String words) {
        assertThatThrownBy(() -> read(file))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(NAME + ": ")
                .hasMessageContaining(words)
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }
}
