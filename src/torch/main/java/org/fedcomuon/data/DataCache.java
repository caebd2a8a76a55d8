package org.fedcomuon.data;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;
import org.fedcomuon.internal.UserHome;

/** The cache of data sets, and what the downloads have in common. */
final class DataCache {
    private static final int BUFFER = 1 << 16;

    private DataCache() {}

    /** Returns the default directory of a dataset, in the user's cache. */
    static Path directory(String dataset) {
        return UserHome.cache().resolve(Path.of("data", dataset));
    }

    /** Creates a new directory for a download, readable by this user only, beside its destination. */
    static Path stage(Path directory) throws IOException {
        Files.createDirectories(directory);
        return Files.createTempDirectory(directory, ".fetch-");
    }

    /** Returns the SHA-256 of a file. */
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

    /** Deletes a directory. Failures are ignored, because they would hide the reason of an earlier one. */
    static void delete(Path directory) {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        } catch (IOException | UncheckedIOException _) {
            // The directory stays; its name shows its purpose.
        }
    }
}
