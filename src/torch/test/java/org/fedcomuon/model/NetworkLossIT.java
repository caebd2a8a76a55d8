package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;

/** Tests the libtorch oracle: derivatives against finite differences, and bit-identical results on any thread. */
class NetworkLossIT {
    private static final int COUNT = 30;

    private final Network network = new LeNet();
    private final Layout layout = network.layout();
    private final Examples examples = examples();
    private final NetworkLoss loss = new NetworkLoss(network, examples, xi -> new int[] {1, 4, 7, (int) xi.draw()});
    private final Sample xi = new Sample(1, 0, Sample.Stream.INNER, 9);

    private static Examples examples() {
        var random = new SplittableRandom(5);
        var pixels = new float[COUNT * 784];
        var labels = new long[COUNT];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = (float) random.nextDouble();
        }
        for (int i = 0; i < COUNT; i++) {
            labels[i] = random.nextInt(10);
        }
        return new Examples(Tensor.create(pixels).view(COUNT, 1, 28, 28), Tensor.create(labels));
    }

    private Point point(Arena arena) {
        return new Point(layout, Floats.of(arena.allocate(layout.length() * 4, 64)));
    }

    private Point start(Arena arena) {
        Point w = point(arena);
        w.values().set(Initialization.uniform(layout, 3).toArray());
        return w;
    }

    private Point direction(Arena arena) {
        Point point = point(arena);
        var random = new SplittableRandom(8);
        for (long i = 0; i < layout.length(); i++) {
            point.values().set(i, random.nextGaussian() / Math.sqrt((double) layout.length())); // about unit length
        }
        return point;
    }

    private static double dot(Point a, Point b) {
        double sum = 0;
        for (long i = 0; i < a.layout().length(); i++) {
            sum += (double) a.values().get(i) * b.values().get(i);
        }
        return sum;
    }

    private Point moved(Arena arena, Point w, double step, Point along) {
        Point to = point(arena);
        for (long i = 0; i < layout.length(); i++) {
            to.values().set(i, w.values().get(i) + step * along.values().get(i));
        }
        return to;
    }

    @Test
    void hasThePapersSizes() {
        assertThat(layout.length()).isEqualTo(6 * 25 + 6 + 16 * 150 + 16 + 120 * 256 + 120 + 10 * 120 + 10);
    }

    @Test
    void theGradientIsThatOfTheLoss() {
        try (Arena arena = Arena.ofShared()) {
            Point w = start(arena);
            Point gradient = point(arena);
            Point unused = point(arena);
            gradient.values().fill(77); // whatever was there is overwritten
            double value = loss.evaluate(xi, w, gradient);
            assertThat(value).isBetween(1.5, 3.5); // about log 10
            Point along = direction(arena);
            double h = 5e-3;
            double difference = (loss.evaluate(xi, moved(arena, w, h, along), unused)
                            - loss.evaluate(xi, moved(arena, w, -h, along), unused))
                    / (2 * h);
            assertThat(dot(gradient, along)).isCloseTo(difference, within(0.01 * Math.abs(difference)));
        }
    }

    @Test
    void theHessianProductIsTheDerivativeOfTheGradient() {
        try (Arena arena = Arena.ofShared()) {
            Point w = start(arena);
            Point along = direction(arena);
            Point product = point(arena);
            loss.hessianProduct(xi, w, along, product);
            Point above = point(arena);
            Point below = point(arena);
            double h = 1e-3;
            loss.evaluate(xi, moved(arena, w, h, along), above);
            loss.evaluate(xi, moved(arena, w, -h, along), below);
            double error = 0;
            double size = 0;
            for (long i = 0; i < layout.length(); i++) {
                double difference = (above.values().get(i) - below.values().get(i)) / (2 * h);
                error += Math.pow(difference - product.values().get(i), 2);
                size += difference * difference;
            }
            assertThat(Math.sqrt(error / size)).isLessThan(0.02);
            // Symmetric: <u, H v> = <v, H u>.
            Point other = start(arena);
            Point back = point(arena);
            loss.hessianProduct(xi, w, other, back);
            assertThat(dot(other, product))
                    .isCloseTo(dot(along, back), within(1e-3 * Math.abs(dot(along, back)) + 1e-4));
        }
    }

    @Test
    void twoPointsAndGradientsDoNotMix() {
        try (Arena arena = Arena.ofShared()) {
            Point w = start(arena);
            Point old = moved(arena, w, 0.01, direction(arena));
            Point first = point(arena);
            Point second = point(arena);
            loss.evaluate(xi, w, first);
            float[] alone = first.values().toArray();
            loss.evaluate(xi, old, second);
            loss.evaluate(xi, w, first);
            assertThat(first.values().toArray()).isEqualTo(alone);
            loss.evaluate(xi, w, second); // the other way round
            assertThat(second.values().toArray()).isEqualTo(alone);
        }
    }

    @Test
    void anotherSampleIsAnotherBatch() {
        try (Arena arena = Arena.ofShared()) {
            Point w = start(arena);
            Point gradient = point(arena);
            double one = loss.evaluate(xi, w, gradient);
            assertThat(loss.evaluate(new Sample(1, 0, Sample.Stream.INNER, 10), w, gradient))
                    .isNotEqualTo(one);
            assertThat(loss.evaluate(xi, w, gradient)).isEqualTo(one);
        }
    }

    @Test
    void everyThreadGivesBitIdenticalResults() throws Exception {
        try (Arena arena = Arena.ofShared()) {
            Point w = start(arena);
            Point expected = point(arena);
            loss.evaluate(xi, w, expected);
            var threads = new ArrayList<Thread>();
            List<Point> gradients = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                Point mine = start(arena);
                Point gradient = point(arena);
                gradients.add(gradient);
                var own = new NetworkLoss(network, examples, sample -> new int[] {1, 4, 7, (int) sample.draw()});
                threads.add(Thread.ofPlatform().start(() -> {
                    for (int repeat = 0; repeat < 20; repeat++) {
                        own.evaluate(xi, mine, gradient);
                    }
                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            for (Point gradient : gradients) {
                assertThat(gradient.values().toArray())
                        .isEqualTo(expected.values().toArray());
            }
        }
    }

    @Test
    void startsWithinTheFanIn() {
        float[] w = Initialization.uniform(layout, 1).toArray();
        assertThat(Initialization.uniform(layout, 1).toArray()).isEqualTo(w);
        assertThat(Initialization.uniform(layout, 2).toArray()).isNotEqualTo(w);
        int dense1 = (int) layout.offset(layout.position("dense1.weight"));
        double largest = 0;
        for (float value : Arrays.copyOfRange(w, dense1, dense1 + 120 * 256 + 120)) {
            largest = Math.max(largest, Math.abs(value));
        }
        assertThat(largest).isBetween(0.99 / 16, 1.0 / 16);
    }
}
