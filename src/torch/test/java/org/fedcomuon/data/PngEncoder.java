package org.fedcomuon.data;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/** Writes PNG files, right ones and wrong ones, by the words of the specification: for clarity, not for speed. */
public final class PngEncoder {
    private static final byte[] SIGNATURE = {(byte) 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

    private PngEncoder() {}

    /** An image of 8 bits, its rows filtered by {@code filters} in turn, in data chunks of {@code piece} bytes. */
    public static byte[] encode(byte[][] rows, int channels, int piece, int... filters) {
        int color = switch (channels) {
            case 1 -> 0;
            case 2 -> 4;
            case 3 -> 2;
            default -> 6;
        };
        byte[] header = header(rows[0].length / channels, rows.length, 8, color, 0);
        return file(header, deflate(filtered(rows, channels, filters)), piece);
    }

    /** An image of numbers in {@code rows}, packed to {@code depth} bits: colours of a palette, or grey without one. */
    static byte[] packed(int[][] rows, int depth, byte... palette) {
        var bytes = new byte[rows.length][(rows[0].length * depth + 7) / 8];
        for (int y = 0; y < rows.length; y++) {
            var bits = new StringBuilder();
            for (int value : rows[y]) {
                bits.append(Integer.toBinaryString(1 << depth | value).substring(1));
            }
            bits.append("0".repeat(-bits.length() & 7));
            for (int i = 0; i < bytes[y].length; i++) {
                bytes[y][i] = (byte) Integer.parseInt(bits.substring(8 * i, 8 * i + 8), 2);
            }
        }
        byte[] header = header(rows[0].length, rows.length, depth, palette.length == 0 ? 0 : 3, 0);
        byte[] file = file(header, deflate(filtered(bytes, 1, 0, 1, 2, 3, 4)), 1000);
        if (palette.length == 0) {
            return file;
        }
        byte[] chunk = chunk("PLTE", palette);
        return ByteBuffer.allocate(file.length + chunk.length)
                .put(file, 0, 33)
                .put(chunk)
                .put(file, 33, file.length - 33)
                .array();
    }

    static byte[] header(int cols, int rows, int depth, int color, int interlace) {
        return ByteBuffer.allocate(13)
                .putInt(cols)
                .putInt(rows)
                .put((byte) depth)
                .put((byte) color)
                .put((byte) 0)
                .put((byte) 0)
                .put((byte) interlace)
                .array();
    }

    static byte[] file(byte[] header, byte[] stream, int piece) {
        var file = new ByteArrayOutputStream();
        file.writeBytes(SIGNATURE);
        file.writeBytes(chunk("IHDR", header));
        for (int at = 0; at < stream.length; at += piece) {
            file.writeBytes(chunk("IDAT", Arrays.copyOfRange(stream, at, Math.min(stream.length, at + piece))));
        }
        file.writeBytes(chunk("IEND"));
        return file.toByteArray();
    }

    static byte[] chunk(String type, byte... data) {
        byte[] body = ByteBuffer.allocate(4 + data.length)
                .put(type.getBytes(StandardCharsets.ISO_8859_1))
                .put(data)
                .array();
        var checksum = new CRC32();
        checksum.update(body);
        return ByteBuffer.allocate(8 + body.length)
                .putInt(data.length)
                .put(body)
                .putInt((int) checksum.getValue())
                .array();
    }

    static byte[] filtered(byte[][] rows, int channels, int... filters) {
        var bytes = new ByteArrayOutputStream();
        for (int y = 0; y < rows.length; y++) {
            int filter = filters[y % filters.length];
            bytes.write(filter);
            for (int x = 0; x < rows[y].length; x++) {
                int left = at(rows, y, x - channels);
                int above = at(rows, y - 1, x);
                int corner = at(rows, y - 1, x - channels);
                int guess = switch (filter) {
                    case 1 -> left;
                    case 2 -> above;
                    case 3 -> Math.floorDiv(left + above, 2);
                    case 4 -> paeth(left, above, corner);
                    default -> 0;
                };
                bytes.write(at(rows, y, x) - guess);
            }
        }
        return bytes.toByteArray();
    }

    private static int at(byte[][] rows, int y, int x) {
        return y < 0 || x < 0 ? 0 : rows[y][x] & 0xff;
    }

    /** As the specification has it, line by line. */
    private static int paeth(int a, int b, int c) {
        int p = a + b - c;
        int pa = Math.abs(p - a);
        int pb = Math.abs(p - b);
        int pc = Math.abs(p - c);
        if (pa <= pb && pa <= pc) {
            return a;
        } else if (pb <= pc) {
            return b;
        } else {
            return c;
        }
    }

    static byte[] deflate(byte[] bytes) {
        try (var deflater = new Deflater()) {
            deflater.setInput(bytes);
            deflater.finish();
            var out = new ByteArrayOutputStream();
            var buffer = new byte[1 << 12];
            while (!deflater.finished()) {
                out.write(buffer, 0, deflater.deflate(buffer));
            }
            return out.toByteArray();
        }
    }
}
