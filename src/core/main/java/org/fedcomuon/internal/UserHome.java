package org.fedcomuon.internal;

import java.nio.file.Path;
import java.util.Map;

/**
 * Where this user's files are: below {@code HOME}, as for other programs, and not where the password file has the home,
 * as for {@code user.home}. A user without either, as in many containers, has a {@code user.home} of {@code ?}, which
 * would be a directory of this name wherever a program is started.
 */
public final class UserHome {
    /** What systems call the home of users who have none. Nobody can make a directory there. */
    static final Path NONE = Path.of("/dev/null");

    private UserHome() {}

    /** Returns the home of this user. */
    static Path directory() {
        return directory(System.getenv(), System.getProperty("user.home", ""));
    }

    static Path directory(Map<String, String> environment, String property) {
        return absolute(environment.getOrDefault("HOME", ""), absolute(property, NONE));
    }

    /** Returns the directory of our caches, which need not exist. */
    public static Path cache() {
        return cache(System.getenv(), System.getProperty("user.home", ""));
    }

    static Path cache(Map<String, String> environment, String property) {
        // The specification of XDG has relative paths ignored.
        return absolute(
                        environment.getOrDefault("XDG_CACHE_HOME", ""),
                        directory(environment, property).resolve(".cache"))
                .resolve("fedcomuon");
    }

    private static Path absolute(String name, Path otherwise) {
        return name.startsWith("/") ? Path.of(name) : otherwise;
    }
}
