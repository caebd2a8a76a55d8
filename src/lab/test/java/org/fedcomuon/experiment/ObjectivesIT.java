package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.fedcomuon.data.ExampleSet;
import org.fedcomuon.data.LabelledDataset;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.GradientCheck;
import org.fedcomuon.problem.Point;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The objectives of presets: their derivatives, what evaluations say, and what training comes to. */
class ObjectivesIT {
    private static final String TANH = "[\"flatten\", {\"dense\": 3}, \"tanh\", {\"dense\": %d}]";

    @TempDir
    private Path temporary;

    private static Configuration configuration(String preset, String settings) {
        var changes = new LinkedHashMap<String, String>();
        for (String setting : settings.split("; ", -1)) {
            int at = setting.indexOf('=');
            changes.put(setting.substring(0, at), setting.substring(at + 1));
        }
        return Configuration.of(Preset.load(preset), changes);
    }

    private static NetworkTask task(Configuration c) {
        return new NetworkTask(c, Optional.empty(), 1, 1, 1, memory -> {});
    }

    private Map<String, Object> train(String preset, String settings) throws Exception {
        var options = new Training.Options(
                List.of("cpu:0"),
                Optional.empty(),
                1,
                Optional.empty(),
                OptionalLong.empty(),
                Optional.empty(),
                false,
                "test");
        Path out = temporary.resolve(Integer.toHexString(settings.hashCode()));
        return new Training(configuration(preset, settings), options, out, Optional.empty(), List.of(), note -> {})
                .run();
    }

    private static double number(Map<String, Object> summary, String name) {
        return ((Number) summary.get(name)).doubleValue();
    }

    /** Jacobians by libtorch and gradients of f against differences; W0 is not zero, which no network learns from. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "mnist-robust;objective=mean; clients=2; split=iid; model=layers; layers=10",
                "mnist-robust;lambda=5; clients=2; split=iid; model=layers; layers=10",
                "mnist-robust;objective=kl; lambda=5; clients=2; split=iid; model=layers; layers=10",
                "mnist-robust;objective=cvar; clients=2; split=iid; model=layers; layers=10",
                "mnist-robust;objective=meta; lambda=5; clients=2; split=iid; model=layers; layers=10",
                "mnist-auc;clients=2; perClient=40; shares=0.2,0.5; model=layers; layers=1",
                "portfolio;markets=2; days=30; assets=5",
                "policy-evaluation;chains=2; transitions=30; states=4; features=3; batch=10"
            })
    void derivativesAreRight(String experiment) {
        String[] parts = experiment.split(";", 2);
        String settings = parts[1].endsWith("layers=10")
                ? parts[1].replace("layers=10", "layers=" + TANH.formatted(10))
                : parts[1].replace("layers=1", "layers=" + TANH.formatted(1));
        try (NetworkTask task = task(configuration(parts[0], settings))) {
            Floats w0 = task.initial();
            assertThat(IntStream.range(0, (int) w0.length())
                            .filter(i -> w0.get(i) != 0)
                            .count())
                    .isGreaterThan(w0.length() / 2);
            assertThat(GradientCheck.of(task.problem()).at(w0).samples(1).mistake())
                    .isEmpty();
        }
    }

    /** A program that has this module on its path gets the page too. */
    @Test
    void aRunOfAProgramHasAPage() throws Exception {
        Path out = temporary.resolve("program");
        try (NetworkTask task = task(configuration("portfolio", "markets=2; days=30; assets=5"))) {
            Federation.of(task.problem(), new FedAvg(Schedule.constant(0.05)))
                    .iterations(4)
                    .evaluate(2, task)
                    .record(out)
                    .build()
                    .run();
        }
        assertThat(Files.readString(out.resolve("report.html"))).contains("fedavg", "<h2>Clients</h2>", "</html>");
        assertThat(Files.readAllLines(out.resolve("clients.jsonl"))).hasSize(3 * 2);
    }

    @Test
    void theAreaIsTheShareOfPairsInOrder() {
        var random = new SplittableRandom(1);
        for (int repeat = 0; repeat < 200; repeat++) {
            int count = 2 + random.nextInt(20);
            double[] scores = random.ints(count, 0, 1 + random.nextInt(12))
                    .asDoubleStream()
                    .toArray(); // with ties
            int[] labels = random.ints(count, 0, 2).toArray();
            labels[0] = 0;
            labels[1] = 1;
            double wins = 0;
            int pairs = 0;
            for (int i = 0; i < count; i++) {
                for (int j = 0; j < count; j++) {
                    if (labels[i] == 1 && labels[j] == 0) {
                        pairs++;
                        wins += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
                    }
                }
            }
            assertThat(AucObjective.area(scores, labels)).isCloseTo(wins / pairs, within(1e-12));
        }
    }

    @Test
    void theMeanOfTheLargestCountsOneInPart() {
        double[] losses = {3, 1, 4, 2};
        assertThat(LossObjective.meanOfLargest(losses, 0.5)).isEqualTo(3.5);
        assertThat(LossObjective.meanOfLargest(losses, 1)).isEqualTo(2.5);
        assertThat(LossObjective.meanOfLargest(losses, 0.25)).isEqualTo(4);
        assertThat(LossObjective.meanOfLargest(losses, 0.1)).isCloseTo(4, within(1e-12)); // of less than one
        assertThat(LossObjective.meanOfLargest(losses, 0.375)).isCloseTo((4 + 0.5 * 3) / 1.5, within(1e-12));
        assertThat(losses).containsExactly(3, 1, 4, 2);
    }

