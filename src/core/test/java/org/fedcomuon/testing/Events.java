package org.fedcomuon.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** A browser's side of server-sent events, in blocking calls. */
public final class Events implements AutoCloseable {
    private static final int PATIENCE_MILLIS = 20_000;

    /** One event; the data are JSON. */
    @SuppressWarnings("exports") // only tests see it
    public record Message(String id, String name, JsonNode data) {}

    private final HttpURLConnection connection;
    private final BufferedReader reader;

    private Events(HttpURLConnection connection) throws IOException {
        this.connection = connection;
        this.reader = new BufferedReader(new InputStreamReader(connection.getInputStream(), StandardCharsets.UTF_8));
    }

    /** Listens; {@code last} is the id of the last event heard, or empty. */
    public static Events open(URI page, String last) throws IOException {
        var connection = (HttpURLConnection) page.resolve("events").toURL().openConnection();
        connection.setReadTimeout(PATIENCE_MILLIS);
        if (!last.isEmpty()) {
            connection.setRequestProperty("Last-Event-ID", last);
        }
        return new Events(connection);
    }

    /** Waits for the next one; the name is empty at the end. */
    public Message next() throws IOException {
        String id = "";
        String name = "";
        String data = "";
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            if (line.startsWith("id: ")) {
                id = line.substring("id: ".length());
            } else if (line.startsWith("event: ")) {
                name = line.substring("event: ".length());
            } else if (line.startsWith("data: ")) {
                data = line.substring("data: ".length());
            } else if (line.isEmpty() && !name.isEmpty()) {
                return new Message(id, name, JsonMapper.shared().readTree(data));
            }
        }
        return new Message("", "", JsonMapper.shared().createObjectNode());
    }

    @Override
    public void close() {
        connection.disconnect();
    }
}
