package org.fedcomuon.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.testing.Slow;
import org.fedcomuon.testing.TrainProcess;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** TensorBoard itself shows what a run wrote, while it is open, each step once. */
@Slow
@Timeout(180)
class TensorBoardIT {
    private static final Pattern ADDRESS = Pattern.compile("TensorBoard \\S+ at (http://\\S+/)");

    @TempDir
    private Path temporary;

    private Optional<Process> started = Optional.empty();

    @AfterEach
    void close() {
        started.ifPresent(tensorBoard -> {
            tensorBoard.descendants().forEach(ProcessHandle::destroyForcibly);
            tensorBoard.destroyForcibly();
        });
    }

    /**
     * Returns the address of TensorBoard.
     *
     * @param fast whether it reads by a program of its own: {@code auto} where there is one, {@code false} in Python
     */
    private String open(Path run, String fast) throws Exception {
        Process tensorBoard = start(run, fast);
        started = Optional.of(tensorBoard);
        var said = new StringBuilder();
        BufferedReader lines = tensorBoard.inputReader(UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Matcher address = ADDRESS.matcher(line);
            if (address.find()) {
                return address.group(1);
            }
            said.append(line).append('\n');
        }
        throw new AssertionError("TensorBoard has ended: " + said);
    }

    private static Process start(Path run, String fast) {
        try {
            return new ProcessBuilder(
                            "tensorboard",
                            "--logdir",
                            run.toString(),
                            "--host",
                            "127.0.0.1",
                            "--port",
                            "0",
                            "--reload_interval",
                            "1",
                            "--load_fast",
                            fast)
                    .redirectErrorStream(true)
                    .start();
        } catch (IOException e) {
            return abort("TensorBoard is missing; install it: pip install tensorboard");
        }
    }

    private static JsonNode get(String address) throws IOException {
        try (InputStream answer = URI.create(address).toURL().openStream()) {
            return JsonMapper.shared().readTree(answer);
        }
    }

    /** Returns the points of a scalar when TensorBoard has loaded as many as there should be, or the last it had. */
    private static NavigableMap<Long, Float> points(String address, String tag, int count) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (true) {
            var points = new TreeMap<Long, Float>();
            try {
                JsonNode answer = get(address + "data/plugin/scalars/scalars?run=tensorboard&tag=" + tag);
                for (JsonNode point : answer) {
                    assertThat(points.put(
                                    point.get(1).asLong(), (float) point.get(2).asDouble()))
                            .as(answer.toString())
                            .isNull();
                }
            } catch (IOException e) {
                assertThat(System.nanoTime())
                        .as("not loaded: " + e)
                        .isLessThan(deadline); // it does not know the run yet
            }
            if (points.size() == count || System.nanoTime() > deadline) {
                return points;
            }
            Thread.sleep(200);
        }
    }

    private static NavigableMap<Long, Float> expected(Path run, String metric) throws IOException {
        var expected = new TreeMap<Long, Float>();
        for (String line : Files.readAllLines(run.resolve("metrics.jsonl"))) {
            JsonNode row = JsonMapper.shared().readTree(line);
            expected.put(row.get("step").asLong(), (float) row.get(metric).asDouble());
        }
        return expected;
    }

    private static void train(Object... arguments) {
        CommandRun run = CommandRun.of(arguments);
        assertThat(run.exitCode()).as(run.err()).isZero();
    }

    @ParameterizedTest
    @ValueSource(strings = {"auto", "false"})
    void showsARunAndItsContinuation(String fast) throws Exception {
        Path run = temporary.resolve("run");
        train(
                "train",
                "mnist-robust",
                "--iterations",
                "10",
                "--checkpoint-every",
                "1",
                "--set",
                "evaluateEvery=1",
                "--set",
                "largest=200",
                "--out",
                run,
                "--tensorboard");
        String address = open(run, fast);
        assertThat(points(address, "test_accuracy", 11)).isEqualTo(expected(run, "test_accuracy"));
        assertThat(points(address, "train_loss", 11)).isEqualTo(expected(run, "train_loss"));
        JsonNode text = get(address + "data/plugin/text/text?run=tensorboard&tag=config");
        assertThat(text.get(0).get("text").asString()).contains("<table>", "<td>evaluateEvery</td>", "mnist-robust");

        // As if it had been killed before the second checkpoint: steps 6 to 10 are done again.
        Files.delete(new CheckpointStore(run.resolve("checkpoints")).file(10));
        assertThat(TrainProcess.checkpoints(run)).hasSize(1);
        train("train", "--resume", run, "--iterations", "12");
        assertThat(points(address, "test_accuracy", 13)).isEqualTo(expected(run, "test_accuracy"));
    }
}
