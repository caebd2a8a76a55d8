package org.fedcomuon.device;

import java.util.OptionalLong;

/**
 * A failure of a device. The subclasses name the cause: the caller's arguments ({@link InvalidOperand}), the data
 * ({@link NotFinite}), the machine ({@link OutOfMemory}, {@link Fault}), or the way the program was started
 * ({@link LibraryMissing}, {@link Unavailable}).
 */
public abstract sealed class DeviceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private DeviceException(String message) {
        super(message);
    }

    /** The native library is missing, is a foreign library, or has another ABI version. */
    public static final class LibraryMissing extends DeviceException {
        private static final long serialVersionUID = 1L;

        LibraryMissing(String message) {
            super(message);
        }
    }

    /** No device has this name, or it cannot be used here, for the reason in the message. */
    public static final class Unavailable extends DeviceException {
        private static final long serialVersionUID = 1L;

        Unavailable(String message) {
            super(message);
        }
    }

    /** An operand that does not fit the operation: a size, a stride, an overlap. Nothing has been written. */
    public static final class InvalidOperand extends DeviceException {
        private static final long serialVersionUID = 1L;

        /** Creates one whose {@code message} names the operand and what is wrong with it. */
        public InvalidOperand(String message) {
            super(message);
        }
    }

    /** The device has not enough memory. */
    public static final class OutOfMemory extends DeviceException {
        private static final long serialVersionUID = 1L;

        OutOfMemory(String message) {
            super(message);
        }
    }

    /** The device, the operating system or the library itself failed. */
    public static final class Fault extends DeviceException {
        private static final long serialVersionUID = 1L;

        /** Whether it was another device that failed. */
        private final boolean elsewhere;

        Fault(String message) {
            this(message, false);
        }

        Fault(String message, boolean elsewhere) {
            super(message);
            this.elsewhere = elsewhere;
        }

        /** Returns whether another device failed in a common operation, and this one only noticed. */
        public boolean isElsewhere() {
            return elsewhere;
        }
    }

    /** The operation is valid, but not supported on this device. */
    public static final class Unsupported extends DeviceException {
        private static final long serialVersionUID = 1L;

        Unsupported(String message) {
            super(message);
        }
    }

    /**
     * NaN or infinity where a number is needed. The operation that found it has written nothing. On a GPU it is thrown
     * by a later call, the first that waits for the device, and operations in between have written nothing either.
     */
    public static final class NotFinite extends DeviceException {
        private static final long serialVersionUID = 1L;

        /** The position at which it was found. */
        private final transient Device.Position position;

        private final long address; // of the element, 0 where it does not apply
        private final long mark; // -1 for the operation that throws it

        /** Creates one that names the {@code position}. */
        public NotFinite(String message, Device.Position position) {
            this(message, position, 0, -1);
        }

        NotFinite(String message, Device.Position position, long address, long mark) {
            super(message);
            this.position = position;
            this.address = address;
            this.mark = mark;
        }

        /**
         * Returns the element of {@code buffer} that is meant, counted from the beginning of the buffer; empty if it is
         * not in this buffer.
         */
        public OptionalLong elementOf(Buffer buffer) {
            long bytes = address - buffer.address();
            int element = buffer.type().bytes();
            return address != 0 && bytes >= 0 && bytes < buffer.length() * element
                    ? OptionalLong.of(bytes / element)
                    : OptionalLong.empty();
        }

        /**
         * Returns the {@linkplain Device#mark mark} of the operation that found it, if that is not the operation that
         * throws this.
         */
        public OptionalLong mark() {
            return mark < 0 ? OptionalLong.empty() : OptionalLong.of(mark);
        }

        /** Returns the client, block and index; -1 where they do not apply. */
        public Device.Position position() {
            return position;
        }
    }
}
