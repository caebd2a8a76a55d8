package org.fedcomuon;

import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.fedcomuon.testing.Repository;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * What the build has resolved is what {@code docs/dependencies.md} says, under licences that we accept, and in no
 * version of which {@code docs/advisories.yaml} knows something bad. {@code -Dtests.update=true} writes the list anew.
 */
class DependenciesTest {
    private static final Path BASE = Repository.root();
    private static final Path LIST = BASE.resolve("docs/dependencies.md");

    /** One of the licences that a jar offers has to be here. What is only under the GPL, or under none, is not. */
    private static final Set<String> ACCEPTED = Set.of(
            "0BSD",
            "Apache-1.1",
            "Apache-2.0",
            "BSD-2-Clause",
            "CC0-1.0",
            "BSD-3-Clause",
            "CDDL-1.1",
            "EDL-1.0",
            "EPL-2.0",
            "MIT",
            "Unicode-3.0");

    /** The licenses of tools that are not distributed. */
    private static final Set<String> ACCEPTED_FOR_TESTS =
            Set.of("EPL-2.0", "GPL-2.0-only WITH Classpath-exception-2.0");

    /** Where a pom says nothing, or not enough; by what is in the jar, or on the project's page. */
    private static final Map<String, List<String>> KNOWN = Map.of(
            "oro:oro",
            List.of("Apache-1.1"),
            "org.apache.yetus:audience-annotations",
            List.of("Apache-2.0"),
            "org.apache.xbean:xbean-asm9-shaded",
            List.of("Apache-2.0", "BSD-3-Clause"),
            "com.tngtech.archunit:archunit",
            List.of("Apache-2.0", "BSD-3-Clause"),
            "com.thoughtworks.paranamer:paranamer",
            List.of("BSD-3-Clause"));

    /** What each of ours is for. */
    private static final Map<String, String> PURPOSES = Map.ofEntries(
            Map.entry(
                    "com.fasterxml.jackson.core:jackson-annotations",
                    "annotations that Jackson 3 still takes from Jackson 2"),
            Map.entry("de.siegmar:fastcsv", "tables in CSV"),
            Map.entry("info.picocli:picocli", "the command line"),
            Map.entry("io.micrometer:micrometer-commons", "optional: what Micrometer needs"),
            Map.entry("io.micrometer:micrometer-core", "optional: meters for services"),
            Map.entry("io.micrometer:micrometer-observation", "optional: what Micrometer needs"),
            Map.entry("org.hdrhistogram:HdrHistogram", "optional: what Micrometer needs"),
            Map.entry("org.apache.commons:commons-numbers-combinatorics", "what the distributions need"),
            Map.entry("org.apache.commons:commons-numbers-core", "what the distributions need"),
            Map.entry("org.apache.commons:commons-numbers-fraction", "what the distributions need"),
            Map.entry("org.apache.commons:commons-numbers-gamma", "what the distributions need"),
            Map.entry("org.apache.commons:commons-numbers-rootfinder", "what the distributions need"),
            Map.entry("org.apache.commons:commons-rng-client-api", "what the distributions need"),
            Map.entry("org.apache.commons:commons-rng-sampling", "what the distributions need"),
            Map.entry("org.apache.commons:commons-statistics-distribution", "Student's t and other distributions"),
            Map.entry("org.bytedeco:javacpp", "unpacks OpenBLAS and libtorch"),
            Map.entry(
                    "org.bytedeco:openblas",
                    "carries OpenBLAS (BSD-3-Clause), libgfortran, libquadmath and libgcc (GPL-3.0 with the GCC exception)"),
            Map.entry("org.bytedeco:pytorch", "optional: libtorch (BSD-3-Clause), for models and benchmarks"),
            Map.entry("org.jcuda:jcublas", "optional: cuBLAS by JNI"),
            Map.entry("org.jcuda:jcuda", "optional: what both need"),
            Map.entry("org.jcuda:jcusolver", "optional: cuSOLVER by JNI"),
            Map.entry("org.jspecify:jspecify", "annotations of nullness"),
            Map.entry("org.slf4j:slf4j-api", "logs"),
            Map.entry("org.slf4j:slf4j-jdk14", "optional: logs of the command line"),
            Map.entry("org.snakeyaml:snakeyaml-engine", "YAML, under Jackson"),
            Map.entry("tools.jackson.core:jackson-core", "JSON"),
            Map.entry("tools.jackson.core:jackson-databind", "JSON"),
            Map.entry("tools.jackson.dataformat:jackson-dataformat-yaml", "YAML of presets and configurations"));

