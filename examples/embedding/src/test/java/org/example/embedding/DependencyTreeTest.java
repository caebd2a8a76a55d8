package org.example.embedding;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Checks the dependencies that come with the core, as {@code mvn dependency:tree} lists them. */
class DependencyTreeTest {
    private static final Pattern OURS = Pattern.compile("org\\.fedcomuon:([a-z-]+)");

    @Test
    void theCoreComesAlone() throws IOException {
        String tree = Files.readString(Path.of("target", "dependency-tree.txt"));
        Set<String> ours =
                OURS.matcher(tree).results().map(result -> result.group(1)).collect(Collectors.toSet());
        assertEquals(Set.of("fedcomuon-platform", "fedcomuon-core", "fedcomuon-bindings", "fedcomuon-native"), ours);
        assertTrue(tree.contains("fedcomuon-native:jar:linux-"), tree);
        // The command line, libtorch, benchmarks, Spark, and optional dependencies.
        for (String other : List.of("picocli", "pytorch", "jmh", "spark", "jcuda", "jackson-dataformat-yaml")) {
            assertFalse(tree.contains(other), other + " in\n" + tree);
        }
    }
}
