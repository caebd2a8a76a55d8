package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.fedcomuon.data.ArraySet;
import org.fedcomuon.data.ExampleSet;
import org.fedcomuon.data.LabelledDataset;

/**
 * Transitions of Markov chains, one chain per client, drawn from a seed. All clients share the features of the states;
 * each has transition probabilities and rewards of its own. An example is a step from every state: a row per state with
 * its features, the features of a state that follows, and the reward.
 */
final class MarkovData {
    private MarkovData() {}

    /**
     * Returns the transitions.
     *
     * @param clients one chain each; the name of the group of an example is the number of its client
     * @param perClient examples of a client
     */
    static LabelledDataset of(int clients, int perClient, int states, int features, long seed) {
        var random = new SplittableRandom(seed);
        var phi = new double[states][features];
        for (double[] row : phi) {
            for (int j = 0; j < features; j++) {
                row[j] = random.nextGaussian() / Math.sqrt(features);
            }
        }
        int width = 2 * features + 1;
        var values = new float[clients * perClient * states * width];
        var groups = new ArrayList<String>();
        int at = 0;
        for (int k = 0; k < clients; k++) {
            double[][] chances = chances(states, random);
            var rewards = new double[states];
            for (int s = 0; s < states; s++) {
                rewards[s] = random.nextGaussian();
            }
            for (int i = 0; i < perClient; i++) {
                groups.add(Integer.toString(k));
                for (int s = 0; s < states; s++) {
                    int next = draw(chances[s], random);
                    for (int j = 0; j < features; j++) {
                        values[at + j] = (float) phi[s][j];
                        values[at + features + j] = (float) phi[next][j];
                    }
                    values[at + 2 * features] = (float) (rewards[s] + 0.5 * random.nextGaussian());
                    at += width;
                }
            }
        }
        ExampleSet steps =
                new ArraySet(List.of(states, width), 1, values, new int[clients * perClient]).withGroups(groups);
        return SyntheticData.of(
                steps,
                steps, // nothing is tested: the solution for these very steps is known
                "%d Markov chains with %d states, %d steps from each state per client"
                        .formatted(clients, states, perClient),
                List.of("markov", clients, perClient, states, features, seed));
    }

    /** Returns a row of probabilities per state; some states are much more likely than others. */
    private static double[][] chances(int states, SplittableRandom random) {
        var chances = new double[states][states];
        for (double[] row : chances) {
            double sum = 0;
            for (int s = 0; s < states; s++) {
                row[s] = Math.pow(random.nextDouble(), 4);
                sum += row[s];
            }
            for (int s = 0; s < states; s++) {
                row[s] /= sum;
            }
        }
        return chances;
    }

    private static int draw(double[] chances, SplittableRandom random) {
        double left = random.nextDouble();
        for (int s = 0; s < chances.length - 1; s++) {
            left -= chances[s];
            if (left < 0) {
                return s;
            }
        }
        return chances.length - 1;
    }
}
