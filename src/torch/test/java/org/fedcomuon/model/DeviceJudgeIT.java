package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.method.FedAvg;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Risk;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Models that devices judge in their own memory. There is no GPU here: devices of the CPU stand for them, and copies of
 * tensors for those on a GPU.
 */
class DeviceJudgeIT {
    private static final boolean ALL = true;

    /** Returns the scores as metrics: nothing is lost on the way. */
    private static Evaluator.Scores metrics(List<Judge.Score> scores) {
        return new Evaluator.Scores(
                Map.of(),
                scores.stream()
                        .map(score -> Map.of(
                                "loss", score.loss(), "accuracy", score.accuracy(), "count", (double) score.count()))
                        .toList());
    }

    private static Evaluator.Scores evaluated(Evaluator.OnDevices evaluator, Point w, int shares) throws Exception {
        var parts = new ArrayList<double[]>();
        for (int share = 0; share < shares; share++) {
            try (Device device = Devices.open("cpu:" + share, 1, InstructionSet.AUTO)) {
                parts.add(evaluator.share(device, share, shares, w));
            }
        }
        return evaluator.scores(0, parts);
    }

    /** Sets of several batches, of one that is not full, and of one example. */
    @ParameterizedTest
    @EnumSource
    void theNumberOfSharesDoesNotChangeABit(TinyModels model) throws Exception {
        List<Examples> sets = List.of(model.examples(700), model.examples(30), model.examples(1));
        List<MetaLearning.Episode> episodes = List.of(
                MetaLearning.Episode.split(model.examples(700), 30),
                MetaLearning.Episode.split(model.examples(300), 40),
                MetaLearning.Episode.split(model.examples(3), 1));
        try (Arena arena = Arena.ofShared();
                var judge = new Judge(model.network, 2, devices -> ALL);
                var meta = new MetaJudge(model.network, Adaptation.exact(0.1), 2, devices -> ALL)) {
            Point w = model.start(arena);
            Evaluator.Scores plain = metrics(judge.scores(w, sets));
            Evaluator.Scores adapted = metrics(meta.score(w, episodes));
            Evaluator.OnDevices shared = judge.onDevices(List.of("cpu:0"), sets, DeviceJudgeIT::metrics)
                    .orElseThrow();
            Evaluator.OnDevices sharedMeta = meta.onDevices(List.of("cpu:0"), episodes, DeviceJudgeIT::metrics)
                    .orElseThrow();
            for (int shares : new int[] {1, 2, 3, 50}) { // also more than there are batches
                assertThat(evaluated(shared, w, shares)).isEqualTo(plain);
                assertThat(evaluated(sharedMeta, w, shares)).isEqualTo(adapted);
            }
            assertThat(w.values().toArray()).isEqualTo(model.weights()); // unchanged
        }
    }

    /** The loss is that of the parameters that are given, not of those of an evaluation before. */
    @Test
    void everyEvaluationIsOfItsOwnParameters() throws Exception {
        TinyModels model = TinyModels.CNN;
        List<Examples> sets = List.of(model.examples(300));
        try (Arena arena = Arena.ofShared();
                var judge = new Judge(model.network, 1, devices -> ALL)) {
            Evaluator.OnDevices shared = judge.onDevices(List.of("cpu:0"), sets, DeviceJudgeIT::metrics)
                    .orElseThrow();
            Point w = model.start(arena);
            Evaluator.Scores before = evaluated(shared, w, 1);
            w.values().fill(0);
            assertThat(evaluated(shared, w, 1))
                    .isEqualTo(metrics(judge.scores(w, sets)))
                    .isNotEqualTo(before);
        }
    }

    @Test
    void examplesAreBroughtOnceIfTheyFit() throws Exception {
        TinyModels model = TinyModels.CNN;
        List<Examples> parts = Tally.parts(model.network, model.examples(1000));
        assertThat(parts).hasSize(4);
        long each =
                parts.getFirst().inputs().nbytes() + parts.getFirst().labels().nbytes();
        var tasks =
                parts.stream().map(part -> new CopiedTask(model.network, part)).toList();
        try (Arena arena = Arena.ofShared();
                var judge = new Judge(model.network, 1)) {
            Point w = model.start(arena);
            Evaluator.Scores expected = metrics(judge.scores(w, List.of(model.examples(1000))));
            // room for everything, for one batch and a half, and for nothing: copies of two tensors per batch
            for (var expectation : Map.of(
                            4 * each, List.of(8, 0, 0), each * 3 / 2, List.of(8, 6, 6), 0L, List.of(8, 8, 8))
                    .entrySet()) {
                var copies = new AtomicInteger();
                try (var on = new DeviceJudge(
                        tasks, List.of(parts), DeviceJudgeIT::metrics, expectation.getKey(), (at, tensor) -> {
                            copies.incrementAndGet();
                            return tensor.clone();
                        })) {
                    for (int copied : expectation.getValue()) {
                        copies.set(0);
                        assertThat(evaluated(on, w, 1)).isEqualTo(expected);
                        assertThat(copies).hasValue(copied);
                    }
                }
            }
        }
    }

