package org.fedcomuon.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

class UserHomeTest {
    private static final String PASSWORD_FILE = "/home/me";

    @Test
    void homeIsThatOfTheEnvironmentWhereThereIsOne() {
        assertThat(UserHome.directory(Map.of("HOME", "/scratch/me"), PASSWORD_FILE))
                .isEqualTo(Path.of("/scratch/me"));
        assertThat(UserHome.directory(Map.of(), PASSWORD_FILE)).isEqualTo(Path.of(PASSWORD_FILE));
        assertThat(UserHome.directory(Map.of("HOME", ""), PASSWORD_FILE)).isEqualTo(Path.of(PASSWORD_FILE));
        assertThat(UserHome.directory(Map.of("HOME", "not/absolute"), PASSWORD_FILE))
                .isEqualTo(Path.of(PASSWORD_FILE));
    }

    /** What Java says of a user without an entry in the password file. */
    @Test
    void aUserWithoutAHomeGetsNoDirectoryCalledQuestionMark() {
        assertThat(UserHome.directory(Map.of(), "?")).isEqualTo(UserHome.NONE);
        assertThat(UserHome.cache(Map.of(), "?")).isEqualTo(UserHome.NONE.resolve(".cache/fedcomuon"));
        assertThat(UserHome.directory(Map.of("HOME", "/work"), "?")).isEqualTo(Path.of("/work"));
    }

    @Test
    void cachesAreInTheDirectoryForCaches() {
        assertThat(UserHome.cache(Map.of("XDG_CACHE_HOME", "/caches", "HOME", "/scratch/me"), PASSWORD_FILE))
                .isEqualTo(Path.of("/caches/fedcomuon"));
        assertThat(UserHome.cache(Map.of("XDG_CACHE_HOME", "caches", "HOME", "/scratch/me"), PASSWORD_FILE))
                .isEqualTo(Path.of("/scratch/me/.cache/fedcomuon"));
        assertThat(UserHome.cache(Map.of("HOME", "/scratch/me"), PASSWORD_FILE))
                .isEqualTo(Path.of("/scratch/me/.cache/fedcomuon"));
        assertThat(UserHome.cache(Map.of(), PASSWORD_FILE)).isEqualTo(Path.of("/home/me/.cache/fedcomuon"));
    }
}
