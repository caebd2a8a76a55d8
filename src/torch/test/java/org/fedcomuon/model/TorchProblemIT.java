package org.fedcomuon.model;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.SplittableRandom;
import java.util.random.RandomGenerator;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.OuterFunction;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Risk;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;

/** Problems with several inner values that libtorch differentiates, against derivatives by hand. */
class TorchProblemIT {
    private static final int INPUTS = 5;
    private static final int BATCH = 6;
    private static final Layout LINEAR = Layout.of(Block.matrix("weight", 1, INPUTS), Block.vector("bias", 1));

    private final Sample xi = TinyModels.sample(3);

    private static float[] batch(Sample xi, int label) {
        RandomGenerator random = new SplittableRandom(31 * xi.draw() + label);
        var rows = new float[BATCH * INPUTS];
        for (int i = 0; i < rows.length; i++) {
            rows[i] = (float) (random.nextGaussian() + (i % INPUTS == 0 ? label : 0));
        }
        return rows;
    }

    /** A linear score. */
    private static TorchProblem areaUnderCurve(int clients) {
        // @start region="problem"
        // The area under the curve of a linear score: its mean and mean square on examples of each of two classes.
        TorchProblem.Inner inner = (w, xi) -> {
            Tensor positive =
                    Layers.dense(w, "score", w.here(Tensor.create(batch(xi, 1)).view(BATCH, INPUTS)));
            Tensor negative =
                    Layers.dense(w, "score", w.here(Tensor.create(batch(xi, 0)).view(BATCH, INPUTS)));
            return torch.stack(new TensorVector(
                    positive.mean(),
                    negative.mean(),
                    positive.square().mean(),
                    negative.square().mean()));
        };
        Layout layout = Layout.of(Layers.denseBlocks("score", INPUTS, 1));
        var problem = new TorchProblem(layout, Collections.nCopies(clients, inner), OuterFunction.areaUnderCurve(1));
        // @end
        return problem;
    }

    private static Point zeros(Layout layout) {
        return new Point(layout, Floats.zeros(layout.length()));
    }

    private static Point random(Layout layout, long seed) {
        Point point = zeros(layout);
        var random = new SplittableRandom(seed);
        for (long i = 0; i < layout.length(); i++) {
            point.values().set(i, random.nextGaussian());
        }
        return point;
    }

    private static Jacobian jacobian(Layout layout, int d) {
        var components = new ArrayList<Point>();
        for (int i = 0; i < d; i++) {
            components.add(zeros(layout));
            components.getLast().values().fill(77); // whatever was there is overwritten
        }
        return new Jacobian(components);
    }

    @Test
    void valuesAndJacobianAreThoseByHand() throws Exception {
        TorchProblem problem = areaUnderCurve(2);
        Layout layout = problem.layout();
        assertThat(problem.innerDimension()).isEqualTo(4);
        assertThat(problem.clients()).isEqualTo(2);
        Point w = random(layout, 1);
        Floats value = Floats.zeros(4);
        Jacobian jacobian = jacobian(layout, 4);
        problem.client(1).inner(xi, w, value, jacobian);
        for (int label = 0; label < 2; label++) {
            float[] rows = batch(xi, label);
            double mean = 0;
            double square = 0;
            var slope = new double[INPUTS + 1];
            var curve = new double[INPUTS + 1];
            for (int r = 0; r < BATCH; r++) {
                double score = w.values().get(INPUTS);
                for (int j = 0; j < INPUTS; j++) {
                    score += w.values().get(j) * (double) rows[r * INPUTS + j];
                }
                mean += score / BATCH;
                square += score * score / BATCH;
                for (int j = 0; j <= INPUTS; j++) {
                    double x = j == INPUTS ? 1 : rows[r * INPUTS + j];
                    slope[j] += x / BATCH;
                    curve[j] += 2 * score * x / BATCH;
                }
            }
            assertThat(value.get(1 - label)).isCloseTo((float) mean, within(1e-5f));
            assertThat(value.get(3 - label)).isCloseTo((float) square, within(1e-5f));
            for (int j = 0; j <= INPUTS; j++) {
                assertThat(jacobian.component(1 - label).values().get(j)).isCloseTo((float) slope[j], within(1e-5f));
                assertThat(jacobian.component(3 - label).values().get(j)).isCloseTo((float) curve[j], within(1e-5f));
            }
        }
    }

    @Test
    void outerFunctionsArePassedOn() throws Exception {
        Client client = areaUnderCurve(1).client(0);
        Floats y = Floats.of(0.5f, -0.25f, 1, 2);
        Floats gradient = Floats.zeros(4);
        client.outerGradient(xi, y, gradient);
        assertThat(gradient.toArray()).containsExactly(-1 - 0.5f, 0.5f + 0.5f, 1, 1);
        assertThat(client.outerValue(xi, y)).hasValue(0.75 + 1.9375 + 0.0625);
    }

    /** d = 1: bit by bit what {@link Classification} computes. */
    @Test
    void oneValueIsALoss() throws Exception {
        TinyModels model = TinyModels.CNN;
        Examples examples = model.examples(6);
        List<int[]> clients = List.of(new int[] {0, 1, 2, 3, 4, 5});
        Risk risk = new ExponentialRisk(0.5);
        Problem expected = new Classification(model.network, examples, clients, 6, risk);
        Problem actual = new TorchProblem(
                model.network.layout(),
                List.of((w, sample) -> Layers.crossEntropy(
                        model.network.logits(w, examples.inputs(), Dropout.none()), examples.labels())),
                risk);
        Layout layout = model.network.layout();
        Point w = zeros(layout);
        w.values().set(model.weights());
        Floats[] values = {Floats.zeros(1), Floats.zeros(1)};
        Jacobian[] jacobians = {jacobian(layout, 1), jacobian(layout, 1)};
        expected.client(0).inner(xi, w, values[0], jacobians[0]);
        actual.client(0).inner(xi, w, values[1], jacobians[1]);
        // The batch has another order.
        assertThat(values[1].get(0)).isCloseTo(values[0].get(0), within(1e-5f));
        assertThat(DoublePrecision.distance(
                        DoublePrecision.widened(
                                jacobians[1].component(0).values().toArray()),
                        DoublePrecision.widened(
                                jacobians[0].component(0).values().toArray())))
                .isLessThan(1e-5);
    }