    /** As the judge's own, but for tests that bring copies. */
    private record CopiedTask(Network network, Examples examples) implements DeviceJudge.Task {
        @Override
        public List<Tensor> tensors() {
            return List.of(examples.inputs(), examples.labels());
        }

        @Override
        public Tensor sums(Parameters w, List<Tensor> here) {
            return Tally.sums(network, w, new Examples(here.get(0), here.get(1)));
        }
    }

    /** On the CPU all cores judge, on a simulated GPU there is no libtorch, and of a mixture the host takes care. */
    @Test
    void onlyGpusThatLibtorchComputesOnJudge() {
        TinyModels model = TinyModels.CNN;
        List<Examples> sets = List.of(model.examples(3));
        try (var judge = new Judge(model.network, 1)) {
            for (List<String> devices : List.of(
                    List.of("cpu:0"), List.of("cpu:0", "cpu:1"), List.of("cudasim:0"), List.of("cudasim:0", "cpu:0"))) {
                assertThat(judge.onDevices(devices, sets, DeviceJudgeIT::metrics))
                        .isEmpty();
            }
        }
        var asked = new ArrayList<List<String>>();
        try (var judge = new Judge(model.network, 1, devices -> {
            asked.add(devices);
            return devices.stream().allMatch(device -> device.startsWith("cuda:"));
        })) {
            assertThat(judge.onDevices(List.of("cuda:0", "cuda:1"), sets, DeviceJudgeIT::metrics))
                    .isPresent();
            assertThat(judge.onDevices(List.of("cuda:0", "cpu:0"), sets, DeviceJudgeIT::metrics))
                    .isEmpty();
        }
        assertThat(asked).hasSize(2);
    }

    /** Whole runs: the metrics of an evaluation on the host, and of those that devices share. */
    @Test
    void runsHaveTheSameMetricsWhereverTheyAreJudged() throws Exception {
        List<List<Evaluation>> onHost = List.of(run(false, "cpu:0"), run(false, "cpu:0", "cpu:1"));
        List<List<Evaluation>> onDevices = List.of(run(true, "cpu:0"), run(true, "cpu:0", "cpu:1", "cpu:2"));
        List<?> expected = scores(onHost.getFirst());
        assertThat(expected).hasSize(3);
        Stream.concat(onHost.stream(), onDevices.stream())
                .forEach(run -> assertThat(scores(run)).isEqualTo(expected));
    }

    /** Remembers the threads that use it. */
    private record WatchedNetwork(Network network, Set<String> threads) implements Network {
        @Override
        public Layout layout() {
            return network.layout();
        }

        @Override
        public OptionalLong activations(int batch) {
            return network.activations(batch);
        }

        @Override
        public Tensor logits(Parameters parameters, Tensor input, Dropout dropout) {
            threads.add(Thread.currentThread().getName());
            return network.logits(parameters, input, dropout);
        }
    }

    private static List<?> scores(List<Evaluation> run) {
        return run.stream()
                .map(each -> List.of(each.step(), each.metrics(), each.clients()))
                .toList();
    }

    private static List<Evaluation> run(boolean shared, String... devices) throws Exception {
        TinyModels model = TinyModels.CNN;
        Examples examples = model.examples(600);
        List<int[]> clients = IntStream.range(0, 3)
                .mapToObj(k -> IntStream.range(200 * k, 200 * k + 150 + 25 * k).toArray())
                .toList();
        Set<String> threads = ConcurrentHashMap.newKeySet();
        Network watched = new WatchedNetwork(model.network, threads);
        var problem = new Classification(model.network, examples, clients, 4, Risk.mean());
        var evaluations = new ArrayList<Evaluation>();
        try (var judge = new ClassificationJudge(
                new Judge(watched, 2, names -> shared),
                clients.stream().map(examples::select).toList(),
                model.examples(270),
                List.of(model.examples(30)),
                new ClassificationJudge.Metrics(List.of(150, 175, 200), false, losses -> losses[0]))) {
            Federation.of(problem, new FedAvg(Schedule.constant(0.05)))
                    .iterations(4)
                    .tau(2)
                    .devices(devices)
                    .evaluate(2, judge)
                    .listener(new Listener() {
                        @Override
                        public void onEvaluation(Evaluation evaluation) {
                            evaluations.add(evaluation);
                        }
                    })
                    .build()
                    .run();
        }
        if (shared) {
            assertThat(threads)
                    .containsExactlyInAnyOrderElementsOf(
                            Stream.of(devices).map(name -> "federation-" + name).toList());
        } else {
            assertThat(threads).isNotEmpty().allMatch(name -> name.startsWith("judge-"));
        }
        return evaluations;
    }
}
