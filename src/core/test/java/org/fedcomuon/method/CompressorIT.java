package org.fedcomuon.method;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Compressors against their definition, and against what error feedback needs of them. */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#kinds")
class CompressorIT {
    @Parameter
    private String name;

    private static final int COUNT = 5;
    private static final Layout LAYOUT = Layout.of(
            Block.matrix("tall", 9, 4),
            Block.vector("bias", 7),
            Block.matrix("wide", 3, 10),
            Block.matrix("square", 6, 6),
            Block.matrix("one", 1, 1),
            Block.kernel("kernel", 4, 3, 2, 2),
            Block.matrix("embedding", 5, 6).asVector());
    private static final int N = Math.toIntExact(LAYOUT.length());

    private Device device;
    private Clients clients;

    @BeforeEach
    void open() {
        device = TestDevices.open(name);
        assumeTrue(TestDevices.decomposes(device), "no libraries for " + name);
        clients = new Clients(
                device,
                Problem.of(LAYOUT, 1, COUNT, k -> new Nothing()),
                IntStream.range(0, COUNT).boxed().toList(),
                1,
                ClientFault.Policy.FAIL,
                fault -> {},
                1);
    }

    @AfterEach
    void close() {
        if (clients != null) {
            clients.close();
        }
        if (device != null) { // a GPU may not be there
            device.close();
        }
    }

