package org.fedcomuon.device;

import java.util.Objects;

/**
 * One operand of all clients of a device: client k's {@code length} elements start at {@code offset + k * stride} of
 * {@code buffer}. The buffer's bounds are checked here, once, so that an operation need not. A stride of 0 gives every
 * client the same values; only an operand that is read may have it.
 *
 * <p>Immutable, except for the elements, which are the buffer's.
 *
 * @param buffer where the elements are
 * @param offset of client 0, in elements
 * @param clients the number of clients
 * @param length elements per client
 * @param stride elements from one client's start to the next one's
 */
public record Batch(Buffer buffer, long offset, long clients, long length, long stride) {
    public Batch {
        if (offset < 0 || clients < 0 || length < 0 || stride < 0) {
            throw new DeviceException.InvalidOperand(
                    "%s: offset %d, clients %d, length %d and stride %d must not be negative"
                            .formatted(buffer.label(), offset, clients, length, stride));
        }
        if (clients > 0 && length > 0) {
            long end;
            try {
                end = Math.addExact(offset, Math.addExact(Math.multiplyExact(clients - 1, stride), length));
            } catch (ArithmeticException e) {
                end = Long.MAX_VALUE;
            }
            if (end > buffer.length()) {
                throw new DeviceException.InvalidOperand(
                        "%s: %d clients of %d elements, %d apart from %d, do not fit its %d elements"
                                .formatted(buffer.label(), clients, length, stride, offset, buffer.length()));
            }
        }
    }

    /** Returns a part of the elements of the same clients. */
    public Batch slice(long from, long newLength) {
        Objects.checkFromIndexSize(from, newLength, length);
        return new Batch(buffer, offset + from, clients, newLength, stride);
    }

    /** Returns one of the clients. */
    public Batch client(long k) {
        return neighbours(k, 1);
    }

    /** Returns {@code count} adjacent clients. */
    public Batch neighbours(long first, long count) {
        Objects.checkFromIndexSize(first, count, clients);
        return new Batch(buffer, offset + first * stride, count, length, stride);
    }
}
