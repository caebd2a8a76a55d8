package org.fedcomuon.data;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.zip.GZIPOutputStream;

/** Files in MNIST's format, but of a few images only. */
final class SmallMnist {
    private SmallMnist() {}

    /** The content of the four files, in the order of {@link Mnist#FILES}. */
    static List<byte[]> files(int train, int test, long seed) {
        return List.of(images(train, seed), labels(train), images(test, seed + 1), labels(test));
    }

    static byte[] images(int count, long seed) {
        var pixels = new byte[count * 28 * 28];
        new Random(seed).nextBytes(pixels);
        return ByteBuffer.allocate(16 + pixels.length)
                .putInt(0x803)
                .putInt(count)
                .putInt(28)
                .putInt(28)
                .put(pixels)
                .array();
    }

    /** 0, 1, 2, ..., 9, 0, 1, ... */
    static byte[] labels(int count) {
        ByteBuffer buffer = ByteBuffer.allocate(8 + count).putInt(0x801).putInt(count);
        for (int i = 0; i < count; i++) {
            buffer.put((byte) (i % 10));
        }
        return buffer.array();
    }

    static void write(Path directory, List<byte[]> files) throws IOException {
        Files.createDirectories(directory);
        for (int i = 0; i < files.size(); i++) {
            Files.write(directory.resolve(Mnist.FILES.get(i)), files.get(i));
        }
    }

    static MnistDownload.Expected expected(List<byte[]> files) {
        var all = new ByteArrayOutputStream();
        files.forEach(all::writeBytes);
        return new MnistDownload.Expected(files.stream().map(SmallMnist::sha256).toList(), sha256(all.toByteArray()));
    }

    static String sha256(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }

    static byte[] gzip(byte[] content) {
        var bytes = new ByteArrayOutputStream();
        try (var out = new GZIPOutputStream(bytes)) {
            out.write(content);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        return bytes.toByteArray();
    }

    /** A package as npm makes it. */
    static Path pack(Path archive, List<byte[]> files) throws IOException {
        try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(archive))) {
            entry(out, "package/package.json", "{}".getBytes(StandardCharsets.UTF_8));
            for (int i = 0; i < files.size(); i++) {
                entry(out, "package/data/" + Mnist.FILES.get(i), files.get(i));
            }
            out.write(new byte[1024]);
        }
        return archive;
    }

    static void entry(OutputStream out, String name, byte[] content) throws IOException {
        var header = new byte[512];
        put(header, 0, name);
        put(header, 124, "%011o".formatted(content.length));
        Arrays.fill(header, 148, 156, (byte) ' ');
        put(header, 156, "0");
        put(header, 257, "ustar");
        int sum = 0;
        for (byte b : header) {
            sum += Byte.toUnsignedInt(b);
        }
        put(header, 148, "%06o\0".formatted(sum));
        out.write(header);
        out.write(content);
        out.write(new byte[-content.length & 511]);
    }

    private static void put(byte[] header, int at, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(bytes, 0, header, at, bytes.length);
    }

    /** How often each label occurs. */
    static int[] histogram(ExampleSet set) {
        var histogram = new int[set.classes()];
        for (int i = 0; i < set.count(); i++) {
            histogram[set.label(i)]++;
        }
        return histogram;
    }
}
