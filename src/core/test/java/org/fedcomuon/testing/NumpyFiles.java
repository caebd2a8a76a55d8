package org.fedcomuon.testing;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/** Files as NumPy writes them. */
public final class NumpyFiles {
    private NumpyFiles() {}

    /** An NPY file with the given values in the order in which they are given. */
    public static byte[] npy(String descr, boolean fortran, String shape, double... values) {
        int bytes = descr.charAt(2) - '0';
        ByteBuffer data = ByteBuffer.allocate(bytes * values.length).order(ByteOrder.LITTLE_ENDIAN);
        for (double value : values) {
            switch (descr) {
                case "<f4" -> data.putFloat((float) value);
                case "<f8" -> data.putDouble(value);
                case "<f2" -> data.putShort(Float.floatToFloat16((float) value));
                case "<i8", "<u8" -> data.putLong((long) value);
                case "<i4", "<u4" -> data.putInt((int) (long) value);
                case "<i2", "<u2" -> data.putShort((short) value);
                default -> data.put((byte) (int) value);
            }
        }
        String text = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }"
                .formatted(descr, fortran ? "True" : "False", shape);
        byte[] header = (text + " ".repeat(117 - text.length()) + "\n").getBytes(StandardCharsets.US_ASCII);
        return ByteBuffer.allocate(10 + header.length + data.capacity())
                .order(ByteOrder.LITTLE_ENDIAN)
                .put((byte) 0x93)
                .put("NUMPY\1\0".getBytes(StandardCharsets.US_ASCII))
                .putShort((short) header.length)
                .put(header)
                .put(data.array())
                .array();
    }

    /** Writes an NPZ archive as {@code numpy.savez_compressed} does. */
    public static Path npz(Path file, Map<String, byte[]> arrays) throws IOException {
        try (var zip = new ZipOutputStream(Files.newOutputStream(file))) {
            for (Map.Entry<String, byte[]> array : arrays.entrySet()) {
                zip.putNextEntry(new ZipEntry(array.getKey() + ".npy"));
                zip.write(array.getValue());
            }
        }
        return file;
    }
}
