package org.fedcomuon.data;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Map;
import java.util.stream.Stream;

/** Where datasets are kept, and what everything that gets one needs. */
final class DataCache {
    private static final int BUFFER = 1 << 16;

    private DataCache() {}

    /** Where a dataset is if nobody says otherwise: a directory of its own in the user's cache. */
    static Path directory(String dataset) {
        return directory(dataset, System.getenv(), System.getProperty("user.home"));
    }

    static Path directory(String dataset, Map<String, String> environment, String home) {
        String cache = environment.getOrDefault("XDG_CACHE_HOME", "");
        Path base = cache.isEmpty() ? Path.of(home, ".cache") : Path.of(cache);
        return base.resolve(Path.of("fedcomuon", "data", dataset));
    }

    /** A new directory to fetch to, of this user alone: beside where it goes, not among everybody's temporary files. */
    static Path stage(Path directory) throws IOException {
        Files.createDirectories(directory);
        return Files.createTempDirectory(directory, ".fetch-");
    }

    /** Of a file, whatever is in it. */
    static String sha256(Path file) throws IOException {
        var digest = new ContentDigest();
        var buffer = new byte[BUFFER];
        try (InputStream in = Files.newInputStream(file)) {
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
                digest.update(buffer, count);
            }
        }
        return digest.hex();
    }

    /** What cannot be deleted is no reason to fail, and would hide the reason why something else did. */
    static void delete(Path directory) {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        } catch (IOException | UncheckedIOException _) {
            // Its name says what it was for.
        }
    }
}
