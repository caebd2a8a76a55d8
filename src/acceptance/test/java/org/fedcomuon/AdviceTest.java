package org.fedcomuon;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.fedcomuon.testing.Repository;
import org.junit.jupiter.api.Test;

/** What messages advise exists: the options that they name are options of ours. */
class AdviceTest {
    private static final Pattern OPTION = Pattern.compile("(?<![A-Za-z0-9-])--[a-z][a-z-]*[a-z]");
    private static final Pattern LITERAL = Pattern.compile("\"(?:[^\"\\\\\n]++|\\\\.)*+\"");

    /** In an annotation of picocli: a name, or several. */
    private static final Pattern NAMES = Pattern.compile("names = (\\{[^}]*}|\"[^\"]*\")");

    /** Options that picocli adds, and one whose name is a constant. */
    private static final Set<String> ADDED = Set.of("--help", "--version", "--verbose");

    /**
     * Where arguments of other programs are: of the JVM, npm, mpirun and spark-submit; and variables of style sheets.
     */
    private static final Set<String> COMMANDS_OF_OTHERS = Set.of(
            "SparkSettings.java",
            "NpmPackage.java",
            "ChildJvm.java",
            "MpiRounds.java",
            "ClientsSection.java",
            "HeatMaps.java",
            "WorkerProcess.java",
            "DriverErrors.java");

    private static List<Path> sources() throws IOException {
        var all = new ArrayList<Path>();
        try (Stream<Path> modules = Files.list(Repository.root().resolve("src"))) {
            for (Path main : modules.map(module -> module.resolve("main/java"))
                    .filter(Files::isDirectory)
                    .toList()) {
                try (Stream<Path> files = Files.walk(main)) {
                    files.filter(file -> file.toString().endsWith(".java")).forEach(all::add);
                }
            }
        }
        return all;
    }

    private static Set<String> options(Pattern where, String text) {
        var all = new TreeSet<String>();
        Matcher place = where.matcher(text);
        while (place.find()) {
            OPTION.matcher(place.group()).results().forEach(option -> all.add(option.group()));
        }
        return all;
    }

    @Test
    void everyOptionInAMessageIsOneOfOurs() throws IOException {
        var ours = new TreeSet<>(ADDED);
        for (Path source : sources()) {
            ours.addAll(options(NAMES, Files.readString(source)));
        }
        assertThat(ours)
                .contains("--out", "--resume", "--data-dir", "--cluster-timeout")
                .hasSizeGreaterThan(30);
        var unknown = new TreeSet<String>();
        for (Path source : sources()) {
            String name = String.valueOf(source.getFileName());
            if (!COMMANDS_OF_OTHERS.contains(name)) {
                for (String option : options(LITERAL, Files.readString(source))) {
                    // A name that is put together, such as "--dashboard-%s", begins as one of ours.
                    if (ours.stream().noneMatch(each -> each.equals(option) || each.startsWith(option + "-"))) {
                        unknown.add("%s: %s".formatted(name, option));
                    }
                }
            }
        }
        assertThat(unknown).isEmpty();
        Pattern said = Pattern.compile("(?m)^.*\\b(?:say|die [12]) .*$");
        assertThat(ours)
                .containsAll(options(said, Files.readString(Repository.root().resolve("fedcomuon"))));
    }
}
