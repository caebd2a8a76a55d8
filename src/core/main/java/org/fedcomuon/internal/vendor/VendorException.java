package org.fedcomuon.internal.vendor;

/** A vendor's library cannot be used. The package {@code device} turns it into a {@code DeviceException}. */
public abstract sealed class VendorException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private VendorException(String message) {
        super(message);
    }

    /** The library, or the binding it is called through, is not installed or has an unsuitable version. */
    public static final class LibraryMissing extends VendorException {
        private static final long serialVersionUID = 1L;

        LibraryMissing(String reason) {
            super(reason);
        }
    }

    /** The binding that a system property asks for does not exist. */
    public static final class UnknownBinding extends VendorException {
        private static final long serialVersionUID = 1L;

        UnknownBinding(String message) {
            super(message);
        }
    }

    /** The library is there, but a call that sets it up returned an error status. */
    public static final class Refused extends VendorException {
        private static final long serialVersionUID = 1L;

        private final CudaLinker.Vendor vendor;
        private final String function;
        private final int status;
        private final String words;

        Refused(CudaLinker.Vendor vendor, String function, int status, String words) {
            super("%s of %s returned %d".formatted(function, vendor.title(), status));
            this.vendor = vendor;
            this.function = function;
            this.status = status;
            this.words = words;
        }

        /** Returns the library. */
        public CudaLinker.Vendor vendor() {
            return vendor;
        }

        /** Returns the function that was called. */
        public String function() {
            return function;
        }

        /** Returns what the function returned. */
        public int status() {
            return status;
        }

        /** Returns the library's description of the status, or an empty string if it has none. */
        public String words() {
            return words;
        }
    }
}
