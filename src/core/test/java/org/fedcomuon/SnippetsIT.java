package org.fedcomuon;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.cluster.InProcessCluster;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.federation.CheckpointStore;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.Npy;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.format.SafetensorsWriter;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.Orthogonalizer;
import org.fedcomuon.linalg.ScaleRule;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.GradientCheck;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.MatrixQuadratics;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the documentation shows: each region is a snippet of the type that it is about. By its users' means only. */
class SnippetsIT {
    @TempDir
    private Path directory;

    private static final Problem QUADRATICS = new MatrixQuadratics(4, 3, 4, 1, 0.1, Risk.mean(), 1);

    private static Method fedCoMuon() {
        // @start region="method"
        var method = new FedCoMuon(
                Schedule.cosine(0.05, 0.001), // the learning rate, from first to last step
                Schedule.constant(0.5),
                Schedule.power(1, -0.5), // of the number of steps, as the theory has it
                Muon.standard());
        // @end
        return method;
    }

    @Test
    void methods() {
        assertThat(fedCoMuon().parameters()).containsEntry("eta", Schedule.parse("cosine(0.05, 0.001)"));
    }

    @Test
    void devices() {
        // @start region="device"
        try (Device device = Devices.open("cpu:0");
                Buffer gradient = device.allocate("gradient", ElementType.FLOAT32, 6);
                Buffer momentum = device.allocate("momentum", ElementType.FLOAT32, 6)) {
            gradient.copyIn(0, 1f, 2f, 3f, 10f, 20f, 30f);
            // Two clients with three elements each, in one call.
            device.ema(0.5, gradient.batch(2, 3), momentum.batch(2, 3));
            float[] second = momentum.toFloats(3, 3); // 5, 10, 15
            // @end
            assertThat(second).containsExactly(5, 10, 15);
        }
    }

    @Test
    void orthogonalizers() {
        float[] factor;
        // @start region="orthogonalize"
        Orthogonalizer orthogonalizer = new Auto(Coefficients.quintic(12));
        try (Device device = Devices.open("cpu:0");
                Buffer m = device.allocate("M", ElementType.FLOAT32, 4);
                Orthogonalizer.Plan plan = orthogonalizer.plan(device, 1, 2, 2, ElementType.FLOAT32, ScaleRule.NONE)) {
            m.copyIn(0, 0f, 2f, -1f, 0f);
            plan.orthogonalize(m.batch(1, 4), m.batch(1, 4)); // in place; again every step
            factor = m.toFloats(0, 4); // about 0, 1, -1, 0
        }
        // @end
        assertThat(factor).containsExactly(new float[] {0, 1, -1, 0}, within(1e-4f));
    }

    @Test
    void problems() throws InterruptedException {
        // @start region="problem"
        Layout layout = Layout.of(Block.matrix("weight", 2, 3), Block.vector("bias", 2));
        List<Loss> losses = new ArrayList<>();
        for (int k = 0; k < 4; k++) {
            double target = k; // each client would like another one
            losses.add((xi, w, gradient) -> {
                double loss = 0;
                for (long i = 0; i < w.values().length(); i++) {
                    double distance = w.values().get(i) - target;
                    loss += 0.5 * distance * distance;
                    gradient.values().set(i, distance);
                }
                return loss;
            });
        }
        Problem problem = Problem.ofLosses(layout, losses, new ExponentialRisk(10)); // the worst client counts most
        // @end
        Result result =
                Federation.of(problem, fedCoMuon()).iterations(100).build().run();
        assertThat(result.weights().block("bias").get(0)).isBetween(0.5f, 3f);
    }

    @Test
    void clients() throws InterruptedException {
        // @start region="client"
        // Two inner values of one parameter: g = (w, 2w), and f(y) = (y1^2 + (y2 - 4)^2) / 2.
        final class Pair implements Client {
            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                double at = w.values().get(0) + 0.01 * xi.random().nextGaussian(); // the same for the same sample
                value.set(0, at);
                value.set(1, 2 * at);
                jacobian.component(0).values().set(0, 1.0);
                jacobian.component(1).values().set(0, 2.0);
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) {
                gradient.set(0, y.get(0));
                gradient.set(1, y.get(1) - 4);
            }
        }

