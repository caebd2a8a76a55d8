package org.fedcomuon.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.SAXException;

/**
 * The table that {@code ./fedcomuon test} ends with: for each group of tests how many there were, how many failed or
 * were skipped and why, and how long they took. It reads the JUnit files that Surefire and CTest leave.
 */
public final class TestSummary {
    /** The tests of a module, or those of a CMake preset. */
    private static final class Group {
        private final String name;
        private int tests;
        private int failed;
        private double seconds;
        private final TreeMap<String, Integer> skipped = new TreeMap<>();

        Group(String name) {
            this.name = name;
        }

        private int skips() {
            return skipped.values().stream().mapToInt(Integer::intValue).sum();
        }

        void add(Path file) throws IOException {
            NodeList cases = parse(file).getElementsByTagName("testcase");
            for (int i = 0; i < cases.getLength(); i++) {
                var test = (Element) cases.item(i);
                tests++;
                seconds += Double.parseDouble(test.getAttribute("time").replace(",", ""));
                if (has(test, "failure") || has(test, "error")) {
                    failed++;
                } else if (has(test, "skipped")) {
                    skipped.merge(reason(test), 1, Integer::sum);
                }
            }
        }

        private static boolean has(Element test, String tag) {
            return test.getElementsByTagName(tag).getLength() > 0;
        }

        private static String reason(Element test) {
            var skipped = (Element) test.getElementsByTagName("skipped").item(0);
            String said = skipped.getAttribute("message") + skipped.getTextContent();
            String line = said.lines().findFirst().orElse("").replaceFirst("^\\S*TestAbortedException: |^.* ==> ", "");
            return line.isBlank()
                    ? "no reason given"
                    : line.replaceFirst("^Assumption failed: ", "").strip();
        }
    }

    private TestSummary() {}

    /** Prints the table of the project whose root is the argument; exit code 1 if a test failed or there was none. */
    public static void main(String[] arguments) throws IOException {
        Group total = new Group("all");
        System.out.print(table(groups(Path.of(arguments[0])), total));
        System.exit(total.failed > 0 || total.tests == 0 ? 1 : 0);
    }

    /** Returns the table of the reports below {@code root}. */
    static String of(Path root) throws IOException {
        return table(groups(root), new Group("all"));
    }

    private static List<Group> groups(Path root) throws IOException {
        var groups = new ArrayList<Group>();
        for (Path directory : list(root.resolve("target/native"))) {
            Path file = directory.resolve("tests.xml");
            if (Files.exists(file)) {
                var group = new Group("native " + directory.getFileName());
                group.add(file);
                groups.add(group);
            }
        }
        for (String parent : List.of("src", "examples")) {
            for (Path module : list(root.resolve(parent))) {
                var group = new Group(String.valueOf(module.getFileName()));
                for (Path file : list(module.resolve("target/surefire-reports"))) {
                    if (String.valueOf(file.getFileName()).matches("TEST-.*\\.xml")) {
                        group.add(file);
                    }
                }
                if (group.tests > 0) {
                    groups.add(group);
                }
            }
        }
        return groups;
    }

    private static String table(List<Group> groups, Group total) {
        var text = new StringBuilder(
                "%n%-16s %7s %7s %8s %8s%n".formatted("group", "tests", "failed", "skipped", "seconds"));
        for (Group group : groups) {
            text.append(row(group));
            total.tests += group.tests;
            total.failed += group.failed;
            total.seconds += group.seconds;
            group.skipped.forEach((reason, count) -> total.skipped.merge(reason, count, Integer::sum));
        }
        text.append(row(total));
        if (!total.skipped.isEmpty()) {
            text.append("%nskipped because%n".formatted());
            total.skipped.forEach((reason, count) -> text.append("%7d  %s%n".formatted(count, reason)));
        }
        return text.append("%n%d passed, %d failed, %d skipped%n"
                        .formatted(total.tests - total.failed - total.skips(), total.failed, total.skips()))
                .toString();
    }

    private static String row(Group group) {
        return String.format(
                Locale.ROOT,
                "%-16s %7d %7d %8d %8.0f%n",
                group.name,
                group.tests,
                group.failed,
                group.skips(),
                group.seconds);
    }

    private static List<Path> list(Path directory) throws IOException {
        if (!Files.isDirectory(directory)) {
            return List.of();
        }
        try (Stream<Path> files = Files.list(directory)) {
            return files.sorted().toList();
        }
    }

    private static Element parse(Path file) throws IOException {
        try {
            var factory = DocumentBuilderFactory.newInstance();
            factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
            return factory.newDocumentBuilder().parse(file.toFile()).getDocumentElement();
        } catch (ParserConfigurationException e) {
            throw new IllegalStateException(e);
        } catch (SAXException e) {
            throw new IOException(file + " is no report of tests", e);
        }
    }
}
