package org.example.embedding;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.method.FedCoMuon;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Loss;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;

/**
 * A user-defined oracle: shops forecast their sales of four goods from six facts about the day, without sharing their
 * data. The exponential risk improves the model for the shop with the largest loss.
 */
final class Demand {
    private static final int FACTS = 6;
    private static final int GOODS = 4;
    private static final int DAYS = 200;
    private static final int BATCH = 20;

    private Demand() {}

    /** The data of a shop; a sample of its loss is the loss on some days. */
    private static final class Shop implements Loss {
        private final double[][] facts = new double[DAYS][FACTS];
        private final double[][] sold = new double[DAYS][GOODS];

        Shop(int number) {
            var random = new SplittableRandom(number);
            for (int day = 0; day < DAYS; day++) {
                for (int i = 0; i < FACTS; i++) {
                    facts[day][i] = random.nextGaussian();
                }
                for (int j = 0; j < GOODS; j++) {
                    double habit = facts[day][j] + 0.1 * random.nextGaussian();
                    sold[day][j] = number == 0 ? habit + facts[day][j + 2] : habit; // one shop differs from the others
                }
            }
        }

        @Override
        public double evaluate(Sample sample, Point w, Point gradient) {
            return squares(sample.random().ints(BATCH, 0, DAYS).toArray(), w, gradient);
        }

        private double squares(int[] days, Point w, Point gradient) {
            Floats weight = w.block("weight"); // GOODS x FACTS, row by row
            Floats change = gradient.block("weight");
            change.fill(0);
            double loss = 0;
            for (int day : days) {
                for (int j = 0; j < GOODS; j++) {
                    double error = -sold[day][j];
                    for (int i = 0; i < FACTS; i++) {
                        error += weight.get(j * FACTS + i) * facts[day][i];
                    }
                    loss += error * error / 2 / days.length;
                    for (int i = 0; i < FACTS; i++) {
                        change.add(j * FACTS + i, error * facts[day][i] / days.length);
                    }
                }
            }
            return loss;
        }
    }

    /** Returns a run with this many shops; the caller adds devices and the number of iterations. */
    static Federation.Builder run(int shops) {
        List<Loss> losses = new ArrayList<>();
        for (int k = 0; k < shops; k++) {
            losses.add(new Shop(k));
        }
        Problem problem =
                Problem.ofLosses(Layout.of(Block.matrix("weight", GOODS, FACTS)), losses, new ExponentialRisk(0.5));
        var method = new FedCoMuon(
                Schedule.constant(0.002), Schedule.constant(0.2), Schedule.constant(0.1), Muon.standard());
        return Federation.of(problem, method);
    }

    public static void main(String[] arguments) throws InterruptedException {
        var result = run(5).iterations(2000).tau(5).seed(42).build().run();
        System.out.printf("after %d steps, %s: %s%n", result.step(), result.sha256(), result.weights().block("weight").get(0));
    }
}
