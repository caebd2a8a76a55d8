package org.fedcomuon.data;

import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** The SHA-256 of the concatenated, uncompressed content of files, as {@code zcat | sha256sum} prints it. */
final class ContentDigest {
    private static final long CHUNK = 1 << 24;

    private final MessageDigest digest;

    ContentDigest() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JDK has SHA-256", e);
        }
    }

    void update(IdxArray file) {
        digest.update(file.header());
        digest.update(file.data().asByteBuffer());
    }

    void update(byte[] bytes, int count) {
        digest.update(bytes, 0, count);
    }

    void update(String text) {
        digest.update(text.getBytes(StandardCharsets.UTF_8));
    }

    /** Adds memory that may be larger than any array. */
    void update(MemorySegment bytes) {
        for (long at = 0; at < bytes.byteSize(); at += CHUNK) {
            digest.update(
                    bytes.asSlice(at, Math.min(CHUNK, bytes.byteSize() - at)).asByteBuffer());
        }
    }

    /** Returns a stream of which everything that is read is added. */
    InputStream reading(InputStream in) {
        return new DigestInputStream(in, digest);
    }

    String hex() {
        return HexFormat.of().formatHex(digest.digest());
    }
}
