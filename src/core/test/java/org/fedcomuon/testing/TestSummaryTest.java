package org.fedcomuon.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TestSummaryTest {
    @TempDir
    private Path root;

    private void report(String file, String cases) throws IOException {
        Path path = root.resolve(file);
        Files.createDirectories(path.getParent());
        Files.writeString(path, "<testsuite name=\"x\">%s</testsuite>".formatted(cases));
    }

    @Test
    void countsEveryGroupAndNamesTheReasonsOfSkippedTests() throws IOException {
        report("target/native/cpu/tests.xml", "<testcase name=\"a\" time=\"1.5\"/><testcase name=\"b\" time=\"2\"/>");
        report("src/core/target/surefire-reports/TEST-A.xml", """
                <testcase name="ok" time="1,000.5"/>
                <testcase name="wrong" time="1"><failure message="no"/></testcase>
                <testcase name="broken" time="1"><error message="no"/></testcase>
                <testcase name="later" time="0"><skipped type="t"><![CDATA[org.opentest4j.TestAbortedException: Assumption failed: no GPU
                at somewhere]]></skipped></testcase>
                <testcase name="never" time="0"><skipped message="not here"/></testcase>
                """);
        report("src/core/target/surefire-reports/other.xml", "<testcase name=\"ok\" time=\"1\"/>");
        report("examples/service/target/surefire-reports/TEST-B.xml", "<testcase name=\"ok\" time=\"3\"/>");
        assertThat(TestSummary.of(root).lines().map(line -> line.strip().replaceAll(" +", " ")))
                .containsSubsequence(
                        "group tests failed skipped seconds",
                        "native cpu 2 0 0 4",
                        "core 5 2 2 1003",
                        "service 1 0 0 3",
                        "all 8 2 2 1009",
                        "skipped because",
                        "1 no GPU",
                        "1 not here",
                        "4 passed, 2 failed, 2 skipped");
    }

    @Test
    void withoutReportsThereIsNothing() throws IOException {
        assertThat(TestSummary.of(root)).contains("0 passed, 0 failed, 0 skipped");
    }
}
