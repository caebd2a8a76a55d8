package org.fedcomuon;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.FederationRun;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.linalg.Exact;
import org.fedcomuon.linalg.ScaleRule;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.testing.Repository;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What {@code docs/guide.md} shows, done as it says. */
class GuideIT {
    private static final Logger LOG = LoggerFactory.getLogger(GuideIT.class);
    private static final Pattern JAVA = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);

    @TempDir
    private Path directory;

    private Problem problem = Problem.of(Layout.of(Block.vector("none", 1)), 1, 1, k -> {
        throw new AssertionError();
    });
    private Method method =
            new FedCoMuon(Schedule.constant(1), Schedule.constant(1), Schedule.constant(1), Muon.standard());

    record Client(List<Double> data) implements Loss {
        @Override
        public double evaluate(Sample sample, Point w, Point gradient) {
            double x = data.get(sample.random().nextInt(data.size()));
            double loss = 0;
            for (int i = 0; i < w.values().length(); i++) {
                double error = w.values().get(i) - x;
                loss += error * error / 2;
                gradient.values().set(i, error);
            }
            return loss;
        }
    }

    @BeforeEach
    void describe() {
        Layout layout = Layout.of(Block.matrix("weight", 2, 3), Block.vector("bias", 2));
        Problem problem = Problem.ofLosses(
                layout, List.of(new Client(List.of(1.0, 2.0)), new Client(List.of(3.0))), new ExponentialRisk(0.5));
        var method = new FedCoMuon(
                Schedule.constant(0.01),
                Schedule.constant(0.2),
                Schedule.constant(0.1),
                Muon.standard()); // eta, alpha, beta
        this.problem = problem;
        this.method = method;
    }

    @Test
    void aMatrix() {
        float[] result;
        try (var device = Devices.open("cpu:0");
                var m = device.allocate("M", ElementType.FLOAT32, 6);
                var plan = new Exact().plan(device, 1, 2, 3, ElementType.FLOAT32, ScaleRule.NONE)) {
            m.copyIn(0, 1, 2, 3, 4, 5, 6); // 2 x 3, row by row
            plan.orthogonalize(m.batch(1, 6), m.batch(1, 6)); // U V^T, in place
            result = m.toFloats(0, 6);
        }
        assertThat(result[0] * result[0] + result[1] * result[1] + result[2] * result[2])
                .isCloseTo(1, within(1e-5F));
    }

    @Test
    void aRun() throws Exception {
        float[] weights;
        Result result = Federation.of(problem, method)
                .iterations(500) // T local steps
                .tau(5) // of them in a round
                .seed(42)
                .build()
                .run();
        weights = result.weights().block("weight").toArray();
        assertThat(weights).hasSize(6);
    }

    @Test
    void inTheBackground() throws Exception {
        Listener listener = new Listener() {
            @Override
            public void onRound(Round round) {
                LOG.info("round {}: mean loss {}", round.number(), round.meanLoss());
            }
        };
        FederationRun run = Federation.of(problem, method)
                .name("demand") // for logs, meters, flight recordings and threads
                .iterations(1_000_000_000)
                .tau(5)
                .checkpoints(directory, 10) // every ten rounds, and when it stops
                .listener(listener)
                .build()
                .start();
        run.stop();
        Result stopped = run.result().get(1, TimeUnit.MINUTES);
        run.close();

        long steps = new CheckpointStore(directory)
                .newest()
                .map(CheckpointStore::step)
                .orElse(0L);
        Result resumed = Federation.of(problem, method)
                .iterations(steps + 10)
                .tau(5)
                .checkpoints(directory, 10)
                .resume(directory)
                .build()
                .run();
        assertThat(steps).isEqualTo(stopped.step());
        assertThat(resumed.step()).isEqualTo(steps + 10);
    }

    @Test
    void everyPieceOfJavaInTheGuideIsHere() throws IOException {
        String here = Files.readString(Path.of("test", "java", "org", "fedcomuon", "GuideIT.java"));
        var pieces = new ArrayList<String>();
        JAVA.matcher(Files.readString(Repository.root().resolve("docs/guide.md")))
                .results()
                .forEach(piece -> pieces.add(piece.group(1)));
        assertThat(pieces)
                .hasSizeGreaterThan(5)
                .allSatisfy(piece -> assertThat(flat(here)).contains(flat(piece)));
    }

    /** Without what a formatter decides. */
    private static String flat(String java) {
        return java.replaceAll("\\s+", "");
    }
}
