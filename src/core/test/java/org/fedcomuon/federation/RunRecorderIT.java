package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.assertj.core.data.Offset;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.OuterFunction;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.ThresholdProblem;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.json.JsonMapper;

/** Tests what a federation leaves in a directory. */
class RunRecorderIT {
    private static final Layout LAYOUT = Layout.of(Block.matrix("w", 2, 3));

    @TempDir
    private Path directory;

    /**
     * Half of the squared distance to a number of each client: f is a square root, so the objective is the distance.
     */
    private static Problem distances() {
        var losses = new ArrayList<Loss>();
        for (int k = 0; k < 3; k++) {
            double wanted = k;
            losses.add((xi, w, gradient) -> {
                double sum = 0;
                for (long i = 0; i < w.values().length(); i++) {
                    double difference = w.values().get(i) - wanted;
                    gradient.values().set(i, difference);
                    sum += difference * difference / 2;
                }
                return sum;
            });
        }
        return Problem.ofLosses(LAYOUT, losses, Risk.of(y -> Math.sqrt(2 * y), y -> 1 / Math.sqrt(2 * y + 1e-9)));
    }

    private Federation.Builder run() {
        Problem problem = distances();
        return Federation.of(problem, AllMethods.fedCoMuonVr())
                .iterations(20)
                .tau(5)
                .seed(3)
                .initial(5, 5, 5, 5, 5, 5)
                .evaluate(10, Evaluator.ofObjective(problem, 2, 1))
                .record(directory.resolve("run"));
    }

    private List<String> lines(String file) throws Exception {
        return Files.readAllLines(directory.resolve("run").resolve(file));
    }

    @Test
    void aRunLeavesAllThatIsKnownOfIt() throws Exception {
        Result result = run().build().run();
        var files = new RunFiles(directory.resolve("run"));
        assertThat(files.readSummary())
                .containsEntry("sha256", result.sha256())
                .containsEntry("method", "fedcomuon-vr")
                .containsEntry("diverged", false)
                .containsEntry("step", 20);
        assertThat(lines("metrics.jsonl")).hasSize(3); // steps 0, 10 and 20
        assertTheTableIsThatOfTheLines();
        assertThat(lines("metrics.csv"))
                .first(InstanceOfAssertFactories.STRING)
                .startsWith("step,round,train_objective,worst_client_objective,seconds,")
                .endsWith(",optimizer_share,communicated_bytes");
        assertThat(lines("clients.jsonl")).hasSize(9).first().asString().startsWith("{\"step\":0,\"client\":0,");
        assertThat(lines("config.yaml")).contains("method: fedcomuon-vr", "seed: 3", "clients: 3", "tau: 5");
        Point model = Point.load(files.model(), LAYOUT);
        assertThat(model.values().toArray()).isEqualTo(result.weights().values().toArray());
        assertThat(new CheckpointStore(files.checkpoints()).newest()).isPresent();
    }

    /** Neither names nor values of these runs have to be in quotes. */
    private void assertTheTableIsThatOfTheLines() throws Exception {
        List<String> table = lines("metrics.csv");
        String[] columns = table.getFirst().split(",");
        var rows = new ArrayList<Map<String, String>>();
        for (String line : table.subList(1, table.size())) {
            String[] fields = line.split(",", -1);
            assertThat(fields).hasSameSizeAs(columns);
            var row = new LinkedHashMap<String, String>();
            for (int i = 0; i < fields.length; i++) {
                if (!fields[i].isEmpty()) {
                    row.put(columns[i], fields[i]);
                }
            }
            rows.add(row);
        }
        var expected = new ArrayList<Map<String, String>>();
        for (String line : lines("metrics.jsonl")) {
            var row = new LinkedHashMap<String, String>();
            JsonMapper.shared()
                    .readTree(line)
                    .properties()
                    .forEach(entry -> row.put(entry.getKey(), entry.getValue().asString()));
            expected.add(row);
        }
        assertThat(rows)
                .usingElementComparator((a, b) -> List.copyOf(a.entrySet()).equals(List.copyOf(b.entrySet())) ? 0 : 1)
                .isEqualTo(expected); // in the same order
    }

    @Test
    void aDirectoryThatHoldsARunIsRefused() throws Exception {
        run().build().run();
        assertThatThrownBy(() -> run().build())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageEndingWith("holds a run already; name another directory, or resume it");
    }

