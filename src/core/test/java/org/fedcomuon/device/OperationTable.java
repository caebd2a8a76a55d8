package org.fedcomuon.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Every operation of a device, as one line of a table with its reference in double precision:
 * {@link DeviceOperationsIT} runs it through Panama at odd sizes, {@link OperationsGpuIT} on a GPU against the CPU,
 * {@link FaultsIT} with launches that fail. Nothing here is fast.
 */
final class OperationTable {
    /** Sums in double, in another order than the CPU's, rounded to float once. */
    private static final double ROUNDED = 2 * Math.ulp(1.0f);

    /** The double itself. */
    private static final double SUM = 1e-12;

    /** Chains of float32 products, fused and added in another order. */
    private static final double PRODUCT = 1e-5;

    private OperationTable() {}

    /**
     * One call on operands that are made on the way.
     *
     * @param allowed the largest difference between a GPU and the CPU, relative to the largest result; 0 for the same
     *     bits
     */
    record Operation(String name, double allowed, Body body) {
        @Override
        public String toString() {
            return name;
        }
    }

    /**
     * All that it writes must be in buffers of {@code operands}, where it is found, and parameters are drawn from
     * {@code operands} too, so that two of them mixed up show. What it returns compares the results with the reference.
     */
    @FunctionalInterface
    interface Body {
        Runnable run(Device device, Operands operands, int clients, int n);
    }

