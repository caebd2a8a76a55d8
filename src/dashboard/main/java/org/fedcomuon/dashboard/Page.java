package org.fedcomuon.dashboard;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import org.fedcomuon.chart.Markup;

/**
 * The document that browsers load, with its style sheet and its script in it.
 *
 * @param template the document, with places for the title and the state of the run
 * @param policy for {@code Content-Security-Policy}: only this style sheet and this script, and connections only to the
 *     origin of the page
 */
record Page(String template, String policy) {
    static Page load() {
        String style = Markup.style() + Markup.resource(Page.class, "page.css");
        String script = Markup.resource(Page.class, "page.js");
        String template = Markup.resource(Page.class, "page.html")
                .replace("/*style*/", style)
                .replace("/*script*/", script);
        return new Page(
                template,
                ("default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; img-src data:; base-uri 'none';"
                                + " form-action 'none'; frame-ancestors 'none'")
                        .formatted(hash(style), hash(script)));
    }

    /** The document as it is shown until the first event has arrived. */
    byte[] html(String title, State state) {
        return template.replace("/*state*/", state.word())
                .replace("/*label*/", state.label())
                .replace("/*waiting*/", state == State.WAITING ? "" : "hidden")
                .replace("/*title*/", Markup.escape(title.isEmpty() ? "fedcomuon" : title))
                .getBytes(StandardCharsets.UTF_8);
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
