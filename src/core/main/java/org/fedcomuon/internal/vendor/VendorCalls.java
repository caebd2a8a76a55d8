package org.fedcomuon.internal.vendor;

import java.lang.foreign.MemorySegment;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Downcalls to vendors' libraries. */
public final class VendorCalls {
    static final Logger LOG = LoggerFactory.getLogger(VendorCalls.class);

    private VendorCalls() {}

    /** A downcall that returns a status. */
    @FunctionalInterface
    public interface Call {
        /** Makes the call. */
        int make() throws Throwable;
    }

    /** A downcall that returns a pointer. */
    @FunctionalInterface
    public interface Query {
        /** Makes the call. */
        MemorySegment make() throws Throwable;
    }

    /** Makes a call and returns its status. */
    public static int of(Call call) {
        try {
            return call.make();
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }

    /** Returns a string that the library owns. */
    static String words(Query query) {
        try {
            MemorySegment text = query.make();
            return text.equals(MemorySegment.NULL)
                    ? ""
                    : text.reinterpret(Long.MAX_VALUE).getString(0);
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a downcall throws nothing checked", e);
        }
    }
}