    @Test
    void whatAValueDoesNotDependOnHasAGradientOfZero() throws Exception {
        Layout layout = Layout.of(Block.vector("a", 2), Block.vector("b", 1));
        Problem problem = new TorchProblem(
                layout,
                List.of((w, sample) -> torch.stack(new TensorVector(
                        Tensor.create(5f).squeeze(), w.get("a").square().sum()))),
                OuterFunction.meanVariance(1));
        Point w = random(layout, 2);
        Floats value = Floats.zeros(2);
        Jacobian jacobian = jacobian(layout, 2);
        problem.client(0).inner(xi, w, value, jacobian);
        assertThat(jacobian.component(0).values().toArray()).containsOnly(0);
        assertThat(jacobian.component(1).values().toArray())
                .containsExactly(2 * w.values().get(0), 2 * w.values().get(1), 0);

        Problem constant =
                new TorchProblem(layout, List.of((at, sample) -> Tensor.create(1f, 2f)), OuterFunction.meanVariance(1));
        constant.client(0).inner(xi, w, value, jacobian);
        assertThat(value.toArray()).containsExactly(1, 2);
        assertThat(jacobian.component(1).values().toArray()).containsOnly(0);
    }

    @Test
    void hessianProductsAreOfTheComposition() throws Exception {
        Layout layout = Layout.of(Block.vector("a", 2), Block.vector("b", 1));
        Problem problem = new TorchProblem(
                layout,
                List.of((w, sample) -> torch.stack(new TensorVector(
                        w.get("b").sum(),
                        w.get("a").pow(new org.bytedeco.pytorch.Scalar(3)).sum()))),
                OuterFunction.meanVariance(1));
        Point w = random(layout, 3);
        Point along = random(layout, 4);
        Point product = random(layout, 5);
        ((HessianProduct) problem.client(0)).hessianProduct(xi, w, along, product);
        for (int i = 0; i < 2; i++) { // f(g) = -b + sum a^3 - b^2
            float expected = 6 * w.values().get(i) * along.values().get(i);
            assertThat(product.values().get(i)).isCloseTo(expected, within(1e-5f));
        }
        assertThat(product.values().get(2)).isCloseTo(-2 * along.values().get(2), within(1e-5f));

        Problem linear =
                new TorchProblem(layout, List.of((at, sample) -> at.get("a").sum()), Risk.mean());
        ((HessianProduct) linear.client(0)).hessianProduct(xi, w, along, product);
        assertThat(product.values().toArray()).containsOnly(0);
    }

    @Test
    void anotherNumberOfValuesIsRefused() {
        Problem problem =
                new TorchProblem(LINEAR, List.of((w, sample) -> w.get("weight")), OuterFunction.areaUnderCurve(1));
        assertThatThrownBy(() -> problem.client(0).inner(xi, zeros(LINEAR), Floats.zeros(4), jacobian(LINEAR, 4)))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("g has the shape (1 x 5); a vector of d = 4 values is needed");
        assertThatThrownBy(() -> new TorchProblem(LINEAR, List.of(), Risk.mean()))
                .hasMessageContaining("without clients");
        assertThatThrownBy(() -> Parameters.of(new Point(LINEAR, Floats.of(new float[INPUTS + 1]))))
                .hasMessageContaining("native memory");
    }

    private static Method method(double eta) {
        return new FedCoMuon(
                Schedule.cosine(eta, eta / 100), Schedule.constant(0.3), Schedule.constant(0.3), Muon.standard());
    }

    /** Trained, the score separates the classes by what distinguishes them, the first input. */
    @Test
    void theAreaUnderTheCurveIsTrained() throws Exception {
        TorchProblem problem = areaUnderCurve(3);
        Point w = Federation.of(problem, method(0.05))
                .iterations(200)
                .tau(5)
                .workers(2)
                .build()
                .run()
                .weights();
        Floats value = Floats.zeros(4);
        problem.client(0).inner(xi, w, value, jacobian(problem.layout(), 4));
        assertThat(problem.client(0).outerValue(xi, value).getAsDouble()).isLessThan(1); // what W = 0 has
        assertThat(w.values().get(0)).isGreaterThan(0.2f);
    }

    /** With losses that W does not change, t goes to the worst case in closed form. */
    @Test
    void theDualOfTheWorstCaseFindsIt() throws Exception {
        double[] losses = {0.5, 1, 3};
        Layout layout = Layout.of(Block.vector("t", 1));
        var clients = new ArrayList<TorchProblem.Inner>();
        for (double loss : losses) {
            clients.add((w, sample) -> torch.cat(new TensorVector(Tensor.create((float) loss), w.get("t"))));
        }
        var problem = new TorchProblem(layout, clients, OuterFunction.klDual(1, 60));
        Point w = Federation.of(problem, method(0.1))
                .iterations(300)
                .build()
                .run()
                .weights();
        assertThat((double) w.values().get(0)).isCloseTo(new ExponentialRisk(1).worstCase(losses), within(0.02));
    }
}
