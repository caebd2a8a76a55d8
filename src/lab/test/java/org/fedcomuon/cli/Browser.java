package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** A headless Chromium, driven as WebDriver says: JSON over HTTP, which needs no library. */
final class Browser implements AutoCloseable {
    private static final Pattern PORT = Pattern.compile("started successfully on port (\\d+)");
    private static final int PATIENCE_MILLIS = 60_000;

    private final Process driver;
    private final URI session;

    /**
     * Starts one, or skips the test where there is none.
     *
     * @param log what the driver says
     */
    Browser(Path log) throws Exception {
        assumeTrue(
                isInstalled("chromedriver") && isInstalled("chromium"),
                "no browser: install the Debian packages chromium and chromium-driver");
        driver = new ProcessBuilder("chromedriver", "--port=0")
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        URI root = URI.create("http://127.0.0.1:%d/".formatted(port(log)));
        var arguments = new ArrayList<>(List.of(
                "--headless=new",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--window-size=1280,900"));
        if (System.getProperty("user.name").equals("root")) {
            arguments.add("--no-sandbox"); // which root may not use
        }
        JsonNode made = call(
                "POST",
                root.resolve("session"),
                Map.of(
                        "capabilities",
                        Map.of(
                                "alwaysMatch",
                                Map.of(
                                        "browserName",
                                        "chrome",
                                        "goog:loggingPrefs",
                                        Map.of("browser", "ALL"),
                                        "goog:chromeOptions",
                                        Map.of("args", arguments)))));
        session = root.resolve("session/" + made.get("sessionId").asString() + "/");
    }

    private static boolean isInstalled(String program) {
        return Stream.of(System.getenv().getOrDefault("PATH", "").split(File.pathSeparator))
                .anyMatch(directory -> Files.isExecutable(Path.of(directory, program)));
    }

    private int port(Path log) throws IOException, InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS);
        while (driver.isAlive() && System.nanoTime() < deadline) {
            Matcher said = PORT.matcher(Files.readString(log));
            if (said.find()) {
                return Integer.parseInt(said.group(1));
            }
            Thread.sleep(20);
        }
        throw new AssertionError("chromedriver: " + Files.readString(log));
    }

    private static JsonNode call(String method, URI uri, Map<String, Object> body) throws IOException {
        var connection = (HttpURLConnection) uri.toURL().openConnection();
        connection.setRequestMethod(method);
        connection.setReadTimeout(PATIENCE_MILLIS);
        if (method.equals("POST")) {
            connection.setDoOutput(true);
            connection.setRequestProperty("Content-Type", "application/json; charset=utf-8");
            try (var out = connection.getOutputStream()) {
                out.write(JsonMapper.shared().writeValueAsBytes(body));
            }
        }
        int status = connection.getResponseCode();
        try (var in = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
            String text = in == null ? "" : new String(in.readAllBytes(), StandardCharsets.UTF_8);
            assertThat(status).as(text).isEqualTo(200);
            return JsonMapper.shared().readTree(text).get("value");
        }
    }

    void open(URI page) throws IOException {
        call("POST", session.resolve("url"), Map.of("url", page.toString()));
    }

    void reload() throws IOException {
        call("POST", session.resolve("refresh"), Map.of());
    }

    /** What a script returns. */
    JsonNode run(String script) throws IOException {
        return call("POST", session.resolve("execute/sync"), Map.of("script", script, "args", List.of()));
    }

    /** Types into an element, by WebDriver's names of keys. */
    void type(String selector, String keys) throws IOException {
        JsonNode found = call("POST", session.resolve("element"), Map.of("using", "css selector", "value", selector));
        String id = found.iterator().next().asString();
        call("POST", session.resolve("element/" + id + "/value"), Map.of("text", keys));
    }

    /** Which paper, {@code light} or {@code dark}, and how wide. */
    void show(String scheme, int width) throws IOException {
        command(
                "Emulation.setEmulatedMedia",
                Map.of("features", List.of(Map.of("name", "prefers-color-scheme", "value", scheme))));
        command(
                "Emulation.setDeviceMetricsOverride",
                Map.of("width", width, "height", 900, "deviceScaleFactor", 1, "mobile", false));
    }

    /** The whole page, also what is below the window. */
    void screenshot(Path file) throws IOException {
        JsonNode image = command("Page.captureScreenshot", Map.of("captureBeyondViewport", true));
        Files.write(file, Base64.getDecoder().decode(image.get("data").asString()));
    }

    private JsonNode command(String name, Map<String, Object> parameters) throws IOException {
        return call("POST", session.resolve("goog/cdp/execute"), Map.of("cmd", name, "params", parameters));
    }

    /** What the console has said since the last time. */
    JsonNode console() throws IOException {
        return call("POST", session.resolve("se/log"), Map.of("type", "browser"));
    }

    @Override
    public void close() throws IOException {
        List<ProcessHandle> browsers = driver.descendants().toList();
        try {
            call("DELETE", URI.create(session.toString().replaceAll("/$", "")), Map.of());
        } finally {
            browsers.forEach(ProcessHandle::destroyForcibly);
            driver.destroy();
        }
    }
}
