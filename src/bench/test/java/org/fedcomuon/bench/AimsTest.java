package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.fedcomuon.cli.UsageException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/** What is an aim, when it is missed, and that a check sees it. */
class AimsTest {
    private static final Aims AIMS = Aims.NONE
            .with("\\d+ elements: (?!triad).*", Aim.atLeast(0.85))
            .with("\\d+ elements: copies", Aim.atMost(50).of("ms"));

    @TempDir
    private Path directory;

    @ParameterizedTest
    @CsvSource({
        "at_least, 0.85, 0.80, 0.90, met",
        "at_least, 0.84, 0.80, 0.90, within noise",
        "at_least, 0.84, 0.80, 0.8499, not met",
        "at_least, 0.90, 0.80, 0.82, met", // the ratio of the medians need not be among those of the turns
        "at_least, NaN, NaN, NaN, not met",
        "at_most, 0.85, 0.80, 0.90, met",
        "at_most, 0.86, 0.80, 0.90, within noise",
        "at_most, 0.86, 0.8501, 0.90, not met",
    })
    void anAimIsMissedWhenTheBetterQuartileMissesItToo(
            String bound, double median, double lower, double upper, String verdict) {
        Aim aim = bound.equals("at_least") ? Aim.atLeast(0.85) : Aim.atMost(0.85);
        assertThat(aim.judge(new Figure(median, lower, upper)).verdict()).hasToString(verdict);
    }

