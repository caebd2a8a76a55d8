package org.fedcomuon.sweep;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.xml.sax.InputSource;

/** The page and the tables of a sweep. */
class SweepPageTest {
    static {
        // the module itself needs no XML, so it does not read the JDK's parser unless told
        SweepPageTest.class
                .getModule()
                .addReads(ModuleLayer.boot().findModule("java.xml").orElseThrow());
    }

    private static final SweepRecord BY_LOSS = Sweeps.record(
            Sweeps.LOSS,
            Sweeps.done("robust", "0.1", 1, "validation_loss", 0.5),
            Sweeps.done("robust", "0.1", 2, "validation_loss", 0.6),
            Sweeps.done("robust", "0.2", 1, "validation_loss", 0.4),
            Sweeps.done("robust", "0.2", 2, "validation_loss", 0.3),
            Sweeps.done("mean", "0.1", 1, "validation_loss", 0.1),
            Sweeps.done("mean", "0.1", 2, "validation_loss", 0.2),
            Sweeps.done("mean", "0.2", 1, "validation_loss", 0.3),
            Sweeps.ended("mean", "0.2", 2, Trial.State.DIVERGED, "step 7: <W> of client 3 is \"NaN\""));

    @TempDir
    private Path temporary;

    private static String page(SweepRecord sweep) throws Exception {
        String html = SweepPage.html(sweep);
        DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(new InputSource(new StringReader(html)));
        return html;
    }

    private static long count(String text, String pattern) {
        return Pattern.compile(pattern).matcher(text).results().count();
    }

    @Test
    void everyTrialIsALinkToItsReport() throws Exception {
        String html = page(BY_LOSS);
        BY_LOSS.trials()
                .forEach(trial ->
                        assertThat(html).contains("<a href=\"trials/%s/report.html\">".formatted(trial.name())));
        assertThat(html).contains("diverged: step 7: &lt;W&gt; of client 3 is &quot;NaN&quot;");
    }

    @Test
    void aTrialThatHasFailedHasNoReport() throws Exception {
        String html = page(Sweeps.record(
                Sweeps.ACCURACY,
                Sweeps.ended("a", "0.1", 1, Trial.State.FAILED, "its process was killed"),
                Sweeps.done("a", "0.1", 2, "validation_accuracy", 0.9)));
        assertThat(html)
                .doesNotContain("trials/a-eta=0.1-seed=1/")
                .contains("its process was killed", "1 failed", "no settings have a value for every seed");
    }

    /** The stars of two tables say nothing about each other; one over both would. */
    @Test
    void noStarAcrossObjectives() throws Exception {
        String html = page(BY_LOSS);
        assertThat(html).contains("<h3>Objective: of robust</h3>", "<h3>Objective: of mean</h3>");
        assertThat(count(html, "class=\"text best\"")).isEqualTo(2);
        assertThat(html).doesNotContain("<h3>Objective: </h3>");
        String byAccuracy = page(Sweeps.record(
                Sweeps.ACCURACY,
                Sweeps.done("robust", "0.1", 1, "validation_accuracy", 0.5),
                Sweeps.done("robust", "0.1", 2, "validation_accuracy", 0.6),
                Sweeps.done("mean", "0.1", 1, "validation_accuracy", 0.4),
                Sweeps.done("mean", "0.1", 2, "validation_accuracy", 0.3)));
        assertThat(byAccuracy).doesNotContain("<h3>");
        assertThat(count(byAccuracy, "class=\"text best\"")).isEqualTo(1);
    }

    @Test
    void theBestCellOfAMethodHasTheStrongestColour() throws Exception {
        String html = page(BY_LOSS);
        assertThat(html).contains("style=\"--share:1.000\">★ 0.3500", "style=\"--share:0.000\">0.5500");
        assertThat(html).contains("<td>diverged</td>");
    }

    @Test
    void intervalsAndPairedTestsAreThoseOfTheSeeds() throws Exception {
        String html = page(BY_LOSS);
        // mean 0.35, spread 0.0707, error 0.05, t(1) = 12.706
        assertThat(html).contains("<td>0.3500</td><td>0.0707</td><td>-0.2853 to 0.9853</td>");
        // differences 0.1 and 0.3: t = 2 with one degree of freedom
        assertThat(html).contains("<td>0.295</td>");
    }

    @Test
    void aSweepUnderWaySaysSo() throws Exception {
        assertThat(page(Sweeps.record(Sweeps.ACCURACY, Sweeps.done("a", "0.1", 1, "validation_accuracy", 0.5))))
                .contains("The sweep is not complete.", "1 of 2 trials", "not all seeds");
        assertThat(page(Sweeps.record(Sweeps.ACCURACY))).contains("0 trials");
    }

    @Test
    void tablesHaveARowForEachTrial() throws Exception {
        new SweepFiles(temporary).write(BY_LOSS);
        List<String> lines = Files.readAllLines(temporary.resolve("sweep.csv"));
        assertThat(lines).hasSize(9);
        assertThat(lines.getFirst())
                .isEqualTo("name,method,seed,iterations,minimized,state,reason,trial_seconds,eta,validation_loss");
        assertThat(lines.get(1)).isEqualTo("robust-eta=0.1-seed=1,robust,1,100,of robust,done,,2.5,0.1,0.5");
        assertThat(lines.getLast()).contains("\"step 7: <W> of client 3 is \"\"NaN\"\"\",2.5,0.2,");
        assertThat(Files.readString(temporary.resolve("sweep.json"))).contains("\"complete\" : true");
    }
}
