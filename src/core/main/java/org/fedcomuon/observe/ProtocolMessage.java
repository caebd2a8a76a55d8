package org.fedcomuon.observe;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/**
 * A message in the encoding of Protocol Buffers, field by field: as much of it as event files need, without a library.
 * Fields have their numbers from the definitions of TensorFlow.
 *
 * <p>Not thread-safe.
 */
final class ProtocolMessage {
    private static final int VARINT = 0;
    private static final int EIGHT_BYTES = 1;
    private static final int LENGTH_FIRST = 2;
    private static final int FOUR_BYTES = 5;
    private static final int BITS_PER_BYTE = 7;
    private static final int MORE = 0x80;

    private final ByteArrayOutputStream encoded = new ByteArrayOutputStream();

    /** Appends an integer or a value of an enum; readers take a field that is missing for 0. */
    ProtocolMessage integer(int field, long value) {
        if (value != 0) {
            tag(field, VARINT);
            varint(value);
        }
        return this;
    }

    ProtocolMessage float64(int field, double value) {
        tag(field, EIGHT_BYTES);
        littleEndian(Double.doubleToLongBits(value), Double.BYTES);
        return this;
    }

    ProtocolMessage float32(int field, float value) {
        tag(field, FOUR_BYTES);
        littleEndian(Float.floatToIntBits(value), Float.BYTES);
        return this;
    }

    ProtocolMessage text(int field, String value) {
        return bytes(field, value.getBytes(StandardCharsets.UTF_8));
    }

    ProtocolMessage message(int field, ProtocolMessage value) {
        return bytes(field, value.encoded());
    }

    private ProtocolMessage bytes(int field, byte[] value) {
        tag(field, LENGTH_FIRST);
        varint(value.length);
        encoded.writeBytes(value);
        return this;
    }

    private void tag(int field, int kind) {
        varint(((long) field << 3) | kind);
    }

    private void varint(long value) {
        long rest = value;
        while (rest >>> BITS_PER_BYTE != 0) {
            encoded.write((int) rest | MORE);
            rest >>>= BITS_PER_BYTE;
        }
        encoded.write((int) rest);
    }

    private void littleEndian(long bits, int length) {
        for (int i = 0; i < length; i++) {
            encoded.write((int) (bits >>> (i * Byte.SIZE)));
        }
    }

    byte[] encoded() {
        return encoded.toByteArray();
    }
}