    /** What a single-level method once did to d = 4, the mean of g's components, led to 0.065. */
    @Test
    void singleLevelMethodsLearnToRankToo() throws Exception {
        String tiny =
                "; clients=4; perClient=100; shares=0.1,0.5; iterations=40; evaluateEvery=40; model=layers; layers="
                        + TANH.formatted(1).replace("\"dense\": 3", "\"dense\": 16");
        Map<String, Object> fedavg = train("mnist-auc", "method=fedavg; eta=0.05" + tiny);
        assertThat(number(fedavg, "test_auc")).isGreaterThan(0.6);
        assertThat(number(fedavg, "worst_client_auc")).isGreaterThan(0.6);
        assertThat((List<?>) fedavg.get("warnings")).singleElement().asString().contains("single-level", "d = 4");
        Map<String, Object> fedcomuon = train("mnist-auc", "method=fedcomuon" + tiny);
        assertThat(number(fedcomuon, "test_auc")).isGreaterThan(0.6);
        assertThat(fedcomuon).doesNotContainKey("warnings");
    }

    @Test
    void policyEvaluationReachesTheClosedForm() throws Exception {
        Map<String, Object> summary =
                train("policy-evaluation", "chains=4; transitions=100; iterations=300; evaluateEvery=300");
        assertThat(number(summary, "solution_distance")).isLessThan(0.01);
        assertThat(number(summary, "excess_objective")).isBetween(-1e-9, 1e-3 * number(summary, "train_objective"));
    }

    /** The closed form by a way of its own: gradient descent in double precision on the expected residuals. */
    @Test
    void theSolutionOfPolicyEvaluationIsTheMinimum() throws Exception {
        Configuration c = configuration("policy-evaluation", "chains=3; transitions=50; states=5; features=2");
        LabelledDataset data = MarkovData.of(3, 50, 5, 2, c.seed());
        var w = new double[2];
        for (int step = 0; step < 4000; step++) {
            var gradient = new double[2];
            residuals(data, w, gradient);
            for (int j = 0; j < 2; j++) {
                w[j] -= 0.02 * gradient[j];
            }
        }
        double least = residuals(data, w, new double[2]);
        try (NetworkTask task = task(c)) {
            var at = new Point(task.problem().layout(), Floats.of(new float[] {(float) w[0], (float) w[1]}));
            Map<String, Double> metrics = task.evaluate(0, at);
            assertThat(metrics.get("train_objective")).isCloseTo(least, within(1e-5 * least));
            assertThat(metrics.get("excess_objective")).isCloseTo(0, within(1e-9));
            assertThat(metrics.get("solution_distance")).isLessThan(1e-5);
        }
    }

    /** Returns the mean over clients of the squared residuals, 5 states with 2 features each. */
    private static double residuals(LabelledDataset data, double[] w, double[] gradient) {
        ExampleSet set = data.train();
        var values = new float[set.size()];
        var expected = new double[3][5][3]; // of a client and a state: slopes and reward
        for (int i = 0; i < set.count(); i++) {
            set.copyTo(i, values, 0);
            for (int s = 0; s < 5; s++) {
                for (int j = 0; j < 2; j++) {
                    expected[i / 50][s][j] += (values[5 * s + j] - 0.9 * values[5 * s + 2 + j]) / 50;
                }
                expected[i / 50][s][2] += values[5 * s + 4] / 50.0;
            }
        }
        double sum = 0;
        for (double[][] client : expected) {
            for (double[] state : client) {
                double residual = state[0] * w[0] + state[1] * w[1] - state[2];
                sum += residual * residual / 3;
                gradient[0] += 2 * residual * state[0] / 3;
                gradient[1] += 2 * residual * state[1] / 3;
            }
        }
        return sum;
    }

    @Test
    void aPortfolioBeatsEqualWeights() throws Exception {
        Map<String, Object> summary = train("portfolio", "markets=4; days=200; iterations=200; evaluateEvery=100");
        LabelledDataset data = ReturnsData.of(4, 200, 20, 42);
        double equal = meanVariance(data.test());
        assertThat(number(summary, "test_objective")).isLessThan(equal - 0.05);
        try (NetworkTask task = task(configuration("portfolio", "markets=4; days=200"))) {
            long n = task.problem().layout().length();
            Floats weights = Floats.zeros(n);
            for (long i = 0; i < n; i++) {
                weights.set(i, 1.0 / n);
            }
            Map<String, Double> metrics =
                    task.evaluate(0, new Point(task.problem().layout(), weights));
            assertThat(metrics.get("test_objective")).isCloseTo(equal, within(1e-6));
            assertThat(number(summary, "train_objective"))
                    .isLessThan(task.evaluate(0, new Point(task.problem().layout(), task.initial()))
                            .get("train_objective"));
        }
    }

    private static double meanVariance(ExampleSet days) {
        var values = new float[days.size()];
        var returns = new ArrayList<Double>();
        for (int i = 0; i < days.count(); i++) {
            days.copyTo(i, values, 0);
            double sum = 0;
            for (float value : values) {
                sum += value;
            }
            returns.add(sum / values.length);
        }
        double[] all = returns.stream().mapToDouble(Double::doubleValue).toArray();
        double mean = Arrays.stream(all).average().orElseThrow();
        return -mean
                + Arrays.stream(all).map(r -> (r - mean) * (r - mean)).average().orElseThrow();
    }
}