    @Test
    void noiseIsThatOfRatiosWithinATurn() {
        Timing ours = Timing.of(new double[] {1, 2, 4, 8, 16}); // the machine slows down for both alike
        Timing theirs = Timing.of(new double[] {3, 6, 12, 24, 40});
        Figure ratio = Figure.ratio(theirs, ours);
        assertThat(ratio).isEqualTo(new Figure(3, 3, 3));
        assertThat(ratio.times(2)).isEqualTo(new Figure(6, 6, 6));
        assertThat(Figure.seconds(ours)).isEqualTo(new Figure(4, 2, 8));
        Timing fewer = Timing.of(new double[] {1});
        assertThatThrownBy(() -> Figure.ratio(fewer, ours)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void aimsAreOfTheRowsThatTheirNamesSay() {
        Figure ratio = Figure.exactly(0.9);
        Map<String, Figure> figures = Map.of(Aim.RATIO, ratio, "ms", Figure.exactly(60));
        assertThat(AIMS.judge("100 elements: mean", figures)).hasSize(1);
        assertThat(AIMS.judge("100 elements: copies", figures))
                .extracting(Judgement::verdict)
                .containsExactly(Judgement.Verdict.MET, Judgement.Verdict.NOT_MET);
        assertThat(AIMS.judge("100 elements: triad", figures)).isEmpty();
        assertThat(AIMS.judge("few elements: mean", figures)).isEmpty();
        assertThatThrownBy(() -> AIMS.judge("100 elements: copies", Map.of(Aim.RATIO, ratio)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("100 elements: copies has no ms");
    }

    private static BenchReport.Row row(String name, double seconds, double... turns) {
        Figure ratio = Figure.of(turns);
        return new BenchReport.Row(name, seconds, 0.02, 0, ratio.median())
                .judged(AIMS, Map.of(Aim.RATIO, ratio, "ms", Figure.exactly(1000 * seconds)));
    }

    private Path run(String name, double... mean) {
        Path file = directory.resolve(name);
        BenchFile.write(
                file,
                List.of(new BenchReport(
                        "compose",
                        "cpu:0 (some processor)",
                        "ratio = ...",
                        List.of(
                                row("100 elements: triad", 0.01, 1),
                                row("100 elements: mean", 0.01, mean),
                                row("100 elements: copies", 0.04, 0.99)))));
        return file;
    }

    @Test
    void aFileKeepsThemAsTheyWere() {
        BenchReport report =
                BenchFile.read(run("a.json", 0.5, 0.75, 1)).reports().getFirst();
        assertThat(report.rows().getFirst().aims()).isEmpty();
        assertThat(report.rows().get(1).aims())
                .containsExactly(new Judgement(Aim.atLeast(0.85), 0.75, 0.875, Judgement.Verdict.WITHIN_NOISE));
        Judgement milliseconds = report.rows().get(2).aims().getLast();
        assertThat(milliseconds.aim()).isEqualTo(Aim.atMost(50).of("ms"));
        assertThat(milliseconds.found()).isCloseTo(40, within(1e-9));
        assertThat(milliseconds.verdict()).isEqualTo(Judgement.Verdict.MET);
    }

    @Test
    void aVerdictThatIsNoneIsRefused() throws Exception {
        Path file = run("a.json", 0.9);
        Files.writeString(file, Files.readString(file).replace("\"met\"", "\"nearly\""));
        assertThatThrownBy(() -> BenchFile.read(file))
                .isInstanceOf(UsageException.class)
                .hasMessageContaining("not written by bench --json");
    }

    @Test
    void tablesHaveThem() {
        List<BenchTable.Run> runs = List.of(BenchFile.read(run("a.json", 0.9)), BenchFile.read(run("b.json", 0.8)));
        assertThat(BenchTable.of(runs))
                .contains("| | ratio | aim | | command |\n|---|---|---|---|---|\n")
                .contains("| 100 elements: mean | 0.80 to 0.90 | >= 0.85 | not met in 1 of 2 | |\n")
                .contains("| 100 elements: copies | 0.99 | >= 0.85; ms <= 50 | met; met (40.0) | |\n");
        var text = new StringWriter();
        ReportText.print(new PrintWriter(text), runs.getLast().reports().getFirst());
        assertThat(text.toString().lines().map(line -> line.strip().replaceAll(" +", " ")))
                .containsSubsequence(
                        "ratio aim ms spread",
                        "1.00 10.000 2.0% 100 elements: triad",
                        "0.80 >= 0.85 not met 10.000 2.0% 100 elements: mean",
                        "0.99 >= 0.85; ms <= 50 met; met (40.0) 40.000 2.0% 100 elements: copies",
                        "aims: 2 met, 1 not met");
    }

    private static int check(StringWriter err, String... args) {
        return new CommandLine(new BenchCommand())
                .setOut(new PrintWriter(new StringWriter()))
                .setErr(new PrintWriter(err))
                .setExecutionExceptionHandler((failure, command, result) -> {
                    err.append(failure.getMessage());
                    return 2;
                })
                .execute(args);
    }

    @Test
    void theCheckFailsBeyondTheNoiseOnly() {
        var err = new StringWriter();
        String met = run("met.json", 0.9).toString();
        String noisy = run("noisy.json", 0.7, 0.8, 0.9).toString();
        String missed = run("missed.json", 0.7, 0.8, 0.82).toString();
        assertThat(check(err, "compose", "--check", "--table", met, noisy)).isZero();
        assertThat(check(err, "--table", missed)).isZero();
        assertThat(err.toString()).isEmpty();
        assertThat(check(err, "--check", "--table", met, missed)).isOne();
        assertThat(err.toString().lines())
                .containsExactly(
                        "fedcomuon: not met: compose, 100 elements: mean: ratio 0.8000, better quartile 0.8100;"
                                + " the aim is >= 0.85");
    }

    @Test
    void whatWasNotMeasuredIsTold() {
        BenchReport report = BenchFile.read(run("a.json", 0.9)).reports().getFirst();
        AimCheck all = new AimCheck().add(report, AIMS);
        assertThat(all.missing()).isEmpty();
        var fewer = new BenchReport("compose", "", "", report.rows().subList(0, 2));
        AimCheck some = new AimCheck().add(fewer, AIMS);
        assertThat(some.missing()).containsExactly("not measured: compose, \\d+ elements: copies: ms <= 50");
        assertThat(some.failures()).isEmpty();
        assertThat(some.summary()).contains("aims: 1 met");
    }

    @Test
    void aCheckOfNothingFails() {
        Path file = directory.resolve("none.json");
        BenchFile.write(file, List.of(new BenchReport("ffi", "", "", List.of(row("no aim", 1, 1)))));
        var err = new StringWriter();
        assertThat(check(err, "--check", "--table", file.toString())).isOne();
        assertThat(err.toString()).contains("--check: no row that was measured has an aim");
    }

    @ParameterizedTest
    @CsvSource({
        "gpu-model --check, bench gpu-model has no aims",
        "compose --small --check, bench at small sizes has no aims",
        "cluster --large --check, bench cluster --large has no aims",
        "compose --device cudasim:0 --check, bench at small sizes has no aims",
    })
    void whatHasNoAimsIsRefused(String args, String reason) {
        var err = new StringWriter();
        assertThat(check(err, args.split(" "))).isEqualTo(2);
        assertThat(err.toString()).isEqualTo("--check: " + reason);
    }
}
