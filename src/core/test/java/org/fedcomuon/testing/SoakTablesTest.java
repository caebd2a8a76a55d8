package org.fedcomuon.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The page on reliability has the tables that a soak makes, and names tests that there are. */
class SoakTablesTest {
    private static final Path PAGE = Repository.root().resolve("docs/reliability.md");

    @ParameterizedTest
    @EnumSource(SoakReport.Table.class)
    void everyTableIsOnThePage(SoakReport.Table table) throws IOException {
        assertThat(SoakTables.between(Files.readString(PAGE), table))
                .hasValueSatisfying(text -> assertThat(text)
                        .startsWith(table.header())
                        .containsPattern("\\n[0-9]{4}-[0-9]{2}-[0-9]{2}, [0-9]+ cores"));
    }

    @Test
    void everyTestNamedThereExists() throws IOException {
        var sources = new HashSet<String>();
        for (String directory : List.of("src", "examples")) {
            try (Stream<Path> files = Files.walk(Repository.root().resolve(directory))) {
                files.map(file -> "" + file.getFileName())
                        .filter(name -> name.endsWith(".java"))
                        .forEach(name -> sources.add(name.replace(".java", "")));
            }
        }
        var named = Pattern.compile("`([A-Z][A-Za-z0-9]+(?:IT|Test))`")
                .matcher(Files.readString(PAGE))
                .results()
                .map(match -> match.group(1))
                .toList();
        assertThat(named).hasSizeGreaterThan(10);
        assertThat(sources).containsAll(named);
    }
}
