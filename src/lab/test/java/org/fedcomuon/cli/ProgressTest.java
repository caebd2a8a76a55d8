package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class ProgressTest {
    private final StringWriter text = new StringWriter();

    @Test
    void elsewhereThanOnATerminalAContestIsALineAtItsBeginning() {
        Progress progress = new Progress(new PrintWriter(text), false, "turn", 0);
        for (int contest = 0; contest < 2; contest++) {
            for (int done = 0; done <= 50; done++) { // in far less than the ten seconds between two lines
                progress.onTurn("contest " + contest, done, 50);
            }
        }
        assertThat(text.toString().lines()).containsExactly("contest 0 (0 of 50 done)", "contest 1 (0 of 50 done)");
    }

    @Test
    void onATerminalEveryTurnIsABarThatTheResultsReplace() {
        Progress progress = new Progress(new PrintWriter(text), true, "turn", 0);
        progress.onTurn("ours", 0, 4);
        progress.onTurn("theirs", 1, 4);
        progress.onTurn("all", 4, 4);
        assertThat(text.toString().split("\r\u001b\\[K", -1))
                .hasSize(4)
                .satisfies(shown -> assertThat(shown[1]).isEqualTo("[........................] 0/4    ours"))
                .satisfies(
                        shown -> assertThat(shown[2]).matches("\\[######\\.{18}] 1/4  \\S+ turns/s  0s left  theirs"))
                .satisfies(shown -> assertThat(shown[3]).isEmpty());
    }

    @Test
    void slowStepsAreToldBySecondsPerStep() throws InterruptedException {
        Progress progress = new Progress(new PrintWriter(text), true, "turn", 0);
        progress.onTurn("slow", 0, 10);
        Thread.sleep(1100);
        progress.onTurn("slow", 1, 10);
        assertThat(text.toString()).containsPattern("1/10  1\\.[1-9] s/turn  1[0-9]s left  slow");
    }
}
