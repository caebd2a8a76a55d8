package org.fedcomuon.data;

import java.awt.image.BufferedImage;
import java.awt.image.Raster;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Optional;
import javax.imageio.ImageIO;
import javax.imageio.ImageReader;
import javax.imageio.stream.MemoryCacheImageInputStream;
import org.fedcomuon.file.MalformedFileException;
import org.jspecify.annotations.Nullable;

/**
 * Reads JPEG files of 8 bits, grey or in colours, baseline or progressive, with the decoder of the JDK.
 *
 * <p>Files are not trusted. The header is parsed here, before the decoder sees it, and only what it needs is passed on:
 * no colour profile, which would change colours, no preview, no comment. A size that the file cannot hold is refused
 * before memory is allocated for it, and so is a file about which the decoder has any warning, such as one that is cut
 * off. The orientation that a camera notes is ignored, as other libraries do.
 *
 * <p>Not thread-safe.
 */
final class Jpeg implements AutoCloseable {
    /** A block of 64 values takes a bit at least; with subsampled colours 3072 values take 18 bits. */
    private static final long RATIO = 2048;

    private static final int START = 0xd8;
    private static final int END = 0xd9;
    private static final int SCAN = 0xda;
    private static final int COMMENT = 0xfe;
    private static final int FIRST_APPLICATION = 0xe0;
    private static final int ADOBE = 0xee;
    private static final int LAST_APPLICATION = 0xef;

    private @Nullable ImageReader decoder;

    /** Returns whether a file begins as a JPEG file does. */
    static boolean isJpeg(byte[] content) {
        return content.length > 2 && content[0] == -1 && content[1] == (byte) START && content[2] == -1;
    }

    /**
     * Reads the size from the header of a file.
     *
     * @throws MalformedFileException when it is not such a JPEG file
     */
    static PixelSize size(Path name, byte[] content) throws MalformedFileException {
        return new Header(name, content).size;
    }

    /**
     * Reads an image.
     *
     * @return the samples in the order channels, rows, columns
     * @throws MalformedFileException when it is damaged or not such a JPEG file
     */
    byte[] read(Path name, byte[] content) throws MalformedFileException {
        var header = new Header(name, content);
        Raster raster = decode(name, header);
        int cols = header.size.cols();
        int rows = header.size.rows();
        int channels = header.size.channels();
        if (raster.getWidth() != cols || raster.getHeight() != rows || raster.getNumBands() != channels) {
            throw new MalformedFileException(name, "damaged: the image has another size than its header says");
        }
        var samples = new byte[cols * rows * channels];
        var row = new int[cols];
        int at = 0;
        for (int channel = 0; channel < channels; channel++) {
            for (int y = 0; y < rows; y++) {
                for (int sample : raster.getSamples(0, y, cols, 1, channel, row)) {
                    samples[at++] = (byte) sample;
                }
            }
        }
        return samples;
    }

    private Raster decode(Path name, Header header) throws MalformedFileException {
        ImageReader reader = decoder();
        var warnings = new StringBuilder();
        try (var in = new MemoryCacheImageInputStream(new ByteArrayInputStream(header.needed()))) {
            reader.addIIOReadWarningListener((_, warning) -> warnings.append(warnings.isEmpty() ? warning : ""));
            reader.setInput(in, true, true);
            BufferedImage image = reader.read(0);
            if (!warnings.isEmpty()) {
                throw damaged(name, warnings.toString(), null);
            }
            return image.getRaster();
        } catch (MalformedFileException e) {
            throw e;
        } catch (IOException | RuntimeException e) { // the decoder throws many kinds
            throw damaged(name, "" + e.getMessage(), e);
        } finally {
            reader.reset(); // forgets the listener and the input
        }
    }

    private static MalformedFileException damaged(Path name, String what, @Nullable Exception cause) {
        String problem = "the JPEG data is damaged (%s); copy it or save it again".formatted(what);
        return cause == null
                ? new MalformedFileException(name, problem)
                : new MalformedFileException(name, problem, cause);
    }

    /** Returns the JDK's own decoder, whose results are those of every JDK; others may be on the class path. */
    private ImageReader decoder() {
        ImageReader known = decoder;
        if (known == null) {
            Iterator<ImageReader> all = ImageIO.getImageReadersByFormatName("jpeg");
            while (known == null) {
                ImageReader each = all.next();
                known = each.getClass().getModule() == ImageIO.class.getModule() ? each : null;
            }
            decoder = known;
        }
        return known;
    }

    @Override
    public void close() {
        if (decoder != null) {
            decoder.dispose();
        }
    }

