package org.fedcomuon.testing;

import java.nio.file.Path;

/** Where the project lies: tests run in the directory of their module. */
public final class Repository {
    private Repository() {}

    /** The directory of the root pom. */
    public static Path root() {
        return Path.of(System.getProperty("fedcomuon.root", "."))
                .toAbsolutePath()
                .normalize();
    }

    /** The module whose tests these are, such as {@code core}. */
    public static String module() {
        return String.valueOf(Path.of("").toAbsolutePath().getFileName());
    }

    /** Where CMake leaves the libraries, and the tests their reports. */
    public static Path target() {
        return root().resolve("target");
    }
}
