package org.fedcomuon.federation;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** The hash that identifies weights and runs. */
final class Sha256 {
    private Sha256() {}

    /** Returns the hash of the bytes of these numbers. */
    static String of(double[] values) {
        return of(MemorySegment.ofArray(MemorySegment.ofArray(values).toArray(ValueLayout.JAVA_BYTE)));
    }

    /** Returns the hash in hexadecimal. */
    static String of(MemorySegment bytes) {
        MessageDigest digest;
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every Java has SHA-256", e);
        }
        long most = 1 << 26; // a ByteBuffer ends at 2 GiB
        for (long at = 0; at < bytes.byteSize(); at += most) {
            digest.update(
                    bytes.asSlice(at, Math.min(most, bytes.byteSize() - at)).asByteBuffer());
        }
        return HexFormat.of().formatHex(digest.digest());
    }
}