    private static List<Jars.Jar> ours;
    private static List<Jars.Jar> sparks;
    private static List<Jars.Jar> tests;
    private static Advisories advisories;

    @BeforeAll
    static void look() throws IOException {
        ours = distinct(Jars.of(classPath("core")), Jars.of(classPath("lab")));
        sparks = besides(Jars.of(classPath("spark")), distinct(ours, Jars.of(classPath("bench"))));
        tests = besides(
                        distinct(
                                Jars.of(classPath("bench")),
                                Jars.of(System.getProperty(
                                        "surefire.test.class.path", System.getProperty("java.class.path")))),
                        distinct(ours, sparks))
                .stream()
                .filter(jar -> !jar.file().contains("-natives-")) // not on every platform
                .toList();
        advisories = new Advisories(Files.readString(BASE.resolve("docs/advisories.yaml")));
    }

    /** What the build has resolved for a module. */
    private static String classPath(String module) throws IOException {
        return Files.readString(Modules.directory(module).resolve("target/class-path"));
    }

    @SafeVarargs
    private static List<Jars.Jar> distinct(List<Jars.Jar>... lists) {
        return all(lists).stream().distinct().toList();
    }

    private static List<Jars.Jar> besides(List<Jars.Jar> jars, List<Jars.Jar> others) {
        return jars.stream().filter(jar -> !others.contains(jar)).toList();
    }

    @SafeVarargs
    private static List<Jars.Jar> all(List<Jars.Jar>... lists) {
        var all = new ArrayList<Jars.Jar>();
        for (List<Jars.Jar> list : lists) {
            all.addAll(list);
        }
        return all;
    }

    @Test
    void theListIsWhatTheBuildHasResolved() throws IOException {
        String list = list();
        if (Boolean.getBoolean("tests.update")) {
            Files.writeString(LIST, list);
        }
        assertThat(Files.readString(LIST))
                .as("docs/dependencies.md; write it anew with: ./fedcomuon test DependenciesTest"
                        + " with FEDCOMUON_MAVEN_OPTS=-Dtests.update=true")
                .isEqualTo(list);
    }

    @Test
    void nothingIsThereInTwoVersions() {
        for (List<Jars.Jar> list : List.of(ours, sparks)) {
            Map<String, Set<String>> versions = new LinkedHashMap<>();
            list.forEach(jar -> versions.computeIfAbsent(jar.artifact(), _ -> new TreeSet<>())
                    .add(jar.version()));
            assertThat(versions)
                    .as("artifacts by version")
                    .allSatisfy((_, found) -> assertThat(found).hasSize(1));
        }
    }

    @Test
    void everyLicenceIsAccepted() {
        assertThat(all(ours, sparks))
                .allSatisfy(jar -> assertThat(licences(jar)).containsAnyElementsOf(ACCEPTED));
        assertThat(tests).allSatisfy(jar -> {
            var accepted = new TreeSet<>(ACCEPTED);
            accepted.addAll(ACCEPTED_FOR_TESTS);
            assertThat(licences(jar)).containsAnyElementsOf(accepted);
        });
    }

    @Test
    void whatIsOnlyUnderTheGplWouldBeRefused() {
        var made = new Jars.Jar(
                "made-1.0.jar", "org.example:made", "1.0", List.of("GNU General Public License, version 2"));
        assertThat(licences(made)).doesNotContainAnyElementsOf(ACCEPTED);
        assertThatThrownBy(() -> licences(new Jars.Jar("odd-1.jar", "org.example:odd", "1", List.of("My own licence"))))
                .hasMessageContaining("My own licence");
        assertThat(licences(new Jars.Jar("none-1.jar", "org.example:none", "1", List.of())))
                .isEmpty();
    }

