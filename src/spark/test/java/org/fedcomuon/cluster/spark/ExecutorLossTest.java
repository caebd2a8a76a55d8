package org.fedcomuon.cluster.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkException;
import org.fedcomuon.cluster.MemberFailedException;
import org.fedcomuon.experiment.ConfigurationException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is said of executors that were lost: once, with the host and what can be done. */
class ExecutorLossTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "Command exited with code 52 | exit code 52: its heap is full; give executors more by -Dspark.executor.memory=",
                "Command exited with code 137 | exit code 137: it was killed, by the kernel if the memory of the host was full",
                "Command exited with code 143 | exit code 143: it was ended by somebody, or by what limits its memory",
                "Container exited with a non-zero exit code 53. Error file: x | it cannot write to spark.local.dir",
                "Command exited with code 99 | Command exited with code 99",
                "Executor heartbeat timed out after 120000 ms | Executor heartbeat timed out after 120000 ms",
                "java.io.IOException: Failed to create directory /w/app-1/7 | is the disk of its work directory full, or not writable?",
                "Error running executor: java.io.IOException: No space left on device | is the disk of its work directory full",
            })
    void aReasonIsExplained(String reason, String explanation) {
        assertThat(new ExecutorLoss("7", "host", reason + "\nat a stack").explanation())
                .contains(explanation)
                .hasLineCount(1);
    }

    @Test
    void whatHappensAgainAndAgainIsToldNowAndThen() {
        List<String> notes = new ArrayList<>();
        var losses = new Losses(notes::add);
        for (int executor = 0; executor < 790; executor++) {
            assertThat(losses.add(full(executor))).isTrue();
            assertThat(losses.add(full(executor))).isFalse(); // Spark says it twice
        }
        assertThat(losses.add(new ExecutorLoss("a", "other", "Command exited with code 52")))
                .isTrue();
        assertThat(notes)
                .hasSize(6)
                .allMatch(note -> note.contains("is lost: "))
                .anyMatch(note ->
                        note.startsWith("executor 99 is lost: worker-1: ") && note.endsWith("(100 times so far)"))
                .last()
                .asString()
                .startsWith("executor a is lost: other: exit code 52");
        assertThat(losses.explain("over"))
                .startsWith("over; the last executor lost on worker-1: ")
                .contains("; the last executor lost on other: exit code 52");
        losses.end();
        assertThat(losses.add(full(1000))).isFalse();
        assertThat(notes).hasSize(6);
    }

    private static ExecutorLoss full(int executor) {
        return new ExecutorLoss(
                Integer.toString(executor),
                "worker-1",
                "java.io.IOException: Failed to create directory /work/app-1/" + executor);
    }

    @Test
    void aJobThatFailsNamesTheHost() {
        var lost = new SparkException("""
                Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: \
                Lost task 0.3 in stage 1.0 (TID 9) (10.77.0.3 executor 5): ExecutorLostFailure (executor 5 exited caused \
                by one of the running tasks) Reason: Command exited with code 52
                Driver stacktrace:""");
        assertThat(SparkFailures.explained(lost))
                .isInstanceOf(MemberFailedException.class)
                .hasMessageStartingWith("Spark failed on 10.77.0.3: exit code 52: its heap is full");
        var unseen = new SparkException("""
                Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: \
                Lost task 0.3 in stage 1.0 (TID 9) (10.77.0.3 executor 5): java.lang.ClassNotFoundException: org.fedcomuon.X
                Driver stacktrace:""");
        assertThat(SparkFailures.explained(unseen))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageStartingWith("10.77.0.3: the executors do not see, or cannot read, ");
        assertThat(SparkFailures.explained(new IllegalStateException("stopped\nand much more")))
                .isInstanceOf(MemberFailedException.class)
                .hasMessage("Spark failed: java.lang.IllegalStateException: stopped");
    }

    @Test
    void noMoreExecutorsAreAskedForWhereTheyEndAtOnce() throws Exception {
        var requests = new LinkedBlockingQueue<Integer>();
        try (var limit = new LaunchLimit(() -> 3, requests::add)) {
            for (int i = 0; i < 4; i++) {
                limit.failed();
            }
            limit.succeeded();
            for (int i = 0; i < 4; i++) {
                limit.failed();
            }
            assertThat(requests).isEmpty();
            for (int i = 0; i < 20; i++) {
                limit.failed();
            }
            assertThat(requests.poll(5, TimeUnit.SECONDS)).isEqualTo(3);
            assertThat(requests).isEmpty();
        }
    }
}
