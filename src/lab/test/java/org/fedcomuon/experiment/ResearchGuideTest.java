package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.assertj.core.api.Assertions;
import org.fedcomuon.testing.Repository;
import org.junit.jupiter.api.Test;

/** That {@code docs/research.md} has every key of the YAML form, with its default. */
class ResearchGuideTest {
    private static String section(String title) throws IOException {
        String page = Files.readString(Repository.root().resolve("docs/research.md"));
        String from = page.substring(page.indexOf("\n### " + title + "\n"));
        int end = from.indexOf("\n##", 1);
        return from.substring(0, end < 0 ? from.length() : end);
    }

    /** The row of a table whose first cell has this name. */
    private static String row(String section, String name) {
        return section.lines()
                .filter(line -> line.startsWith("| ")
                        && line.substring(0, line.indexOf('|', 2)).matches(".*[`{]" + name + "[`:].*"))
                .findFirst()
                .orElseGet(() -> Assertions.fail("no row for " + name));
    }

    @Test
    void everySettingOfEveryRun() throws IOException {
        String section = section("Settings of every run");
        for (Setting setting : Configuration.general().values()) {
            String row = row(section, setting.name());
            if (!setting.defaultValue().isEmpty()) {
                assertThat(row).contains("| `%s` |".formatted(setting.defaultValue()));
            }
        }
        for (String key : List.of("extends", "methods", "where")) {
            row(section, key);
        }
    }

    @Test
    void everyChoiceWithItsSettings() throws IOException {
        Map<String, Registry<? extends Choice>> sections = Map.of(
                "Data", DataChoice.ALL,
                "Splits", SplitChoice.ALL,
                "Models", ModelChoice.ALL,
                "Objectives", Objectives.ALL,
                "Methods", MethodChoice.ALL);
        for (var entry : sections.entrySet()) {
            String section = section(entry.getKey());
            for (Choice choice : entry.getValue().entries()) {
                String row = row(section, choice.name());
                for (Setting setting : choice.settings()) {
                    boolean itself = setting.name().equals(choice.name()); // layers: [...]
                    String written = setting.defaultValue().isEmpty()
                            ? "`%s`".formatted(setting.name())
                            : "`%s: %s`".formatted(setting.name(), setting.defaultValue());
                    assertThat(itself || setting.name().equals("clients") || row.contains(written))
                            .as("%s in: %s", written, row)
                            .isTrue();
                }
            }
        }
    }

    @Test
    void everyLayer() throws IOException {
        String section = section("Models");
        Stream<String> names = LayerList.names().stream();
        assertThat(names).hasSizeGreaterThan(12).allSatisfy(name -> row(section, name));
    }
}