    @Test
    void noJarIsOfAVersionThatIsKnownToBeVulnerable() {
        assertThat(advisories.problems(all(ours, sparks, tests))).isEmpty();
        assertThat(advisories.useless(all(ours, sparks, tests))).isEmpty();
    }

    @Test
    void aVulnerableJarWouldBeNamed() {
        var log4j = new Jars.Jar("log4j-core-2.14.1.jar", "org.apache.logging.log4j:log4j-core", "2.14.1", List.of());
        assertThat(advisories.problems(List.of(log4j)))
                .anySatisfy(line -> assertThat(line).contains("log4j-core-2.14.1.jar", "CVE-2021-44228", "Log4Shell"));
        assertThat(advisories.useless(List.of(log4j))).isNotEmpty();
        var made = new Advisories("""
                reasons: {because: nobody calls it}
                advisories:
                  - {id: CVE-0000-1, artifact: "org.example:made", affected: [">=1.0 <1.5"], summary: made up}
                  - {id: CVE-0000-2, artifact: "org.example:made", affected: ["<=1.2"], summary: made up, accepted: because}
                """);
        var jar = new Jars.Jar("made-1.2.jar", "org.example:made", "1.2", List.of());
        assertThat(made.problems(List.of(jar)))
                .containsExactly("made-1.2.jar is affected by CVE-0000-1 (>=1.0 <1.5): made up");
        assertThat(made.useless(List.of(jar))).isEmpty();
        assertThatThrownBy(() -> new Advisories("""
                        advisories:
                          - {id: X, artifact: "a:b", affected: ["<1"], accepted: unwritten}
                        """)).hasMessageContaining("no reason is called unwritten");
    }

    @ParameterizedTest
    @CsvSource({
        "<2.15.0, 2.14.1, true",
        "<2.15.0, 2.15.0, false",
        ">=4.2.0 <4.2.15, 4.2.13.Final, true",
        ">=4.2.0 <4.2.15, 4.2.15.Final, false",
        ">=4.2.0 <4.2.15, 4.1.99.Final, false",
        "<32.0.0, 32.0.0-jre, false",
        "<0.3.18, 0.3.31-1.5.13, false",
        "<1.1.10.4, 1.1.10.3, true",
        "<2.10, 2.9, true",
        "<=1.8.1, 1.8.1, true",
    })
    void versionsAreComparedAsNumbers(String range, String version, boolean inside) {
        assertThat(Advisories.contains(range, version)).isEqualTo(inside);
    }

    // ---- the list

    private static String list() {
        return """
                # Dependencies

                Made by `DependenciesTest` of what the build has resolved; do not edit. After a change of `pom.xml`:

                    FEDCOMUON_MAVEN_OPTS=-Dtests.update=true ./fedcomuon test DependenciesTest

                Licences are those of the poms, by their SPDX names; of several one may choose, or they are of parts of the jar. The test fails when the list is not
                that of the build, when none of a jar's licences is accepted (%s),
                or when a version is known to be vulnerable.

                ## Known vulnerabilities

                [advisories.yaml](advisories.yaml) has published advisories for these libraries, with the versions that are affected. The test
                compares every jar with it, without a network, and fails where one is affected and no reason for it is written there. It knows
                nothing that is not written there, nor which other advisories there were by the day that it names: its being green is no proof.
                It does not see what is shaded into other jars (Hadoop's client and Spark's core have dozens), nor the C and C++ libraries within
                native ones. Where there is a network, ask a scanner, before each release:

                    osv-scanner scan source --lockfile pom.xml
                    mvn org.owasp:dependency-check-maven:check

                and write what it finds into the file, by a newer version or with a reason.

                Accepted today, all of them in jars that only `--cluster` with Apache Spark uses, in the version that Spark has; `SPARK_HOME`
                names a distribution with newer ones:

                %s
                ## What we run with

                Natives are in jars of the same name with a classifier.

                | artifact | version | licence | for |
                |---|---|---|---|
                %s
                ## What Spark brings

                Provided by a cluster; what Maven resolves for `--cluster` on this machine. Nothing of it is in our jar, nor in the one for
                `spark-submit`.

                | artifact | version | licence |
                |---|---|---|
                %s
                ## What only tests and benchmarks see

                Besides, JCuda's natives (MIT) for the tests of its bindings. The build itself runs Error Prone, Spotless with palantir-java-format
                (both Apache-2.0) and Maven's plugins.

                | artifact | version | licence |
                |---|---|---|
                %s""".formatted(
                        ACCEPTED.stream().sorted().collect(joining(", ")),
                        accepted(),
                        rows(ours, true),
                        rows(sparks, false),
                        rows(tests, false));
    }

