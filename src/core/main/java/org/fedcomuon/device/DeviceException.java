package org.fedcomuon.device;

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

    /** NaN or infinity where a number is needed. */
    public static final class NotFinite extends DeviceException {
        private static final long serialVersionUID = 1L;

        /** The position at which it was found. */
        private final transient Device.Position position;

        /** Creates one that names the {@code position}. */
        public NotFinite(String message, Device.Position position) {
            super(message);
            this.position = position;
        }

        /** Returns the client, block and index; -1 where they do not apply. */
        public Device.Position position() {
            return position;
        }
    }
}
