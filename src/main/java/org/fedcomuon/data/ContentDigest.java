package org.fedcomuon.data;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import org.fedcomuon.format.IdxArray;

/** The SHA-256 of files one after the other, without their compression: what {@code cat} and {@code sha256sum} say. */
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
