package org.fedcomuon.dashboard;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.Objects;

/**
 * The document that browsers load: one, with its style and its script in it.
 *
 * @param html the document
 * @param policy for {@code Content-Security-Policy}: nothing but this style and this script, and no connection but to
 *     where the page came from
 */
record Page(String html, String policy) {
    static Page load() {
        String style = resource("page.css");
        String script = resource("page.js");
        String html = resource("page.html").replace("/*style*/", style).replace("/*script*/", script);
        return new Page(
                html,
                ("default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; img-src data:; base-uri 'none';"
                                + " form-action 'none'; frame-ancestors 'none'")
                        .formatted(hash(style), hash(script)));
    }

    private static String resource(String name) {
        try (InputStream in = Objects.requireNonNull(Page.class.getResourceAsStream(name), name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String hash(String text) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return "sha256-" + Base64.getEncoder().encodeToString(digest);
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }
}