    static Stream<Operation> operations() {
        return Stream.of(
                new Operation("ema", 0, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    Batch y = operands.normal("y", clients, n);
                    double[][] before = Operands.clients(y);
                    double a = operands.fraction();
                    device.ema(a, x, y);
                    return eachIsNear(y, k -> ema(a, Operands.client(x, k), before[k]), bound(2));
                }),
                new Operation("compose_momentum", 0, (device, operands, clients, n) -> {
                    int d = operands.choose(1, 2, 5, 8, 9);
                    Batch h = operands.normal("H", clients, n * d);
                    Batch v = operands.normal("v", clients, d);
                    Batch m = operands.normal("M", clients, n);
                    double[][] before = Operands.clients(m);
                    double b = operands.fraction();
                    device.composeMomentum(b, h, v, m);
                    return eachIsNear(
                            m, k -> compose(b, Operands.client(h, k), Operands.client(v, k), before[k]), bound(d));
                }),
                new Operation("storm", SUM, (device, operands, clients, n) -> {
                    Batch gNew = operands.normal("Gnew", clients, n);
                    Batch gOld = operands.normal("Gold", clients, n);
                    Batch h = operands.normal("H", clients, n);
                    Buffer norms = operands.doubles("norms", clients);
                    double[][] before = Operands.clients(h);
                    double g = operands.fraction();
                    device.storm(g, gNew, gOld, h, norms.batch(clients, 1));
                    return () -> {
                        eachIsNear(
                                        h,
                                        k -> storm(g, Operands.client(gNew, k), Operands.client(gOld, k), before[k]),
                                        bound(2))
                                .run();
                        assertNorms(norms, h);
                    };
                }),
                new Operation("project_compose_momentum", 0, (device, operands, clients, n) -> {
                    int d = operands.choose(1, 2, 3, 8);
                    Batch h = operands.normal("H", clients, d * n);
                    Batch v = operands.normal("v", clients, d);
                    Batch m = operands.normal("M", clients, n);
                    double[][] beforeH = Operands.clients(h);
                    double[][] beforeM = Operands.clients(m);
                    double[] norms = norms(beforeH);
                    double radius = norms[0] * 0.7; // bites for client 0, and perhaps for others
                    double b = operands.fraction();
                    device.projectComposeMomentum(radius, column(operands, norms), b, h, v, m);
                    return () -> {
                        eachIsNear(h, k -> projected(radius, beforeH[k]), bound(1))
                                .run();
                        eachIsNear(
                                        m,
                                        k -> compose(
                                                b, projected(radius, beforeH[k]), Operands.client(v, k), beforeM[k]),
                                        bound(2 * d))
                                .run();
                    };
                }),
                new Operation("project", 0, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    double[][] before = Operands.clients(x);
                    double[] norms = norms(before);
                    double radius = norms[0] * 0.7; // bites for client 0, and perhaps for others
                    device.project(radius, column(operands, norms), x);
                    return () -> {
                        eachIsNear(x, k -> projected(radius, before[k]), bound(1))
                                .run();
                        for (int k = 0; k < clients; k++) {
                            assertThat(Reference.norm(Operands.client(x, k))).isLessThan(radius * (1 + 1e-6));
                            if (norms[k] <= radius) {
                                assertThat(Operands.client(x, k)).isEqualTo(before[k]);
                            }
                        }
                    };
                }),
                new Operation("norm", SUM, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    Buffer norms = operands.doubles("norms", clients);
                    device.norm(x, norms.batch(clients, 1));
                    return () -> assertNorms(norms, x);
                }),
                new Operation("average", 0, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    double[][] before = Operands.clients(x);
                    device.average(x);
                    var weights = new double[clients];
                    Arrays.fill(weights, 1);
                    return eachIsNear(x, k -> mean(weights, before), bound(1));
                }),
                new Operation("average, weighted", 0, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    double[][] before = Operands.clients(x);
                    var weights = new double[clients];
                    Arrays.setAll(weights, k -> k == 1 ? 0.0 : 0.5 + operands.fraction());
                    device.average(x, weights, clients);
                    return eachIsNear(x, k -> mean(weights, before), bound(1));
                }),
                new Operation("average of rows", 0, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    Batch mean = operands.normal("mean", 1, n);
                    double[][] before = Operands.clients(x);
                    var weights = new double[clients];
                    Arrays.setAll(weights, k -> k == 1 ? 0.0 : 0.5 + operands.fraction());
                    List<Batch> rows =
                            IntStream.range(0, clients).mapToObj(x::client).toList();
                    device.average(rows, weights, clients, List.of(mean, x.client(0)));
                    Runnable first = eachIsNear(mean, k -> mean(weights, before), bound(1));
                    Runnable all = eachIsNear(x, k -> k == 0 ? mean(weights, before) : before[k], bound(1));
                    return () -> {
                        first.run();
                        all.run();
                    };
                }),
                new Operation("mean of parts", 0, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    double[][] before = Operands.clients(x);
                    var given = new double[clients];
                    Arrays.setAll(given, k -> k == 1 ? 0.0 : 0.5 + operands.fraction());
                    double[] weights = MeanWeights.scaled(given);
                    long terms = (long) clients + operands.choose(0, 100);
                    Batch target = operands.normal("target", 1, n);
                    meanOfParts(device, operands, x, weights, terms, List.of(target, x.client(0)));
                    Batch whole = operands.normal("whole", clients, n);
                    for (int k = 0; k < clients; k++) {
                        whole.buffer().copyIn(whole.offset() + k * whole.stride(), floats(before[k]));
                    }
                    device.average(whole, given, terms);
                    return () -> {
                        assertNear(Operands.client(target, 0), mean(weights, before), bound(1));
                        assertThat(Operands.client(target, 0)).isEqualTo(Operands.client(whole, 0));
                        assertThat(Operands.client(x, 0)).isEqualTo(Operands.client(whole, 0));
                        for (int k = 1; k < clients; k++) {
                            assertThat(Operands.client(x, k)).isEqualTo(before[k]);
                        }
                    };
                }),
                new Operation("vector_step", 0, (device, operands, clients, n) -> {
                    Batch m = operands.normal("m", clients, n);
                    Batch w = operands.normal("w", clients, n);
                    double[][] before = Operands.clients(w);
                    double eta = operands.fraction();
                    device.vectorStep(eta, m, w);
                    return eachIsNear(
                            w, k -> Reference.minus(before[k], Reference.scaled(eta, Operands.client(m, k))), bound(2));
                }),
                new Operation(
                        "vector_steps",
                        0,
                        (device, operands, clients, n) -> vectorSteps(device, operands, clients, n, false)),
                new Operation(
                        "vector_steps, normalized",
                        ROUNDED,
                        (device, operands, clients, n) -> vectorSteps(device, operands, clients, n, true)),
                new Operation(
                        "adaptive_step, Adam",
                        0,
                        (device, operands, clients, n) ->
                                adaptive(Device.AdaptiveRule.ADAM, device, operands, clients, n)),
                new Operation(
                        "adaptive_step, Yogi",
                        0,
                        (device, operands, clients, n) ->
                                adaptive(Device.AdaptiveRule.YOGI, device, operands, clients, n)),
                new Operation("top_k", 0, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    Batch y = operands.normal("y", clients, n);
                    double[][] before = Operands.clients(x);
                    int count = (int) (operands.fraction() * (n + 1));
                    device.topK(count, x, y);
                    return () -> {
                        assertThat(Operands.clients(x)).isDeepEqualTo(before);
                        device.topK(count, x, x);
                        for (int k = 0; k < clients; k++) {
                            double[] expected = topK(count, before[k]);
                            assertThat(Operands.client(y, k)).containsExactly(expected);
                            assertThat(Operands.client(x, k)).containsExactly(expected);
                        }
                    };
                }),
                new Operation("dropout_mask", 0, (device, operands, clients, n) -> {
                    int left = operands.choose(0, 1, 6554, 32768, 65535, 65536);
                    long[] seeds = operands.seeds(clients);
                    int offset = operands.choose(0, 1, 4); // words of a mask are aligned, or not
                    Buffer masks = operands.floats("masks", (offset + (long) clients * n) / Float.BYTES + 1);
                    device.dropoutMask(
                            left, seeds, masks.at((NativeDevice) device, 0).asSlice(offset, (long) clients * n));
                    return () -> {
                        byte[] expected = new byte[(int) masks.length() * Float.BYTES];
                        for (int k = 0; k < clients; k++) {
                            System.arraycopy(mask(left, seeds[k], n), 0, expected, offset + k * n, n);
                        }
                        byte[] actual = new byte[expected.length];
                        masks.copyOut(0, MemorySegment.ofArray(actual));
                        assertThat(actual).isEqualTo(expected);
                    };
                }),
                new Operation("normalize", ROUNDED, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    Batch y = operands.normal("y", clients, n);
                    double divisor = 1 + operands.fraction();
                    device.normalize(divisor, x, y);
                    return eachIsNear(
                            y,
                            k -> {
                                double[] from = Operands.client(x, k);
                                return Reference.scaled(1 / (Reference.norm(from) * divisor), from);
                            },
                            bound(1));
                }),
                new Operation("rearrange", 0, (device, operands, clients, n) -> {
                    int cols = Math.min(n, 8);
                    int rows = n / cols;
                    Batch x = operands.normal("x", clients, rows * cols);
                    Batch y = operands.normal("y", clients, rows * cols);
                    device.rearrange(
                            MatrixBatch.of(x, rows, cols),
                            MatrixBatch.of(y, cols, rows).transpose());
                    return eachIsNear(y, k -> Reference.transpose(Operands.client(x, k), rows, cols), 0);
                }),
                new Operation("multiply", PRODUCT, (device, operands, clients, n) -> {
                    int side = side(n);
                    Batch a = operands.normal("a", clients, side * side);
                    Batch b = operands.normal("b", clients, side * side);
                    Batch base = operands.normal("base", clients, side * side);
                    Batch out = operands.normal("out", clients, side * side);
                    device.multiply(
                            1.5,
                            MatrixBatch.of(a, side, side),
                            MatrixBatch.of(b, side, side).transpose(),
                            -0.5,
                            MatrixBatch.of(base, side, side),
                            false,
                            MatrixBatch.of(out, side, side));
                    return eachIsNear(
                            out,
                            k -> {
                                double[] right = Reference.transpose(Operands.client(b, k), side, side);
                                double[] product = Reference.product(Operands.client(a, k), right, side, side, side);
                                return Reference.minus(
                                        Reference.scaled(1.5, product),
                                        Reference.scaled(0.5, Operands.client(base, k)));
                            },
                            2 * bound(side));
                }),
                new Operation("multiply, symmetric", PRODUCT, (device, operands, clients, n) -> {
                    int side = side(n);
                    Batch a = operands.normal("a", clients, side * side);
                    Batch out = operands.normal("out", clients, side * side);
                    MatrixBatch left = MatrixBatch.of(a, side, side);
                    device.multiply(1, left, left.transpose(), true, MatrixBatch.of(out, side, side));
                    return eachIsNear(
                            out,
                            k -> {
                                double[] matrix = Operands.client(a, k);
                                double[] right = Reference.transpose(matrix, side, side);
                                return Reference.product(matrix, right, side, side, side);
                            },
                            2 * bound(side));
                }),
                // Of these DeviceOperationsIT has the reference, with blocks in another order for each operand.
                new Operation("newton_schulz_small", PRODUCT, (device, operands, clients, n) -> {
                    try (NewtonSchulzSpec.Plan plan = device.plan(lenet(), clients)) {
                        plan.orthogonalize(operands.normal("M", clients, LENET), operands.normal("O", clients, LENET));
                    }
                    return () -> {};
                }),
                new Operation("newton_schulz_small, stepping", PRODUCT, (device, operands, clients, n) -> {
                    try (NewtonSchulzSpec.Plan plan = device.plan(lenet(), clients)) {
                        plan.step(operands.normal("M", clients, LENET), 0.1, operands.normal("W", clients, LENET));
                    }
                    return () -> {};
                }),
                new Operation("widen", 0, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    Buffer y = operands.doubles("y", (long) clients * n);
                    ((NativeDevice) device).widen(x, y.at((NativeDevice) device, 0));
                    return () -> {
                        for (int k = 0; k < clients; k++) {
                            assertThat(y.toDoubles((long) k * n, n)).containsExactly(Operands.client(x, k));
                        }
                    };
                }),
                new Operation("narrow", 0, (device, operands, clients, n) -> {
                    Buffer x = operands.doubles("x", (long) clients * n);
                    double[] values = normals(operands, clients * n);
                    x.copyIn(0, values);
                    Batch y = operands.normal("y", clients, n);
                    ((NativeDevice) device).narrow(x.at((NativeDevice) device, 0), y);
                    return eachIsNear(y, k -> Arrays.copyOfRange(values, k * n, (k + 1) * n), bound(1));
                }),
                new Operation("keep_directions", 0, OperationTable::keepDirections),
                new Operation("inverse_roots", 0, OperationTable::inverseRoots),
                new Operation("all_finite", 0, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n);
                    int bad = n / 2;
                    x.buffer().copyIn(x.offset() + (clients - 1) * x.stride() + bad, Float.NaN);
                    if (bad + 1 < n) {
                        x.buffer().copyIn(x.offset() + (clients - 1) * x.stride() + bad + 1, Float.NEGATIVE_INFINITY);
                    }
                    Device.Position place = device.firstNotFinite(x).orElseThrow();
                    operands.doubles("place", 2).copyIn(0, (double) place.client(), (double) place.index());
                    return () -> assertThat(place).isEqualTo(new Device.Position(clients - 1, -1, bad));
                }),
                new Operation("require_finite", 0, (device, operands, clients, n) -> {
                    device.requireFinite(operands.normal("x", clients, n));
                    return device::synchronize;
                }),
                new Operation("triad", 0, (device, operands, clients, n) -> {
                    Batch b = operands.normal("b", 1, n);
                    Batch c = operands.normal("c", 1, n);
                    Batch a = operands.normal("a", 1, n);
                    ((NativeDevice) device).triad(n, 0.5f, address(b), address(c), address(a), false);
                    return eachIsNear(
                            a,
                            k -> Reference.minus(Operands.client(b, k), Reference.scaled(-0.5, Operands.client(c, k))),
                            bound(1));
                }),
                new Operation("copies", 0, (device, operands, clients, n) -> {
                    Batch x = operands.normal("x", clients, n + 3);
                    Buffer y = operands.floats("y", x.buffer().length());
                    double[] before = x.buffer().toDoubles(0, (int) x.buffer().length());
                    y.fill(0.1);
                    y.copyFrom(x.buffer(), 1, 2, n);
                    x.buffer().zero();
                    return () -> {
                        assertThat(x.buffer().toDoubles(0, before.length)).containsOnly(0);
                        assertThat(y.toDoubles(2, n)).isEqualTo(Arrays.copyOfRange(before, 1, 1 + n));
                        assertThat(y.toDoubles(0, 2)).containsOnly((float) 0.1);
                    };
                }));
    }

    /** The steps of a mean, with the clients of x in two parts if there are several. */
    private static void meanOfParts(
            Device device, Operands operands, Batch x, double[] weights, long terms, List<Batch> targets) {
        int clients = weights.length;
        int first = (clients + 1) / 2;
        var parts = new ArrayList<Batch>();
        var exponents = new ArrayList<Batch>();
        var sums = new ArrayList<Batch>();
        for (int from = 0; from < clients; from += first) {
            Batch part = x.neighbours(from, Math.min(first, clients - from));
            parts.add(part);
            exponents.add(operands.vector("exponents", ElementType.UINT8, x.length()));
            sums.add(operands.vector("sums", ElementType.INT64, x.length()));
            device.meanExponents(part, of(weights, from, part), exponents.getLast());
        }
        device.combineExponents(exponents, exponents.getLast());
        for (int i = 0; i < parts.size(); i++) {
            device.meanSums(
                    parts.get(i), of(weights, i * first, parts.get(i)), terms, exponents.getLast(), sums.get(i));
        }
        device.finishMean(sums.reversed(), exponents.getLast(), terms, MeanWeights.total(weights), targets);
    }

    private static double[] of(double[] weights, int from, Batch part) {
        return Arrays.copyOfRange(weights, from, from + (int) part.clients());
    }

    private static float[] floats(double[] values) {
        var floats = new float[values.length];
        for (int i = 0; i < floats.length; i++) {
            floats[i] = (float) values[i];
        }
        return floats;
    }

    // ---- Comparisons ----

    /** Rounding of a sum of {@code terms} products of normal numbers, each well below 6. */
    static double bound(int terms) {
        return 36 * (terms + 2) * Math.ulp(1.0f);
    }

    static void assertNear(double[] actual, double[] expected, double bound) {
        assertThat(actual).hasSameSizeAs(expected);
        for (int j = 0; j < actual.length; j++) {
            assertThat(actual[j]).as("element %d", j).isCloseTo(expected[j], within(bound));
        }
    }

    private static Runnable eachIsNear(Batch actual, IntFunction<double[]> expected, double bound) {
        return () -> {
            for (int k = 0; k < actual.clients(); k++) {
                assertNear(Operands.client(actual, k), expected.apply(k), bound);
            }
        };
    }

    private static void assertNorms(Buffer norms, Batch x) {
        for (int k = 0; k < x.clients(); k++) {
            double expected = Reference.norm(Operands.client(x, k));
            assertThat(norms.toDoubles(k, 1)[0]).isCloseTo(expected, within(1e-12 * expected));
        }
    }

    // ---- Operands ----

    private static long address(Batch x) {
        return x.buffer().address() + x.offset() * Float.BYTES;
    }

    private static double[] norms(double[][] x) {
        return Arrays.stream(x).mapToDouble(Reference::norm).toArray();
    }

    private static Batch column(Operands operands, double[] values) {
        Buffer buffer = operands.doubles("norms", values.length);
        buffer.copyIn(0, values);
        return buffer.batch(values.length, 1);
    }

    private static int side(int n) {
        return (int) Math.sqrt(n);
    }

    private static final int LENET = 6 * 25 + 16 * 150 + 120 * 256;

    private static NewtonSchulzSpec lenet() {
        return new NewtonSchulzSpec(
                List.of(
                        NewtonSchulzSpec.Block.at(0, 6, 25),
                        NewtonSchulzSpec.Block.at(6 * 25, 16, 150),
                        NewtonSchulzSpec.Block.at(6 * 25 + 16 * 150, 120, 256)),
                Collections.nCopies(5, new NewtonSchulzSpec.Step(3.4445, -4.7750, 2.0315)),
                1);
    }

    // ---- References, one client at a time, as they stand in the paper ----

    private static double[] ema(double a, double[] x, double[] y) {
        var result = new double[y.length];
        Arrays.setAll(result, j -> a * x[j] + (1 - a) * y[j]);
        return result;
    }

    /** M = (1-b) M + b sum_i v_i H_i. */
    static double[] compose(double b, double[] h, double[] v, double[] m) {
        var result = new double[m.length];
        for (int j = 0; j < m.length; j++) {
            double sum = 0;
            for (int i = 0; i < v.length; i++) {
                sum += v[i] * h[i * m.length + j];
            }
            result[j] = (1 - b) * m[j] + b * sum;
        }
        return result;
    }

    static double[] storm(double g, double[] gNew, double[] gOld, double[] h) {
        var result = new double[h.length];
        Arrays.setAll(result, j -> gNew[j] + (1 - g) * (h[j] - gOld[j]));
        return result;
    }

    static double[] projected(double radius, double[] x) {
        return Reference.scaled(Math.min(1, radius / Reference.norm(x)), x);
    }

    private static Runnable adaptive(Device.AdaptiveRule rule, Device device, Operands operands, int clients, int n) {
        Batch delta = operands.normal("delta", clients, n);
        Batch m = operands.normal("m", clients, n);
        Batch v = operands.normal("v", clients, n);
        Batch w = operands.normal("w", clients, n);
        v.buffer().fill(operands.choose(0, 3) / 4.0); // where second moments start, or have got to; never negative
        double[][] beforeM = Operands.clients(m);
        double[][] beforeV = Operands.clients(v);
        double[][] beforeW = Operands.clients(w);
        double beta1 = operands.fraction();
        double beta2 = operands.fraction();
        double epsilon = 0.5 + operands.fraction();
        double eta = operands.normal();
        device.adaptiveStep(rule, beta1, beta2, epsilon, eta, delta, m, v, w);
        return () -> {
            for (int k = 0; k < clients; k++) {
                double[] change = Operands.client(delta, k);
                double[] momentum = ema(1 - beta1, change, beforeM[k]);
                var second = new double[n];
                var moved = new double[n];
                for (int j = 0; j < n; j++) {
                    double square = change[j] * change[j];
                    second[j] = switch (rule) {
                        case ADAM -> beta2 * beforeV[k][j] + (1 - beta2) * square;
                        case YOGI -> beforeV[k][j] - (1 - beta2) * square * Math.signum(beforeV[k][j] - square);
                    };
                    moved[j] = beforeW[k][j] + eta * momentum[j] / (Math.sqrt(second[j]) + epsilon);
                }
                assertNear(Operands.client(m, k), momentum, bound(1));
                assertNear(Operands.client(v, k), second, bound(1));
                assertNear(Operands.client(w, k), moved, bound(1));
            }
        };
    }

    /** As it was before there was a kernel for it. */
    private static byte[] mask(int left, long seed, int n) {
        var random = new SplittableRandom(seed);
        var mask = new byte[n];
        long bits = 0;
        for (int j = 0; j < n; j++) {
            bits = j % 4 == 0 ? random.nextLong() : bits >>> 16;
            mask[j] = (byte) ((bits & 0xffff) < left ? 1 : 0);
        }
        return mask;
    }

    private static double[] topK(int k, double[] x) {
        var result = new double[x.length];
        IntStream.range(0, x.length)
                .boxed()
                .sorted(Comparator.comparingDouble((Integer j) -> -Math.abs(x[j]))
                        .thenComparing(j -> j))
                .limit(k)
                .forEach(j -> result[j] = x[j]);
        return result;
    }

    private static double[] mean(double[] weights, double[][] x) {
        var result = new double[x[0].length];
        double total = 0;
        for (int k = 0; k < x.length; k++) {
            total += weights[k];
            for (int j = 0; j < result.length; j++) {
                result[j] += weights[k] * x[k][j];
            }
        }
        return Reference.scaled(1 / total, result);
    }

    /** Two vectors of each client, which change places between m and w. */
    private static Runnable vectorSteps(Device device, Operands operands, int clients, int n, boolean normalized) {
        int half = n / 2;
        var what = new VectorStepSpec(
                List.of(
                        new VectorStepSpec.Block(half, 0, n - half, 0.5),
                        new VectorStepSpec.Block(n - half, half, 0, 2)),
                normalized ? Device.StepRule.NORMALIZED : Device.StepRule.PLAIN);
        Batch m = operands.normal("m", clients, n);
        Batch w = operands.normal("w", clients, n);
        double[][] before = Operands.clients(w);
        double eta = operands.fraction();
        try (VectorStepSpec.Plan plan = device.plan(what, clients)) {
            plan.step(m, eta, w);
        }
        return eachIsNear(
                w,
                k -> {
                    double[] all = Operands.client(m, k);
                    double[] expected = before[k].clone();
                    for (VectorStepSpec.Block block : what.blocks()) {
                        int from = (int) block.momentumOffset();
                        double[] part = Arrays.copyOfRange(all, from, from + (int) block.length());
                        double norm = normalized ? Reference.norm(part) : 1;
                        for (int i = 0; i < part.length && norm > 0; i++) {
                            expected[(int) block.weightOffset() + i] -= eta * block.scale() / norm * part[i];
                        }
                    }
                    return expected;
                },
                bound(2));
    }

    /** Up to 40 eigenvectors, of which the first half is left out. */
    private static Runnable keepDirections(Device device, Operands operands, int clients, int n) {
        var on = (NativeDevice) device;
        int side = Math.min(n, 40);
        Buffer info = operands.floats("info", clients); // zeros
        Buffer values = operands.doubles("values", (long) clients * side);
        Buffer vectors = operands.doubles("vectors", (long) clients * side * side);
        Buffer kept = operands.allocate("kept", ElementType.INT64, clients);
        values.copyIn(
                0,
                IntStream.range(0, clients * side)
                        .mapToDouble(i -> i % side < side / 2 ? 1e-20 * (i % side) : 1e-3 * (i + 1))
                        .toArray());
        double[] before = normals(operands, clients * side * side);
        vectors.copyIn(0, before);
        on.keepDirections(clients, side, 1e-7, info.at(on, 0), values.at(on, 0), vectors.at(on, 0), kept.at(on, 0));
        return () -> {
            double[] after = vectors.toDoubles(0, before.length);
            for (int i = 0; i < after.length; i++) {
                assertThat(after[i]).isEqualTo(i / side % side < side / 2 ? 0 : before[i]);
            }
            assertThat(kept.toLongs(0, clients)).containsOnly(side - side / 2);
        };
    }

    /** Up to 40 x 40, with a hundredth beside the diagonal. */
    private static Runnable inverseRoots(Device device, Operands operands, int clients, int n) {
        var on = (NativeDevice) device;
        int side = Math.min(n, 40);
        Buffer gram = operands.doubles("gram", (long) clients * side * side);
        double[] before = normals(operands, clients * side * side);
        for (int i = 0; i < before.length; i++) {
            before[i] = i / side % side == i % side ? 1 + Math.abs(before[i]) : before[i] * 1e-2;
        }
        gram.copyIn(0, before);
        on.inverseRoots(clients, side, gram.at(on, 0));
        return () -> {
            double[] after = gram.toDoubles(0, before.length);
            for (int i = 0; i < after.length; i++) {
                int row = i / side % side;
                int col = i % side;
                int first = i - row * side - col;
                double a = Math.sqrt(before[first + row * (side + 1)]);
                double b = Math.sqrt(before[first + col * (side + 1)]);
                double expected = row == col ? 1 / a : row < col ? -before[i] / (a * b * (a + b)) : before[i];
                assertThat(after[i]).isCloseTo(expected, within(1e-14));
            }
        };
    }

    private static double[] normals(Operands operands, int count) {
        return IntStream.range(0, count).mapToDouble(_ -> operands.normal()).toArray();
    }
}
