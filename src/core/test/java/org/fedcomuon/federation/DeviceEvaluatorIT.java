package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Point;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;

/** Evaluations that devices share: who computes which share, on which thread, and of what. */
class DeviceEvaluatorIT {
    private static final int CLIENTS = 5;

    private static Federation.Builder testbed(Evaluator evaluator, String... devices) {
        return Federation.of(AllMethods.problem(AllMethods.fedCoMuon(), CLIENTS), AllMethods.fedCoMuon())
                .iterations(4)
                .tau(2)
                .seed(42)
                .devices(devices)
                .evaluate(2, evaluator);
    }

    /** What a device was asked for. */
    private record Asked(String device, int share, int shares, String thread, Optional<String> memory) {}

    /** Sums the squares of W, each share those of some elements, and remembers who was asked. */
    private static class SquaresOfW implements Evaluator, Evaluator.OnDevices {
        final ConcurrentLinkedQueue<Asked> asked = new ConcurrentLinkedQueue<>();
        final List<Long> steps = new ArrayList<>();

        private static double[] squares(Point w, int share, int shares) {
            var result = new ArrayList<Double>();
            for (long i = w.values().length() * share / shares; i < w.values().length() * (share + 1) / shares; i++) {
                result.add((double) w.values().get(i) * w.values().get(i));
            }
            return result.stream().mapToDouble(x -> x).toArray();
        }

        @Override
        public Map<String, Double> evaluate(long step, Point average) {
            return scores(step, List.of(squares(average, 0, 1))).metrics();
        }

        @Override
        public Optional<Evaluator.OnDevices> onDevices(List<String> devices) {
            return Optional.of(this);
        }

        @Override
        public double[] share(Device device, int share, int shares, Point average) {
            device.synchronize(); // refused on any other thread
            Optional<String> memory = average.values().device();
            asked.add(new Asked(
                    device.name(), share, shares, Thread.currentThread().getName(), memory));
            if (memory.isPresent()) {
                assertThat(average.values().address()).isNotZero();
                assertThat(average.values().length()).isEqualTo(average.layout().length());
                return new double[] {share};
            }
            return squares(average, share, shares);
        }

        @Override
        public Scores scores(long step, List<double[]> shares) {
            steps.add(step);
            double sum = 0;
            for (double[] share : shares) {
                sum += Arrays.stream(share).sum();
            }
            return new Scores(Map.of("squares", sum, "shares", (double) shares.size()), List.of());
        }
    }

    private static Map<Long, Double> squares(Federation.Builder builder) throws InterruptedException {
        var found = new TreeMap<Long, Double>();
        builder.listener(new Listener() {
                    @Override
                    public void onEvaluation(Evaluation evaluation) {
                        found.put(evaluation.step(), evaluation.metrics().get("squares"));
                    }
                })
                .build()
                .run();
        return found;
    }

    @Test
    void everyDeviceComputesItsShareOnItsThread() throws Exception {
        var evaluator = new SquaresOfW();
        Map<Long, Double> shared = squares(testbed(evaluator, "cpu:0", "cpu:1", "cpu:2"));
        assertThat(evaluator.steps).containsExactly(0L, 2L, 4L);
        assertThat(evaluator.asked).hasSize(9);
        for (int i = 0; i < 3; i++) {
            String device = "cpu:" + i;
            var expected = new Asked(device, i, 3, "federation-" + device, Optional.empty());
            assertThat(evaluator.asked.stream().filter(expected::equals)).hasSize(3);
        }
        Map<Long, Double> alone =
                squares(testbed((step, average) -> new SquaresOfW().evaluate(step, average), "cpu:0"));
        assertThat(alone.keySet()).isEqualTo(shared.keySet());
        alone.forEach((step, value) ->
                assertThat(shared.get(step)).isCloseTo(value, org.assertj.core.api.Assertions.within(1e-12 * value)));
    }

    @Test
    void theAverageStaysInTheMemoryOfAGpu() throws Exception {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
        var evaluator = new SquaresOfW();
        Map<Long, Double> found = squares(testbed(evaluator, "cudasim:0", "cudasim:1"));
        assertThat(found).containsOnlyKeys(0L, 2L, 4L).containsValue(1.0); // 0 + 1, of either share
        for (int i = 0; i < 2; i++) {
            String device = "cudasim:" + i;
            assertThat(evaluator.asked).contains(new Asked(device, i, 2, "federation-" + device, Optional.of(device)));
        }
    }

    @Test
    void aShareThatFailsEndsTheRun() {
        var evaluator = new SquaresOfW() {
            @Override
            public double[] share(Device device, int share, int shares, Point average) {
                if (share == 1) {
                    throw new IllegalStateException("no share of " + device.name());
                }
                return super.share(device, share, shares, average);
            }
        };
        assertThatThrownBy(() -> testbed(evaluator, "cpu:0", "cpu:1").build().run())
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("no share of cpu:1");
        assertThat(evaluator.steps).isEmpty();
    }
}