        Problem problem = Problem.of(Layout.of(Block.vector("w", 1)), 2, 3, k -> new Pair());
        // @end
        // @start region="check"
        GradientCheck.of(problem).require(); // in a test of yours
        // @end
        Result result =
                Federation.of(problem, fedCoMuon()).iterations(200).build().run();
        assertThat(result.weights().values().get(0)).isCloseTo(1.6f, within(0.1f)); // w + 2 (2w - 4) = 0
    }

    @Test
    void federations() throws InterruptedException {
        Problem problem = QUADRATICS;
        Method method = fedCoMuon();
        // @start region="federation"
        Result result = Federation.of(problem, method)
                .devices("cpu:0", "cpu:1")
                .iterations(500)
                .tau(5)
                .seed(42)
                .build()
                .run();
        Point model = result.weights();
        // @end
        assertThat(result.step()).isEqualTo(500);
        assertThat(model.block("W").length()).isEqualTo(12);
    }

    @Test
    void listeners() throws InterruptedException {
        Problem problem = QUADRATICS;
        Method method = fedCoMuon();
        var lines = new ArrayList<String>();
        // @start region="listener"
        var listener = new Listener() {
            @Override
            public void onRound(Round round) {
                lines.add("round %d: %.3f".formatted(round.number(), round.meanLoss()));
            }

            @Override
            public void onEvaluation(Evaluation evaluation) {
                lines.add("step %d: %s".formatted(evaluation.step(), evaluation.metrics()));
            }
        };
        Federation.of(problem, method)
                .iterations(20)
                .tau(5)
                .evaluate(
                        10,
                        (step, average) ->
                                Map.of("first", (double) average.values().get(0)))
                .listener(listener)
                .build()
                .run();
        // @end
        assertThat(lines).hasSize(4 + 3).element(0).asString().startsWith("step 0: {first=");
        assertThat(lines.get(1)).startsWith("round 0: ");
    }

    @Test
    void resuming() throws InterruptedException {
        Problem problem = QUADRATICS;
        Method method = fedCoMuon();
        // @start region="resume"
        Federation.Builder described =
                Federation.of(problem, method).iterations(100).tau(5).checkpoints(directory, 2);
        Federation first = described
                .listener(new Listener() {
                    @Override
                    public void onRound(Round round) {
                        if (round.number() == 6) {
                            throw new IllegalStateException("a crash");
                        }
                    }
                })
                .build();
        try {
            first.run();
        } catch (IllegalStateException crash) {
            // The checkpoint of round 5 is there.
        }
        Result result = Federation.of(problem, method)
                .iterations(100)
                .tau(5)
                .checkpoints(directory, 2)
                .resume(directory) // from the newest; to the bits of a run that was never interrupted
                .build()
                .run();
        // @end
        String whole = Federation.of(problem, method)
                .iterations(100)
                .tau(5)
                .build()
                .run()
                .sha256();
        assertThat(result.sha256()).isEqualTo(whole);
    }

    @Test
    void checkpoints() throws IOException {
        // @start region="checkpoint"
        var store = new CheckpointStore(directory);
        try (var pending =
                store.begin(100, Map.of("method", "mine"), List.of(SafetensorsWriter.Tensor.of("w", Dtype.F32, 3)))) {
            pending.write("w", 0, MemorySegment.ofArray(new float[] {1, 2, 3}));
            pending.commit(); // from now on it survives a crash
        }
        try (SafetensorsFile newest = store.openNewest()) {
            float[] w = newest.floats("w");
            // @end
            assertThat(w).containsExactly(1, 2, 3);
            assertThat(CheckpointStore.step(newest.path())).isEqualTo(100);
        }
    }

    @Test
    void clusters() throws Exception {
        Problem problem = QUADRATICS;
        Method method = fedCoMuon();
        var results = new ArrayList<Result>();
        // @start region="cluster"
        List<Cluster> members = InProcessCluster.of(2); // of MPI, each process would call MpiCluster.join
        try (var threads = Executors.newFixedThreadPool(members.size())) {
            var running = new ArrayList<Future<Result>>();
            for (Cluster member : members) {
                running.add(threads.submit(() -> {
                    try (member) {
                        return Federation.of(problem, method)
                                .cluster(member)
                                .iterations(50)
                                .build()
                                .run();
                    }
                }));
            }
            for (Future<Result> each : running) {
                results.add(each.get());
            }
        }
        // @end
        String alone =
                Federation.of(problem, method).iterations(50).build().run().sha256();
        assertThat(results).extracting(Result::sha256).containsExactly(alone, alone);
    }

    @Test
    void npy() throws IOException {
        // @start region="npy"
        Path file = directory.resolve("matrix.npy"); // numpy.load("matrix.npy")
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment data = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 1, 2, 3, 4, 5, 6);
            Npy.write(file, new Npy.Array(ElementType.FLOAT32, List.of(2L, 3L), false, data));
            Npy.Array array = Npy.read(file, arena);
            // @end
            assertThat(array.shape()).containsExactly(2L, 3L);
            assertThat(array.data().toArray(ValueLayout.JAVA_FLOAT)).containsExactly(1, 2, 3, 4, 5, 6);
        }
    }

    @Test
    void safetensors() throws IOException {
        Path file = directory.resolve("model.safetensors");
        // @start region="safetensors"
        List<SafetensorsWriter.Tensor> tensors = List.of(SafetensorsWriter.Tensor.of("w", Dtype.F32, 2, 3));
        try (var writer = SafetensorsWriter.create(file, Map.of("made", "here"), tensors)) {
            writer.write("w", 0, MemorySegment.ofArray(new float[] {1, 2, 3, 4, 5, 6}));
            writer.commit();
        }
        try (SafetensorsFile written = SafetensorsFile.open(file)) {
            written.verify(); // not a bit has changed
            float[] w = written.floats("w");
            // @end
            assertThat(w).containsExactly(1, 2, 3, 4, 5, 6);
            assertThat(written.metadata()).containsEntry("made", "here");
        }
    }
}
