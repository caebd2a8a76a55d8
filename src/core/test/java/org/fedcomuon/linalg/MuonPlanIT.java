package org.fedcomuon.linalg;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.device.Precision;
import org.fedcomuon.testing.GpuSuite;
import org.fedcomuon.testing.TestDevices;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** A model's matrices together give what each gives alone, for all clients and for some. */
@GpuSuite
@ParameterizedClass
@MethodSource("org.fedcomuon.testing.TestDevices#kinds")
class MuonPlanIT {
    @Parameter
    private String name;

    /** Two of one small shape, a vector's gap, a tall one, a large one and a wide large one. */
    private static final List<NewtonSchulzSpec.Block> BLOCKS = List.of(
            NewtonSchulzSpec.Block.at(0, 6, 25),
            NewtonSchulzSpec.Block.at(150, 6, 25),
            NewtonSchulzSpec.Block.at(310, 40, 7),
            NewtonSchulzSpec.Block.at(590, 130, 140),
            NewtonSchulzSpec.Block.at(18790, 130, 290));

    private static final int LENGTH = 18790 + 130 * 290;
    private static final int CLIENTS = 5;

    /** Fewer for a device that is simulated: two small ones and two beyond, one of them for the Gram form. */
    private List<NewtonSchulzSpec.Block> blocks() {
        return TestDevices.isSimulated(name)
                ? List.of(
                        BLOCKS.get(0),
                        BLOCKS.get(2),
                        NewtonSchulzSpec.Block.at(590, 129, 130),
                        NewtonSchulzSpec.Block.at(18790, 129, 258))
                : BLOCKS;
    }

    static Stream<Orthogonalizer> orthogonalizers() {
        return Stream.of(
                new Auto(Coefficients.jordan(5)),
                new NewtonSchulz(Coefficients.jordan(5)),
                new GramNewtonSchulz(Coefficients.jordan(5)),
                new Auto(Coefficients.jordan(5), Precision.TF32),
                new Auto(Coefficients.jordan(5), Precision.BF16),
                new Auto(Coefficients.jordan(5), Precision.FP32, Orthogonalizer.Products.CUBLAS),
                new GramNewtonSchulz(Coefficients.jordan(5), Precision.BF16, Orthogonalizer.Products.CUBLAS),
                new Exact(),
                new ExactSvd());
    }

    @ParameterizedTest
    @MethodSource("orthogonalizers")
    void stepsEveryBlockOfTheClientsItIsGiven(Orthogonalizer orthogonalizer) {
        assumePossible(orthogonalizer);
        try (Device device = TestDevices.open(name);
                Buffer m = random(device, "M");
                Buffer w = random(device, "W");
                Buffer expected = device.allocate("expected", ElementType.FLOAT32, (long) CLIENTS * LENGTH);
                MuonPlan plan = MuonPlan.of(orthogonalizer, device, CLIENTS, blocks(), ScaleRule.ASPECT)) {
            for (int first = 0; first < CLIENTS; first++) {
                for (int count = 1; first + count <= CLIENTS; count++) {
                    if (TestDevices.isSimulated(name) && (first != 1 || count != 2)) {
                        continue; // a simulation has no time for more
                    }
                    expected.copyFrom(w, 0, 0, w.length());
                    for (int k = first; k < first + count; k++) {
                        alone(orthogonalizer, device, m, k, expected);
                    }
                    plan.step(part(m, first, count), 0.1, part(w, first, count));
                    assertThat(w.toFloats(0, CLIENTS * LENGTH)).isEqualTo(expected.toFloats(0, CLIENTS * LENGTH));
                }
            }
        }
    }

