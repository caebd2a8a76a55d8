package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.fedcomuon.cli.UsageException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class KernelsSuiteTest {
    private static final String PROFILE = """
            {"case": "product, 2 x 3", "kernel": "fcm_k_some", "blocks": 4, "observed_blocks": 4,
             "classes": {"shared": 10, "fma": 80, "integer": 10}, "active_lanes": 0.95, "active_lanes_fma": 1,
             "balance": 0.5, "bank_conflicts": 0.25, "inner_loops": {"bank_conflicts": 0.0125},
             "sectors_per_request": 4.5, "least_sectors_per_request": 4, "fma_per_shared_load": 16,
             "roofline": {"RTX 4090": {"share": 0.75, "bound_by": "issue"}},
             "aims": {"sectors over the least": {"at_most": 1.2, "found": 1.125, "verdict": "met"},
                      "active lanes": {"at_least": 0.9, "found": 0.95, "verdict": "met"}}}""";

    private static final String MISSED =
            PROFILE.replace("\"found\": 0.95, \"verdict\": \"met\"", "\"found\": 0.85, \"verdict\": \"not met\"");

    private static final String ROW =
            "| product, 2 x 3 | `fcm_k_some` | 95.0% | 100.0% | 50.0% | 25.0% | 1.3% | 4.50 | 4.00 | 16.0 | 75.0% issue | 2 met |\n";

    @TempDir
    private Path directory;

    private static String table(List<Path> files) {
        return KernelsSuite.table(KernelsSuite.read(files));
    }

    private Path file(String name, String profile) throws IOException {
        return Files.writeString(
                directory.resolve(name),
                "{\"date\": \"2026-11-18\", \"suite\": \"kernels\", \"profiles\": [%s]}".formatted(profile));
    }

    @Test
    void figuresAndClassesAreTables() throws Exception {
        assertThat(table(List.of(file("one.json", PROFILE))))
                .contains(
                        "| case | kernel | lanes | of fma | balance | conflicts | inner | sectors | least | fma a load |"
                                + " RTX 4090 | aims |\n")
                .contains(ROW)
                .contains("| product, 2 x 3 | `fcm_k_some` | 100 | 10.0 | 80.0 | 10.0 |\n");
    }

    @Test
    void whatHasChangedIsShownAsBoth() throws Exception {
        Path before = file("before.json", PROFILE.replace("0.0125", "0.5").replace("issue", "shared"));
        assertThat(table(List.of(before, file("after.json", PROFILE))))
                .contains("| 25.0% | 50.0% to 1.3% | 4.50 | 4.00 | 16.0 | 75.0% shared to 75.0% issue | 2 met |\n")
                .doesNotContain("by class");
        Path other = file("other.json", PROFILE.replace("2 x 3", "2 x 4"));
        assertThat(table(List.of(other, file("after.json", PROFILE)))).doesNotContain("fcm_k_some");
    }

    @Test
    void aLimitThatIsNotKeptIsShownAndFailsTheCheck() throws Exception {
        Path kept = file("kept.json", PROFILE);
        Path missed = file("missed.json", MISSED);
        assertThat(table(List.of(missed))).contains("| 75.0% issue | active lanes >= 0.9: not met (0.850) |\n");
        assertThat(table(List.of(file("old.json", PROFILE.replace("\"aims\"", "\"other\"")))))
                .contains("| 75.0% issue | - |\n");
        var err = new StringWriter();
        CommandLine command = new CommandLine(new BenchCommand())
                .setOut(new PrintWriter(new StringWriter()))
                .setErr(new PrintWriter(err));
        assertThat(command.execute("kernels", "--check", "--table", kept.toString()))
                .isZero();
        assertThat(err.toString()).isEmpty();
        assertThat(command.execute("kernels", "--table", missed.toString())).isZero();
        assertThat(command.execute("kernels", "--check", "--table", missed.toString()))
                .isOne();
        assertThat(err.toString())
                .isEqualToIgnoringNewLines(
                        "fedcomuon: not met: kernels, product, 2 x 3: fcm_k_some: active lanes 0.8500,"
                                + " better quartile 0.8500; the aim is active lanes >= 0.9");
        assertThatThrownBy(() -> table(List.of(file("bad.json", PROFILE.replace("\"met\"", "\"maybe\"")))))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("not written by bench kernels --json");
    }

    @Test
    void aSampleOfBlocksIsTold() throws Exception {
        Path file = file("sample.json", PROFILE.replace("\"observed_blocks\": 4", "\"observed_blocks\": 1"));
        assertThat(table(List.of(file))).contains("| product, 2 x 3 (1 of 4 blocks) |");
    }

    @Test
    void otherFilesAreRefused() throws Exception {
        Path missing = directory.resolve("missing.json");
        assertThatThrownBy(() -> table(List.of(missing)))
                .isInstanceOf(UsageException.class)
                .hasMessage("--table %s: no such file".formatted(missing));
        for (String text : List.of("", "[]", "{\"suites\": []}", "{\"suite\": \"kernels\"}")) {
            Path file = Files.writeString(directory.resolve("wrong.json"), text);
            assertThatThrownBy(() -> table(List.of(file)))
                    .isInstanceOf(UsageException.class)
                    .hasMessage("--table %s: not written by bench kernels --json".formatted(file));
        }
        Path file = file("one.json", PROFILE);
        assertThatThrownBy(() -> table(List.of(file, file, file)))
                .isInstanceOf(UsageException.class)
                .hasMessage("--table: bench kernels takes one file, or two to compare");
        Path incomplete = file("incomplete.json", PROFILE.replace("balance", "other"));
        assertThatThrownBy(() -> table(List.of(incomplete))).isInstanceOf(UsageException.class);
    }

    @Test
    void theTableGoesBetweenItsMarkers() throws Exception {
        Path page = Files.writeString(
                directory.resolve("page.md"),
                "<!-- bench kernels: made by ./fedcomuon bench kernels --table -->\nold\n<!-- bench: end -->\n");
        int status = new CommandLine(new BenchCommand())
                .execute("kernels", "--table", file("one.json", PROFILE).toString(), "--into", page.toString());
        assertThat(status).isZero();
        assertThat(page).content().contains(ROW).doesNotContain("old");
    }

    @Test
    void withoutTheProgramItSaysWhatIsMissing() {
        assertThatThrownBy(() -> KernelsSuite.program(directory.toString()))
                .isInstanceOf(UsageException.class)
                .hasMessage("bench kernels: there is no kernel_profile in %s; building it requires nvcc"
                        .formatted(directory));
    }

    @Test
    void theProgramIsRunAndItsProgressShown() throws Exception {
        Path program = directory.resolve("kernel_profile");
        Files.writeString(
                program,
                "#!/bin/sh\necho \"1/1 $1 ${2##*/}\"\ncat > \"$3\" <<END\n%s\nEND\n"
                        .formatted(PROFILE.replace("\n", " ")));
        assertThat(program.toFile().setExecutable(true)).isTrue();
        var out = new StringWriter();
        var err = new StringWriter();
        Path json = directory.resolve("out.json");
        List<KernelProfile> profiles =
                KernelsSuite.run(program, new PrintWriter(out), new PrintWriter(err), Optional.of(json));
        assertThat(profiles).hasSize(1);
        assertThat(profiles.getFirst().aims()).hasSize(2);
        assertThat(err.toString()).isEqualToIgnoringNewLines("1/1 write 80\n");
        assertThat(out.toString()).contains(ROW).isEqualTo(table(List.of(json)));

        Files.writeString(program, "#!/bin/sh\necho broken\nexit 3\n");
        assertThatThrownBy(
                        () -> KernelsSuite.run(program, new PrintWriter(out), new PrintWriter(err), Optional.empty()))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("kernel_profile ended with exit code 3: broken");
    }
}
