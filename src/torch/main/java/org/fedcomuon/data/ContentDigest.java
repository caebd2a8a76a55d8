package org.fedcomuon.data;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** The SHA-256 of the concatenated, uncompressed content of files, as {@code zcat | sha256sum} prints it. */
final class ContentDigest {
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

    String hex() {
        return HexFormat.of().formatHex(digest.digest());
    }
}