    /**
     * A round begins with a step of one client for all, so that a plan has fewer clients in one call than in the next.
     * As many matrices as make the room for their norms longer than a line, and of several pieces each.
     */
    @Test
    void fewerClientsAndThenAllGiveTheSame() {
        int count = 20;
        int size = 2 * 2100;
        var blocks = new ArrayList<NewtonSchulzSpec.Block>();
        for (int i = 0; i < count; i++) {
            blocks.add(NewtonSchulzSpec.Block.at((long) i * size, 2, size / 2));
        }
        long length = (long) count * size;
        try (Device device = TestDevices.open(name);
                Buffer m = device.allocate("M", ElementType.FLOAT32, CLIENTS * length);
                Buffer w = device.allocate("W", ElementType.FLOAT32, CLIENTS * length);
                MuonPlan plan =
                        MuonPlan.of(new Auto(Coefficients.jordan(1)), device, CLIENTS, blocks, ScaleRule.NONE)) {
            var random = new SplittableRandom(3);
            var values = new float[Math.toIntExact(CLIENTS * length)];
            for (int i = 0; i < values.length; i++) {
                values[i] = (float) random.nextGaussian();
            }
            m.copyIn(0, values);
            var results = new ArrayList<float[]>();
            for (int clients : new int[] {CLIENTS, 1, CLIENTS}) {
                w.zero();
                plan.step(new Batch(m, 0, clients, length, length), 1, new Batch(w, 0, clients, length, length));
                results.add(w.toFloats(0, Math.toIntExact(CLIENTS * length)));
            }
            assertThat(results.get(2)).isEqualTo(results.get(0));
            assertThat(Arrays.copyOf(results.get(1), (int) length))
                    .isEqualTo(Arrays.copyOf(results.get(0), (int) length));
        }
    }

    /** Room for two clients, for one, and for less than one. */
    @ParameterizedTest
    @MethodSource("orthogonalizers")
    void someClientsAtATimeGiveTheSame(Orthogonalizer orthogonalizer) {
        assumePossible(orthogonalizer);
        NewtonSchulzSpec.Block largest = blocks().getLast();
        long size = largest.rows() * largest.cols();
        for (long atOnce : TestDevices.isSimulated(name) ? List.of(size) : List.of(2 * size, size, 1L)) {
            try (Device device = TestDevices.open(name);
                    Buffer m = random(device, "M");
                    Buffer w = random(device, "W");
                    Buffer expected = device.allocate("expected", ElementType.FLOAT32, (long) CLIENTS * LENGTH);
                    MuonPlan plan = MuonPlan.of(orthogonalizer, device, CLIENTS, blocks(), ScaleRule.ASPECT, atOnce)) {
                expected.copyFrom(w, 0, 0, w.length());
                int count = TestDevices.isSimulated(name) ? 2 : CLIENTS;
                for (int k = 0; k < count; k++) {
                    alone(orthogonalizer, device, m, k, expected);
                }
                plan.step(part(m, 0, count), 0.1, part(w, 0, count));
                assertThat(w.toFloats(0, CLIENTS * LENGTH)).isEqualTo(expected.toFloats(0, CLIENTS * LENGTH));

                m.copyIn((count - 1L) * LENGTH + largest.momentumOffset() + 5, Float.NaN);
                assertThatThrownBy(() -> {
                            plan.step(part(m, 0, count), 0.1, part(w, 0, count));
                            device.synchronize();
                        })
                        .isInstanceOfSatisfying(
                                DeviceException.NotFinite.class,
                                e -> assertThat(e.elementOf(m))
                                        .hasValue((count - 1L) * LENGTH + largest.momentumOffset() + 5));
            }
        }
    }

    @Test
    void theRoomForAMatrixOfManyElementsIsThatOfOneClient() {
        assertThat(MuonPlan.together(10, 768, 1024)).isEqualTo(10);
        assertThat(MuonPlan.together(10, 33_278, 768)).isEqualTo(1);
        assertThat(MuonPlan.together(0, 33_278, 768)).isZero();
    }

    /** A GPU decomposes and multiplies by NVIDIA's libraries, which not every machine has; a CPU has no cuBLAS. */
    private void assumePossible(Orthogonalizer orthogonalizer) {
        boolean byLibraries = orthogonalizer instanceof Exact || orthogonalizer instanceof ExactSvd;
        try (Device device = TestDevices.open(name);
                Orthogonalizer.Plan plan =
                        orthogonalizer.plan(device, 1, 130, 130, ElementType.FLOAT32, ScaleRule.NONE)) {
            assertThat(plan.path()).isNotEmpty();
            assumeTrue(!byLibraries || TestDevices.decomposes(device), "no decompositions");
        } catch (DeviceException.Unsupported e) {
            abort(e.getMessage());
        }
    }

