package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.Arena;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;

/** Masks belong to a sample: the same in every evaluation on it, others in another layer or another sample. */
class DropoutIT {
    private static final int SIZE = 100_003; // neither a multiple of a word nor of a chunk

    private final Sample xi = TinyModels.sample(3);

    private static float[] applied(Dropout dropout, double p) {
        Torch.claim();
        Tensor result = dropout.apply(torch.ones(SIZE), p);
        var values = new float[SIZE];
        result.data_ptr_float().get(values);
        return values;
    }

    @Test
    void leavesOutItsShareAndKeepsTheMean() {
        for (double p : new double[] {0.1, 0.5, 0.9}) {
            float[] values = applied(Dropout.of(xi), p);
            int left = 0;
            for (float value : values) {
                if (value == 0) {
                    left++;
                } else {
                    assertThat((double) value).isCloseTo(1 / (1 - p), within(2e-3));
                }
            }
            double deviation = Math.sqrt(p * (1 - p) / SIZE);
            assertThat((double) left / SIZE).isCloseTo(p, within(4 * deviation));
            // Neighbours, and elements four apart, which come from neighbouring numbers, know nothing of each other.
            for (int apart : new int[] {1, 2, 3, 4, 8}) {
                int together = 0;
                for (int i = apart; i < SIZE; i++) {
                    together += values[i] == 0 && values[i - apart] == 0 ? 1 : 0;
                }
                assertThat((double) together / SIZE).isCloseTo(p * p, within(5 * p * deviation + 1e-3));
            }
        }
    }

    @Test
    void theSampleAndTheLayerDecide() {
        float[] first = applied(Dropout.of(xi), 0.1);
        assertThat(applied(Dropout.of(xi), 0.1)).isEqualTo(first);
        assertThat(applied(Dropout.of(TinyModels.sample(4)), 0.1)).isNotEqualTo(first);
        Dropout dropout = Dropout.of(xi);
        assertThat(applied(dropout, 0.1)).isEqualTo(first);
        float[] second = applied(dropout, 0.1);
        assertThat(second).isNotEqualTo(first);
        Dropout other = Dropout.of(xi);
        other.apply(torch.ones(5), 0.3); // a first layer of another size does not change the second
        assertThat(applied(other, 0.1)).isEqualTo(second);
    }

    /** The masks as they were when one core of the host made them in Java, number after number. */
    @Test
    void masksAreThoseOfSplittableRandom() {
        for (int size : new int[] {1, 2, 3, 4, 5, 255, 256, 257, 16_383, 16_384, 16_385, SIZE}) {
            for (double p : new double[] {0.1, 0.5, 0.9999}) {
                Tensor result = Dropout.of(xi).apply(torch.ones(size), p);
                var random = new SplittableRandom(xi.random().nextLong());
                int left = (int) Math.round(p * 65536);
                long bits = 0;
                for (int j = 0; j < size; j++) {
                    bits = j % 4 == 0 ? random.nextLong() : bits >>> 16;
                    float expected = (bits & 0xffff) < left ? 0 : (float) (65536.0 / (65536 - left));
                    assertThat(result.data_ptr_float().get(j))
                            .as("%d of %d", j, size)
                            .isEqualTo(expected);
                }
            }
        }
    }

    /** Recorded before there was a kernel for masks. */
    @Test
    void masksStayWhatTheyWere() throws Exception {
        byte[] mask = new byte[SIZE];
        float[] values = applied(Dropout.of(new Sample(7, 3, Sample.Stream.INNER, 11)), 0.1);
        for (int j = 0; j < SIZE; j++) {
            mask[j] = (byte) (values[j] == 0 ? 1 : 0);
        }
        assertThat(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(mask)))
                .isEqualTo("4f9aecda1613fa142ac58ab4ac74ac57119b90ad314633cc36d27479a8430e6a");
    }

    @Test
    void clientsTogetherHaveTheMasksThatEachHasAlone() {
        Torch.claim();
        List<Sample> samples = List.of(xi, TinyModels.sample(4), TinyModels.sample(5));
        try (Device device = Devices.open("cpu:0", 2, InstructionSet.AUTO)) {
            Dropout together = Dropout.of(samples, device);
            List<Dropout> alone = samples.stream().map(Dropout::of).toList();
            for (long[] shape : new long[][] {{3, 7}, {3, 5, 1001}}) { // the second layer has masks of its own
                Tensor all = together.apply(torch.ones(shape), 0.3);
                for (int k = 0; k < samples.size(); k++) {
                    Tensor own = alone.get(k).apply(torch.ones(shape).select(0, k), 0.3);
                    assertThat(all.select(0, k).equal(own)).isTrue();
                }
            }
            assertThatThrownBy(() -> together.apply(torch.ones(2, 3), 0.3))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("2 x 3 for 3 clients");
        }
    }

    /** The device makes the masks, on its thread; so the calling thread must be that one. */
    @Test
    void theDeviceMakesMasksOfClientsTogether() throws Exception {
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO);
                ExecutorService other = Executors.newSingleThreadExecutor()) {
            Dropout dropout = Dropout.of(List.of(xi), device);
            assertThatThrownBy(() -> other.submit(() -> dropout.apply(torch.ones(4), 0.5))
                            .get())
                    .hasCauseInstanceOf(WrongThreadException.class);
            assertThat(dropout.apply(torch.ones(4), 0.5).numel()).isEqualTo(4);
        }
    }

    @Test
    void nothingIsLeftOutWhenJudged() {
        assertThat(applied(Dropout.none(), 0.5)).containsOnly(1);
        assertThat(applied(Dropout.of(xi), 0)).containsOnly(1);
    }

    @Test
    void bothEvaluationsOfVarianceReductionHaveOneMask() throws Exception {
        TinyModels model = TinyModels.LANGUAGE;
        int[] few = {0, 1, 2}; // less than a batch: every sample has the same data, and only the masks differ
        Client client = new Classification(model.network, model.examples(6), List.of(few), 3, Risk.mean()).client(0);
        try (Arena arena = Arena.ofShared()) {
            Point w = model.start(arena);
            Point same = model.start(arena);
            Point gradient = model.point(arena);
            Point gradientOld = model.point(arena);
            var value = new float[2];
            client.innerAtTwo(
                    xi,
                    w,
                    Floats.of(value).slice(0, 1),
                    new Jacobian(List.of(gradient)),
                    same,
                    Floats.of(value).slice(1, 1),
                    new Jacobian(List.of(gradientOld)));
            assertThat(value[0]).isEqualTo(value[1]);
            assertThat(gradient.values().toArray())
                    .isEqualTo(gradientOld.values().toArray());

            var other = new float[1];
            client.inner(TinyModels.sample(4), w, Floats.of(other), new Jacobian(List.of(gradientOld)));
            assertThat(Math.abs(other[0] - value[0])).isGreaterThan(1e-4f);
        }
    }
}