    private static String accepted() {
        Map<String, Set<String>> ids = new LinkedHashMap<>();
        advisories
                .all()
                .forEach(advisory -> advisory.accepted()
                        .ifPresent(_ -> ids.computeIfAbsent(advisory.artifact(), _ -> new TreeSet<>())
                                .add(advisory.id())));
        return ids.entrySet().stream()
                .map(entry -> "- `%s`: %s\n".formatted(entry.getKey(), String.join(", ", entry.getValue())))
                .collect(joining());
    }

    private static String rows(List<Jars.Jar> jars, boolean purposes) {
        var rows = new TreeSet<String>(); // once for all classifiers
        for (Jars.Jar jar : jars) {
            String purpose = purposes ? " %s |".formatted(PURPOSES.getOrDefault(jar.artifact(), "?")) : "";
            rows.add("| `%s` | %s | %s |%s\n"
                    .formatted(jar.artifact(), jar.version(), String.join("; ", licences(jar)), purpose));
        }
        return String.join("", rows);
    }

    private static List<String> licences(Jars.Jar jar) {
        return KNOWN.containsKey(jar.artifact())
                ? KNOWN.get(jar.artifact())
                : jar.licences().stream().map(DependenciesTest::spdx).distinct().toList();
    }

    private static String spdx(String name) {
        String plain =
                name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9.]+", " ").strip();
        return switch (plain) {
            case "0bsd" -> "0BSD";
            case "apache 2",
                    "apache 2.0",
                    "apache license 2.0",
                    "apache license version 2.0",
                    "the apache license version 2.0",
                    "the apache software license version 2.0" -> "Apache-2.0";
            case "bsd 2 clause", "bsd 2 clause license" -> "BSD-2-Clause";
            case "3 clause bsd license",
                    "bsd 3 clause",
                    "modified bsd",
                    "new bsd license",
                    "the bsd 3 clause license",
                    "the new bsd license" -> "BSD-3-Clause";
            case "cddl gplv2 with classpath exception" -> "CDDL-1.1";
            case "public domain per creative commons cc0" -> "CC0-1.0";
            case "edl 1.0" -> "EDL-1.0";
            case "eclipse public license v2.0", "epl 2.0" -> "EPL-2.0";
            case "gnu general public license version 2" -> "GPL-2.0-only";
            case "gnu general public license gpl version 2 or any later version" -> "GPL-2.0-or-later";
            case "gnu general public license gpl version 2 with the classpath exception",
                    "gpl 2.0 with classpath exception",
                    "gpl2 w cpe",
                    "gplv2 with classpath exception",
                    "the gnu general public license gpl version 2 with classpath exception" ->
                "GPL-2.0-only WITH Classpath-exception-2.0";
            case "jquery license", "mit", "mit license", "the mit license" -> "MIT";
            case "lgpl 2.1" -> "LGPL-2.1";
            case "mpl 1.1" -> "MPL-1.1";
            case "public domain" -> "public domain";
            case "unicode 3.0" -> "Unicode-3.0";
            case "w3c license" -> "W3C";
            default -> throw new IllegalArgumentException("no SPDX name is known for '%s'".formatted(name));
        };
    }
}