    private void alone(Orthogonalizer orthogonalizer, Device device, Buffer m, int client, Buffer w) {
        for (NewtonSchulzSpec.Block block : blocks()) {
            int rows = (int) block.rows();
            int cols = (int) block.cols();
            try (Orthogonalizer.Plan plan =
                    orthogonalizer.plan(device, 1, rows, cols, ElementType.FLOAT32, ScaleRule.ASPECT)) {
                plan.step(
                        part(m, client, 1).slice(block.momentumOffset(), (long) rows * cols),
                        0.1,
                        part(w, client, 1).slice(block.weightOffset(), (long) rows * cols));
            }
        }
    }

    private static Batch part(Buffer buffer, int first, int count) {
        return new Batch(buffer, (long) first * LENGTH, count, LENGTH, LENGTH);
    }

    private static Buffer random(Device device, String label) {
        Buffer buffer = device.allocate(label, ElementType.FLOAT32, (long) CLIENTS * LENGTH);
        var random = new SplittableRandom(label.hashCode());
        var values = new float[CLIENTS * LENGTH];
        for (int i = 0; i < values.length; i++) {
            values[i] = (float) random.nextGaussian();
        }
        buffer.copyIn(0, values);
        return buffer;
    }

    @ParameterizedTest
    @MethodSource("orthogonalizers")
    void whatIsNotFiniteIsNamedByClientAndBlock(Orthogonalizer orthogonalizer) {
        assumePossible(orthogonalizer);
        try (Device device = TestDevices.open(name);
                Buffer m = random(device, "M");
                Buffer w = random(device, "W");
                MuonPlan plan = MuonPlan.of(orthogonalizer, device, CLIENTS, blocks(), ScaleRule.NONE)) {
            for (int i = 0; i < blocks().size(); i++) {
                long bad = 3L * LENGTH + blocks().get(i).momentumOffset() + 5;
                m.copyIn(bad, Float.NaN);
                assertThatThrownBy(() -> {
                            plan.step(part(m, 1, 4), 0.1, part(w, 1, 4));
                            device.synchronize();
                        })
                        .isInstanceOfSatisfying(
                                DeviceException.NotFinite.class,
                                e -> assertThat(e.elementOf(m)).hasValue(bad));
                m.copyIn(bad, 1f);
            }
        }
    }

    @Test
    void moreClientsThanPlannedAreRefused() {
        try (Device device = TestDevices.open(name);
                Buffer m = random(device, "M");
                Buffer w = random(device, "W");
                MuonPlan plan = MuonPlan.of(new ExactSvd(), device, 2, blocks(), ScaleRule.NONE)) {
            assertThatThrownBy(() -> plan.step(part(m, 0, 3), 0.1, part(w, 0, 3)))
                    .isInstanceOf(DeviceException.InvalidOperand.class)
                    .hasMessageContaining("up to 2");
        }
    }

    @Test
    void blocksOfOneShapeShareTheirRoom() {
        try (Device device = TestDevices.open(name)) {
            try (MuonPlan one = MuonPlan.of(
                    new ExactSvd(), device, 3, List.of(NewtonSchulzSpec.Block.at(0, 200, 200)), ScaleRule.NONE)) {
                long bytes = device.liveBytes();
                try (MuonPlan two = MuonPlan.of(
                        new ExactSvd(),
                        device,
                        3,
                        List.of(NewtonSchulzSpec.Block.at(0, 200, 200), NewtonSchulzSpec.Block.at(40_000, 200, 200)),
                        ScaleRule.NONE)) {
                    assertThat(device.liveBytes()).isEqualTo(2 * bytes);
                    assertThat(two).isNotSameAs(one);
                }
            }
            assertThat(device.liveBytes()).isZero();
        }
    }
}