    /** The segments before the image data. */
    private static final class Header {
        private final Path name;
        private final byte[] content;
        private final ByteArrayOutputStream kept = new ByteArrayOutputStream();
        private final int data;
        final PixelSize size;

        Header(Path name, byte[] content) throws MalformedFileException {
            this.name = name;
            this.content = content;
            if (!isJpeg(content)) {
                throw refused("not a JPEG file, which starts with the bytes ff d8 ff");
            }
            kept.write(content, 0, 2);
            Optional<PixelSize> found = Optional.empty();
            int at = 2;
            int marker = marker(at);
            while (marker != SCAN) {
                int from = start(at);
                int length = unsigned(from + 1, 2);
                int end = from + 1 + length;
                if (length < 2 || end > content.length) {
                    throw truncated();
                }
                if (isFrame(marker)) {
                    if (found.isPresent()) {
                        throw refused("two images in one; one is needed");
                    }
                    found = Optional.of(frame(marker, from + 3, end));
                }
                if (isNeeded(marker, from + 3, end)) {
                    kept.write(0xff);
                    kept.write(content, from, end - from);
                }
                at = end;
                marker = marker(at);
            }
            data = at;
            size = found.orElseThrow(() -> refused("the image data come before the size of the image"));
            long bytes = (long) size.cols() * size.rows() * size.channels();
            if (bytes > RATIO * content.length) {
                throw refused("%d x %d pixels need %d bytes; a file of %d bytes cannot hold them"
                        .formatted(size.cols(), size.rows(), bytes, content.length));
            }
        }

        /** Returns the file without the segments that are not needed. */
        byte[] needed() {
            var all = new ByteArrayOutputStream(content.length);
            all.writeBytes(kept.toByteArray());
            all.write(content, data, content.length - data);
            return all.toByteArray();
        }

        /** Returns where the code of a marker is: any number of ff may precede it. */
        private int start(int at) throws MalformedFileException {
            int from = at;
            if (unsigned(from, 1) != 0xff) {
                throw refused("the JPEG data is damaged at byte %d; copy it or save it again".formatted(at));
            }
            while (unsigned(from, 1) == 0xff) {
                from++;
            }
            return from;
        }

        private int marker(int at) throws MalformedFileException {
            int marker = unsigned(start(at), 1);
            if (marker < 0xc0 || (marker >= 0xd0 && marker <= END)) { // those without a segment
                throw refused("the JPEG data is damaged at byte %d; copy it or save it again".formatted(at));
            }
            return marker;
        }

        private static boolean isFrame(int marker) {
            return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
        }

        private PixelSize frame(int marker, int from, int end) throws MalformedFileException {
            if (marker > 0xc2) {
                throw refused("a kind of JPEG, ff %02x, that is not supported; baseline and progressive are"
                        .formatted(marker));
            }
            if (end - from < 6) {
                throw truncated();
            }
            int depth = unsigned(from, 1);
            int rows = unsigned(from + 1, 2);
            int cols = unsigned(from + 3, 2);
            int channels = unsigned(from + 5, 1);
            if (depth != 8 || (channels != 1 && channels != 3)) {
                throw refused("%d channels of %d bits are not supported; grey and RGB of 8 bits are"
                        .formatted(channels, depth));
            }
            if (rows < 1 || cols < 1) {
                throw refused("%d x %d pixels; from 1 to 65535 are possible each way".formatted(cols, rows));
            }
            return new PixelSize(cols, rows, channels);
        }

        /** Returns whether the decoder needs a segment: of applications, those that say what the colours are. */
        private boolean isNeeded(int marker, int from, int end) {
            if (marker == COMMENT) {
                return false;
            }
            if (marker < FIRST_APPLICATION || marker > LAST_APPLICATION) {
                return true;
            }
            byte[] tag = (marker == FIRST_APPLICATION ? "JFIF\0" : "Adobe").getBytes(StandardCharsets.US_ASCII);
            return (marker == FIRST_APPLICATION || marker == ADOBE)
                    && end - from >= tag.length
                    && Arrays.equals(content, from, from + tag.length, tag, 0, tag.length);
        }

        private int unsigned(int at, int bytes) throws MalformedFileException {
            if (at + bytes > content.length) {
                throw truncated();
            }
            int value = 0;
            for (int i = at; i < at + bytes; i++) {
                value = value << 8 | Byte.toUnsignedInt(content[i]);
            }
            return value;
        }

        private MalformedFileException truncated() {
            return refused("truncated: it ends too early; copy or fetch it again");
        }

        private MalformedFileException refused(String problem) {
            return new MalformedFileException(name, problem);
        }
    }
}
