package org.fedcomuon;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.fedcomuon.testing.Repository;
import org.junit.jupiter.api.Test;

/** That the pages keep up with what they describe. */
class DocumentationTest {
    private static final Path ROOT = Repository.root();
    private static final Pattern MODULE = Pattern.compile("<module>(.+)</module>");
    private static final Pattern PACKAGE = Pattern.compile("`(org\\.fedcomuon[a-z.]*)`");
    private static final Pattern LINK = Pattern.compile("]\\(([^)#\\s]+)(#[^)]*)?\\)");

    private static Set<String> all(Pattern pattern, String text) {
        return pattern.matcher(text)
                .results()
                .map(result -> result.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static Set<String> packages(Path sources) throws IOException {
        try (Stream<Path> files = Files.walk(sources)) {
            return files.filter(file -> file.toString().endsWith(".java"))
                    .map(file -> sources.relativize(file.getParent()).toString().replace('/', '.'))
                    .filter(name -> !name.isEmpty())
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }

    @Test
    void theArchitectureNamesEveryModuleAndPackage() throws IOException {
        String page = Files.readString(ROOT.resolve("docs/architecture.md"));
        Set<String> modules = all(MODULE, Files.readString(ROOT.resolve("pom.xml")));
        var packages = new TreeSet<>(Set.of("org.fedcomuon.testing"));
        for (String module : modules) {
            assertThat(page).contains("\n| `%s` |".formatted(module));
            for (String sources : List.of(module + "/main/java", module + "/src")) {
                if (Files.isDirectory(ROOT.resolve(sources))) {
                    packages.addAll(packages(ROOT.resolve(sources)));
                }
            }
        }
        assertThat(packages).contains("org.fedcomuon.device", "org.fedcomuon.internal.bindings.fedcomuon");
        assertThat(all(PACKAGE, page)).isEqualTo(packages);
    }

    @Test
    void linksLeadToFiles() throws IOException {
        try (Stream<Path> docs = Files.walk(ROOT.resolve("docs"));
                Stream<Path> top = Files.list(ROOT);
                Stream<Path> examples = Files.walk(ROOT.resolve("examples"), 2)) {
            List<Path> pages = Stream.of(docs, top, examples)
                    .flatMap(files -> files)
                    .filter(file -> file.toString().endsWith(".md"))
                    .toList();
            assertThat(pages).contains(ROOT.resolve("README.md"), ROOT.resolve("docs/guide.md"));
            for (Path page : pages) {
                assertThat(all(LINK, Files.readString(page)))
                        .as(page.toString())
                        .filteredOn(link -> !link.startsWith("http"))
                        .allSatisfy(
                                link -> assertThat(page.resolveSibling(link)).exists());
            }
        }
    }

    /** Whoever writes a pom copies them from the page. */
    @Test
    void theGuideForResearchHasTheVersionsOfThePoms() throws IOException {
        String root = Files.readString(ROOT.resolve("pom.xml"));
        String own = only("<artifactId>fedcomuon-parent</artifactId>\\s*<version>(.+)</version>", root);
        String javacpp = only("<javacpp.version>(.+)</javacpp.version>", root);
        String pytorch = only(
                "<artifactId>pytorch</artifactId><version>(.+)-\\$\\{javacpp.version}</version></dependency>",
                Files.readString(ROOT.resolve("src/torch/pom.xml")));
        Set<String> named = all(
                Pattern.compile("`(org\\.[a-z]+:[a-z-]+:[^`]+)`"), Files.readString(ROOT.resolve("docs/research.md")));
        assertThat(named)
                .containsExactlyInAnyOrder(
                        "org.fedcomuon:fedcomuon-platform:" + own,
                        "org.fedcomuon:fedcomuon-torch:" + own,
                        "org.fedcomuon:fedcomuon-lab:" + own,
                        "org.fedcomuon:fedcomuon-native:" + own,
                        "org.bytedeco:pytorch:%s-%s".formatted(pytorch, javacpp));
    }

    private static String only(String pattern, String text) {
        Set<String> found = all(Pattern.compile(pattern), text);
        assertThat(found).as(pattern).hasSize(1);
        return found.iterator().next();
    }

    @Test
    void theReadmeFitsOnAFewScreens() throws IOException {
        assertThat(Files.readAllLines(ROOT.resolve("README.md"))).hasSizeLessThanOrEqualTo(130);
    }
}
