package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.junit.jupiter.api.Test;

/** A network of one's own on arrays of one's own, by public means only. */
class OwnNetworkIT {
    // @start region="network"
    static final class SmallCnn implements Network {
        private final Layout layout =
                Layout.of(Stream.of(Layers.convolutionBlocks("conv", 1, 8, 3), Layers.denseBlocks("head", 8 * 3 * 3, 2))
                        .flatMap(List::stream)
                        .toList());

        @Override
        public String name() {
            return "small-cnn";
        }

        @Override
        public Layout layout() {
            return layout;
        }

        @Override
        public Tensor logits(Parameters p, Tensor input, Dropout dropout) {
            Tensor x = torch.relu(Layers.maxPool(Layers.convolution(p, "conv", input, 1, 0), 2, 2));
            return Layers.dense(p, "head", dropout.apply(x.flatten(1, -1), 0.1));
        }
    }
    // @end

    private static final int SIDE = 8;
    private static final int COUNT = 120;

    /** Horizontal and vertical stripes, with noise. */
    private static Examples stripes(long seed) {
        var random = new SplittableRandom(seed);
        var pixels = new float[COUNT * SIDE * SIDE];
        int[] labels = random.ints(COUNT, 0, 2).toArray();
        for (int i = 0; i < pixels.length; i++) {
            int at = i % (SIDE * SIDE);
            int stripe = labels[i / (SIDE * SIDE)] == 0 ? at / SIDE : at % SIDE;
            pixels[i] = (float) (stripe % 2 + 0.3 * random.nextGaussian());
        }
        return Examples.of(pixels, labels, 1, SIDE, SIDE);
    }

    @Test
    void isTrained() throws Exception {
        var network = new SmallCnn();
        List<int[]> clients = IntStream.range(0, 4)
                .mapToObj(k -> IntStream.range(30 * k, 30 * k + 30).toArray())
                .toList();
        var problem = new Classification(network, stripes(1), clients, 10, new ExponentialRisk(1));
        var method = new FedCoMuon(
                Schedule.cosine(0.05, 0.001), Schedule.constant(0.3), Schedule.constant(0.2), Muon.standard());
        Point w = Federation.of(problem, method)
                .iterations(100)
                .tau(5)
                .initial(network.initial(1))
                .build()
                .run()
                .weights();
        try (var judge = new Judge(network, 2)) {
            assertThat(judge.score(w, stripes(2)).accuracy()).isGreaterThan(0.95);
        }
    }

    /** Nobody has counted its activations, and estimates do not pretend that somebody has. */
    @Test
    void whatIsNotKnownOfItsMemoryIsSaid() {
        var network = new SmallCnn();
        assertThat(network.activations(5)).isEmpty();
        MemoryEstimate estimate = MemoryEstimate.gradient(network, 5);
        assertThat(estimate.complete()).isFalse();
        assertThat(estimate.evaluation()).isEqualTo(network.parameters() * Float.BYTES);
        assertThat(MemoryEstimate.gradient(new LeNet(), 5).complete()).isTrue();
        assertThat(Tally.batch(network)).isPositive();
        var counted = new Network() {
            @Override
            public String name() {
                return "counted";
            }

            @Override
            public Layout layout() {
                return network.layout();
            }

            @Override
            public OptionalLong activations(int batch) {
                return OptionalLong.of(0);
            }

            @Override
            public Tensor logits(Parameters parameters, Tensor input, Dropout dropout) {
                throw new UnsupportedOperationException();
            }
        };
        assertThat(Tally.batch(counted)).isPositive();
    }

    @Test
    void startsByTheNamesOfItsBlocks() {
        var network = new SmallCnn();
        assertThat(network.initial(3).toArray())
                .isEqualTo(Initialization.uniform(network.layout(), 3).toArray());
    }

    @Test
    void arraysOfAnotherLengthAreRefused() {
        Examples two = Examples.of(new float[] {1, 2, 3, 4, 5, 6}, new int[] {0, 1}, 3);
        assertThat(two.count()).isEqualTo(2);
        assertThat(two.inputs().size(1)).isEqualTo(3);
        assertThat(two.labels().data_ptr_long().get(1)).isEqualTo(1);
        assertThatThrownBy(() -> Examples.of(new float[5], new int[2], 3))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("5 inputs for 2 labels and examples of the shape [3]");
        assertThatThrownBy(() -> Examples.of(new float[0], new int[2], 0)).hasMessageContaining("shape [0]");
    }
}