    private static final class Nothing implements Client {
        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {}

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) {}
    }

    private Variable filled(String name, long seed) {
        Variable x = clients.scratch(name, N);
        var random = new SplittableRandom(seed);
        var values = new float[COUNT * N];
        for (int i = 0; i < values.length; i++) {
            values[i] = (float) random.nextGaussian();
        }
        x.buffer().copyIn(0, values);
        return x;
    }

    private static double[] client(Variable x, int k) {
        return x.buffer().toDoubles((long) k * N, N);
    }

    static Stream<Compressor> all() {
        return Stream.of(
                Compressor.none(),
                Compressor.topK(1e-9),
                Compressor.topK(0.1),
                Compressor.topK(0.5),
                Compressor.topK(1),
                Compressor.lowRank(1),
                Compressor.lowRank(2),
                Compressor.lowRank(3),
                Compressor.lowRank(100));
    }

    @ParameterizedTest
    @MethodSource("all")
    void isWhatItSays(Compressor compressor) {
        Variable x = filled("x", 1);
        Variable y = filled("y", 2);
        compressor.on(clients).compress(x, y);
        for (int k = 0; k < COUNT; k++) {
            double[] expected = ReferenceMethods.compressed(compressor, LAYOUT, client(x, k));
            assertThat(ReferenceMatrix.distance(client(y, k), expected))
                    .isLessThan(1e-5 * ReferenceMatrix.norm(expected));
        }
    }

    /** {@code ||x - C(x)|| <= ||x||} for every block, and closer the more may travel. */
    @ParameterizedTest
    @MethodSource("all")
    void contracts(Compressor compressor) {
        Variable x = filled("x", 3);
        Variable y = filled("y", 4);
        compressor.on(clients).compress(x, y);
        for (int k = 0; k < COUNT; k++) {
            double[] before = client(x, k);
            double[] after = client(y, k);
            for (int i = 0; i < LAYOUT.blocks().size(); i++) {
                Block block = LAYOUT.blocks().get(i);
                int from = Math.toIntExact(LAYOUT.offset(i));
                int to = from + Math.toIntExact(block.size());
                double[] whole = Arrays.copyOfRange(before, from, to);
                double[] kept = Arrays.copyOfRange(after, from, to);
                double left = ReferenceMatrix.distance(whole, kept) / ReferenceMatrix.norm(whole);
                double least = switch (compressor) {
                    case Compressor.None none -> 1;
                    case Compressor.TopK top ->
                        Math.max(1, Math.round(top.share() * block.size())) / (double) block.size();
                    case Compressor.LowRank low ->
                        block.update() == Block.Update.VECTOR
                                ? 1
                                : Math.min(1, (double) low.rank() / Math.min(block.rows(), block.cols()));
                };
                assertThat(left * left).as(block.name()).isLessThanOrEqualTo(1 - least + 1e-6);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("all")
    void zeroStaysZero(Compressor compressor) {
        Variable x = clients.scratch("x", N);
        Variable y = filled("y", 5);
        compressor.on(clients).compress(x, y);
        assertThat(y.buffer().toFloats(0, COUNT * N)).containsOnly(0);
    }

    @ParameterizedTest
    @MethodSource("all")
    void leavesThoseAloneThatDoNotTakePart(Compressor compressor) {
        Variable x = filled("x", 6);
        Variable y = filled("y", 7);
        float[] before = y.buffer().toFloats(0, COUNT * N);
        clients.admit(new boolean[] {false, true, true, false, true});
        compressor.on(clients).compress(x, y);
        for (int k = 0; k < COUNT; k++) {
            float[] row = y.buffer().toFloats((long) k * N, N);
            float[] old = Arrays.copyOfRange(before, k * N, (k + 1) * N);
            if (clients.takesPart(k)) {
                double[] expected = ReferenceMethods.compressed(compressor, LAYOUT, client(x, k));
                assertThat(ReferenceMatrix.distance(client(y, k), expected))
                        .isLessThan(1e-5 * ReferenceMatrix.norm(expected));
            } else {
                assertThat(row).isEqualTo(old);
            }
        }
    }

    /** What the server sends has one value for all. */
    @ParameterizedTest
    @MethodSource("all")
    void worksOnASharedValue(Compressor compressor) {
        Variable x = clients.sharedScratch("x", N);
        Variable y = clients.sharedScratch("y", N);
        x.buffer().copyIn(0, filled("values", 8).buffer().toFloats(0, N));
        clients.admit(new boolean[] {false, false, false, true, false});
        compressor.on(clients).compress(x, y);
        double[] expected =
                ReferenceMethods.compressed(compressor, LAYOUT, x.buffer().toDoubles(0, N));
        assertThat(ReferenceMatrix.distance(y.buffer().toDoubles(0, N), expected))
                .isLessThan(1e-5 * ReferenceMatrix.norm(expected));
    }

    @Test
    void aMatrixOfThatRankTravelsWhole() {
        Variable x = clients.scratch("x", N);
        Variable y = clients.scratch("y", N);
        var random = new SplittableRandom(9);
        var values = new float[COUNT * N];
        for (int k = 0; k < COUNT; k++) {
            for (int i = 0; i < LAYOUT.blocks().size(); i++) {
                Block block = LAYOUT.blocks().get(i);
                double[] left = random.doubles(block.rows()).toArray();
                double[] right = random.doubles(block.cols()).toArray();
                for (int r = 0; r < block.rows(); r++) {
                    for (int c = 0; c < block.cols(); c++) {
                        values[k * N + Math.toIntExact(LAYOUT.offset(i)) + r * block.cols() + c] =
                                (float) (left[r] * right[c]);
                    }
                }
            }
        }
        x.buffer().copyIn(0, values);
        Compressor.lowRank(1).on(clients).compress(x, y);
        for (int k = 0; k < COUNT; k++) {
            assertThat(ReferenceMatrix.distance(client(x, k), client(y, k)))
                    .isLessThan(1e-6 * ReferenceMatrix.norm(client(x, k)));
        }
    }

    /** Error feedback: repeating {@code G += C(M - G)} brings G to M. */
    @ParameterizedTest
    @MethodSource("all")
    void whatOneMessageLeavesOutTheNextOnesBring(Compressor compressor) {
        Variable m = filled("M", 10);
        Variable g = clients.scratch("G", N);
        Variable rest = clients.scratch("rest", N);
        Variable message = clients.scratch("message", N);
        Compressor.OnDevice room = compressor.on(clients);
        for (int round = 0; round < 60; round++) {
            rest.set(m);
            rest.add(-1, g);
            room.compress(rest, message);
            g.add(1, message);
        }
        assertThat(ReferenceMatrix.distance(client(m, 2), client(g, 2)))
                .isLessThan(1e-5 * ReferenceMatrix.norm(client(m, 2)));
    }

    /** 36 + 7 + 30 + 36 + 1 + 48 + 30 elements. */
    @Test
    void bytes() {
        assertThat(Compressor.none().bytes(LAYOUT)).isEqualTo(4 * 188);
        // 4, 1, 3, 4, 1, 5 and 3 elements with their indices; for the block of one element that is more than itself.
        assertThat(Compressor.topK(0.1).bytes(LAYOUT)).isEqualTo(8 * 20 + 4);
        assertThat(Compressor.topK(1).bytes(LAYOUT)).isEqualTo(4 * 188);
        // 9 + 4, 7, 3 + 10, 6 + 6, 1, 4 + 12, 30.
        assertThat(Compressor.lowRank(1).bytes(LAYOUT)).isEqualTo(4 * (13 + 7 + 13 + 12 + 1 + 16 + 30));
        // 2 (3 + 10) is less than 30; 3 (6 + 6) is not less than 36; 3 (4 + 12) is not less than 48.
        assertThat(Compressor.lowRank(2).bytes(LAYOUT)).isEqualTo(4 * (26 + 7 + 26 + 24 + 1 + 32 + 30));
        assertThat(Compressor.lowRank(3).bytes(LAYOUT)).isEqualTo(4 * 188);
    }

    @Test
    void names() {
        assertThat(Compressor.none()).hasToString("none");
        assertThat(Compressor.topK(0.25)).hasToString("top-k(0.25)");
        assertThat(Compressor.lowRank(4)).hasToString("low-rank(4)");
    }
}