    /** The distances of (5, ..., 5) to (0, ..., 0), (1, ..., 1) and (2, ..., 2). */
    @Test
    void theObjectiveIsThatOfTheProblem() throws Exception {
        Problem problem = distances();
        Evaluator.Scores scores =
                Evaluator.ofObjective(problem, 4, 1).scores(0, new Point(LAYOUT, Floats.of(5, 5, 5, 5, 5, 5)));
        double root = Math.sqrt(6);
        assertThat(scores.clients())
                .extracting(row -> (float) (double) row.get("objective"))
                .containsExactly((float) (5 * root), (float) (4 * root), (float) (3 * root));
        assertThat(scores.metrics().get("train_objective")).isCloseTo(4 * root, Offset.offset(1e-5));
        assertThat(scores.metrics().get("worst_client_objective")).isCloseTo(5 * root, Offset.offset(1e-5));
    }

    @Test
    void aResumedRunContinuesItsFiles() throws Exception {
        String expected = run().build().run().sha256();
        List<String> steps = steps();
        Path first = directory.resolve("run");
        Files.move(first, directory.resolve("whole"));
        var stopping = new Federation[1];
        stopping[0] = run().listener(new Listener() {
                    @Override
                    public void onStep(long step) {
                        if (step == 13) {
                            stopping[0].stop();
                        }
                    }
                })
                .build();
        assertThat(stopping[0].run().stopped()).isTrue();
        assertThat(new RunFiles(first).readSummary()).containsEntry("stopped", true);
        Result resumed = run().resume(new RunFiles(first).checkpoints()).build().run();
        assertThat(resumed.sha256()).isEqualTo(expected);
        assertThat(steps()).isEqualTo(steps);
        assertTheTableIsThatOfTheLines();
        assertThat(lines("clients.jsonl")).hasSize(9);
        assertThat(new RunFiles(first).readSummary()).containsEntry("stopped", false);
    }

    private List<String> steps() throws Exception {
        return lines("metrics.jsonl").stream()
                .map(line -> line.replaceFirst(",\"seconds.*", ""))
                .toList();
    }

    @Test
    void aRunThatDivergesSaysSo() throws Exception {
        Problem problem = Problem.ofLosses(
                LAYOUT,
                List.of((xi, w, gradient) -> {
                    gradient.values().fill(xi.draw() > 5 ? Float.NaN : 1);
                    return 1;
                }),
                Risk.mean());
        Path run = directory.resolve("run");
        assertThatThrownBy(() -> Federation.of(problem, AllMethods.fedCoMuonVr())
                        .iterations(20)
                        .initial(1, 1, 1, 1, 1, 1)
                        .record(run)
                        .build()
                        .run())
                .hasMessageContaining("not finite");
        assertThat(new RunFiles(run).readSummary())
                .containsEntry("diverged", true)
                .containsKey("failure");
        assertThat(new RunFiles(run).model()).doesNotExist();
    }

    @Test
    void mistakesOfAllClientsAreNamed() {
        Problem broken = new Problem() {
            @Override
            public Layout layout() {
                return LAYOUT;
            }

            @Override
            public int innerDimension() {
                return 1;
            }

            @Override
            public int clients() {
                return 4;
            }

            @Override
            public Client client(int k) {
                throw new AssertionError("nobody asks");
            }

            @Override
            public List<String> mistakes(int k) {
                return k % 2 == 0 ? List.of() : List.of("has no examples");
            }
        };
        assertThatThrownBy(() -> Federation.of(broken, AllMethods.fedCoMuonVr())
                        .iterations(1)
                        .build())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("client 1: has no examples; client 3: has no examples");
    }

    @Test
    void aStartOfItsOwnIsTheProblems() throws Exception {
        Problem problem = new ThresholdProblem(distances(), OuterFunction.cvarDual(0.5, 0.1), 7);
        var first = new ArrayList<Map<String, Double>>();
        Federation.of(problem, AllMethods.fedCoMuonVr())
                .iterations(1)
                .evaluate(0, (step, w) -> {
                    first.add(Map.of("t", (double) w.block("threshold").get(0)));
                    return Map.of();
                })
                .build()
                .run();
        assertThat(first.getFirst()).containsEntry("t", 7.0);
    }
}
