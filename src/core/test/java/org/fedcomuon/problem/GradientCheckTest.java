package org.fedcomuon.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.OptionalDouble;
import java.util.concurrent.atomic.AtomicLong;
import org.fedcomuon.problem.testbed.RateTestbed;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GradientCheckTest {
    private static final int D = 2;

    /** Larger than what is checked element by element. */
    private static final Layout LAYOUT = Layout.of(Block.matrix("weight", 8, 10), Block.vector("bias", 8));

    /** {@code g = (sum_i a_i tanh(w_i + xi), sum_i w_i^2 / 2), f(y) = exp(y_1) + y_1 y_2}; subclasses go wrong. */
    private static class Correct implements Client {
        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
            double shift = 0.1 * xi.random().nextGaussian();
            double first = 0;
            double second = 0;
            for (int i = 0; i < LAYOUT.length(); i++) {
                double at = w.values().get(i);
                double tanh = Math.tanh(at + shift);
                double a = Math.sin(i);
                first += a * tanh;
                second += at * at / 2;
                jacobian.component(0).values().set(i, a * (1 - tanh * tanh));
                jacobian.component(1).values().set(i, at);
            }
            value.set(0, first);
            value.set(1, second);
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) {
            gradient.set(0, Math.exp(y.get(0)) + y.get(1));
            gradient.set(1, y.get(0));
        }

        @Override
        public OptionalDouble outerValue(Sample zeta, Floats y) {
            return OptionalDouble.of(Math.exp(y.get(0)) + (double) y.get(0) * y.get(1));
        }
    }

    private static Problem problem(Client wrong) {
        return Problem.of(LAYOUT, D, 3, k -> k == 1 ? wrong : new Correct());
    }

    private static String mistake(Client wrong) {
        return GradientCheck.of(problem(wrong)).mistake().orElse("none");
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void correctProblemsPass(long seed) {
        assertThat(GradientCheck.of(problem(new Correct())).seed(seed).mistake())
                .isEmpty();
        assertThat(GradientCheck.of(new RateTestbed(4, seed)).seed(seed).mistake())
                .isEmpty();
        for (Risk risk : new Risk[] {Risk.mean(), new ExponentialRisk(5), Risk.power(2)}) {
            Problem quadratics = new MatrixQuadratics(3, 6, 9, 1, 0.5, risk, seed);
            assertThat(GradientCheck.of(quadratics).seed(seed).samples(3).mistake())
                    .isEmpty();
        }
    }

    @Test
    void pointsOfOnesOwnAreUsed() {
        Floats zeros = Floats.zeros(LAYOUT.length());
        assertThat(GradientCheck.of(problem(new Correct())).at(zeros).mistake()).isEmpty();
        GradientCheck.of(problem(new Correct())).at(zeros).require();
        assertThatThrownBy(() -> GradientCheck.of(problem(new Correct())).at(Floats.zeros(3)))
                .hasMessageContaining("3 values for a layout of 88");
        assertThatThrownBy(() -> GradientCheck.of(problem(new Correct())).samples(0))
                .hasMessageContaining("0 samples");
    }

    /** A client whose Jacobian is changed afterwards. */
    private abstract static class Changed extends Correct {
        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
            super.inner(xi, w, value, jacobian);
            change(value, jacobian);
        }

        abstract void change(Floats value, Jacobian jacobian);

        static void scale(Floats block, double factor) {
            for (long i = 0; i < block.length(); i++) {
                block.set(i, factor * block.get(i));
            }
        }
    }

    @Test
    void aWrongSignInOneBlockIsFound() {
        assertThat(mistake(new Changed() {
                    @Override
                    void change(Floats value, Jacobian jacobian) {
                        scale(jacobian.component(1).block("bias"), -1);
                    }
                }))
                .matches(
                        "client 1: component 1 of the Jacobian, block 'bias', index \\d is (-?[\\d.E-]+), but differences"
                                + " of g give -?[\\d.E-]+ \\(draw 0 of the seed 1\\)");
    }

    @ParameterizedTest
    @ValueSource(doubles = {1.05, 0.95, 0, 0.5, 2})
    void aFactorIsFound(double factor) {
        for (int component = 0; component < D; component++) {
            int wrong = component;
            assertThat(mistake(new Changed() {
                        @Override
                        void change(Floats value, Jacobian jacobian) {
                            scale(jacobian.component(wrong).block("weight"), factor);
                        }
                    }))
                    .contains("client 1: component %d of the Jacobian, block 'weight', ".formatted(component))
                    .contains("but differences of g give");
        }
    }

    /** A matrix that was meant to be the other way round. */
    @Test
    void aTransposedBlockIsFound() {
        assertThat(mistake(new Changed() {
                    @Override
                    void change(Floats value, Jacobian jacobian) {
                        float[] block = jacobian.component(0).block("weight").toArray();
                        for (int i = 0; i < 80; i++) {
                            jacobian.component(0).block("weight").set(i, block[i % 8 * 10 + i / 8]);
                        }
                    }
                }))
                .contains("component 0 of the Jacobian, block 'weight', index");
    }

    /** One element of a small block. */
    @Test
    void aSingleElementIsFound() {
        assertThat(mistake(new Changed() {
                    @Override
                    void change(Floats value, Jacobian jacobian) {
                        jacobian.component(0).block("bias").add(5, 0.1);
                    }
                }))
                .contains("component 0 of the Jacobian, block 'bias', index 5 is");
    }

    @Test
    void whatIsNotWrittenIsFound() {
        assertThat(mistake(new Changed() {
                    @Override
                    void change(Floats value, Jacobian jacobian) {
                        jacobian.component(1).block("weight").set(17, before);
                    }

                    private float before;

                    @Override
                    public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                        before = jacobian.component(1).block("weight").get(17);
                        super.inner(xi, w, value, jacobian);
                    }
                }))
                .isEqualTo(
                        "client 1: component 1 of the Jacobian, block 'weight', index 17 is not written (draw 0 of the"
                                + " seed 1)");
        assertThat(mistake(new Correct() {
                    @Override
                    public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                        super.inner(xi, w, Floats.zeros(2), jacobian);
                    }
                }))
                .startsWith("client 1: g_0 is not written");
    }

    @Test
    void whatIsAddedInsteadOfWrittenIsFound() {
        assertThat(mistake(new Correct() {
                    @Override
                    public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                        float[] before = jacobian.component(0).block("bias").toArray();
                        super.inner(xi, w, value, jacobian);
                        for (int i = 0; i < 8; i++) {
                            jacobian.component(0).block("bias").add(i, before[i]);
                        }
                    }
                }))
                .startsWith(
                        "client 1: component 0 of the Jacobian, block 'bias', index 0 depends on what its memory had in"
                                + " it");
    }

    @Test
    void whatIsNotFiniteIsFound() {
        assertThat(mistake(new Changed() {
                    @Override
                    void change(Floats value, Jacobian jacobian) {
                        jacobian.component(1).block("bias").set(3, Double.POSITIVE_INFINITY);
                    }
                }))
                .startsWith("client 1: component 1 of the Jacobian, block 'bias', index 3 is Infinity");
    }

    @Test
    void otherResultsForTheSameSampleAreFound() {
        var calls = new AtomicLong();
        assertThat(mistake(new Changed() {
                    @Override
                    void change(Floats value, Jacobian jacobian) {
                        value.add(0, 1e-3 * calls.incrementAndGet());
                    }
                }))
                .startsWith("client 1: g_0 is ")
                .contains("the second time")
                .contains("the same arguments must give the same bits");
    }

    @Test
    void whatIsWrittenOutOfPlaceIsFound() {
        assertThat(mistake(new Correct() {
                    @Override
                    public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                        super.inner(xi, w, value, jacobian);
                        w.values().add(4, 1);
                    }
                }))
                .isEqualTo("client 1: inner changes W, at index 4; it is only to be read");
        assertThat(mistake(new Correct() {
                    @Override
                    public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                        super.inner(xi, w, value, jacobian);
                        // As a library would that is given an address.
                        Floats gradient = jacobian.component(1).values();
                        MemorySegment.ofAddress(gradient.address())
                                .reinterpret((gradient.length() + 1) * Float.BYTES)
                                .setAtIndex(ValueLayout.JAVA_FLOAT, gradient.length(), 0);
                    }
                }))
                .isEqualTo("client 1: inner writes beyond the memory of component 1 of the Jacobian");
        assertThat(mistake(new Correct() {
                    @Override
                    public void outerGradient(Sample zeta, Floats y, Floats gradient) {
                        super.outerGradient(zeta, y, gradient);
                        y.set(0, 0.0);
                    }
                }))
                .isEqualTo("client 1: outerGradient changes y, at index 0; it is only to be read");
    }

    @Test
    void exceptionsAreMistakes() {
        assertThat(mistake(new Correct() {
                    @Override
                    public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                        throw new IllegalStateException("no data");
                    }
                }))
                .isEqualTo("client 1: inner throws java.lang.IllegalStateException: no data (draw 0 of the seed 1)");
    }

    @Test
    void theGradientOfFIsChecked() {
        Client wrong = new Correct() {
            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) {
                super.outerGradient(zeta, y, gradient);
                gradient.set(1, 1.05 * gradient.get(1));
            }
        };
        assertThat(mistake(wrong))
                .startsWith("client 1: component 1 of the gradient of f is ")
                .contains("differences of f give");
        assertThatThrownBy(() -> GradientCheck.of(problem(wrong)).require())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage(mistake(wrong));
        assertThat(mistake(new Correct() {
                    @Override
                    public void outerGradient(Sample zeta, Floats y, Floats gradient) {
                        gradient.set(0, Math.exp(y.get(0)) + y.get(1));
                    }
                }))
                .startsWith("client 1: component 1 of the gradient of f is not written");
        // Where the value is not known, the gradient is believed.
        assertThat(mistake(new Correct() {
                    @Override
                    public void outerGradient(Sample zeta, Floats y, Floats gradient) {
                        gradient.set(0, 0.0);
                        gradient.set(1, 0.0);
                    }

                    @Override
                    public OptionalDouble outerValue(Sample zeta, Floats y) {
                        return OptionalDouble.empty();
                    }
                }))
                .isEqualTo("none");
    }

    @Test
    void twoPointsAtOnceAreChecked() {
        assertThat(mistake(new Correct() {
                    @Override
                    public void innerAtTwo(
                            Sample xi,
                            Point w,
                            Floats value,
                            Jacobian jacobian,
                            Point wOld,
                            Floats valueOld,
                            Jacobian jacobianOld) {
                        inner(xi, w, value, jacobian);
                        inner(xi, w, valueOld, jacobianOld); // the wrong point
                    }
                }))
                .isEqualTo(
                        "client 1: innerAtTwo has another result for the second of its points than inner, in component"
                                + " 0");
    }
}
