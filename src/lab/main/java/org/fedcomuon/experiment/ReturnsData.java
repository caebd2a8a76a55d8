package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.fedcomuon.data.ArraySet;
import org.fedcomuon.data.ExampleSet;
import org.fedcomuon.data.LabelledDataset;

/**
 * Returns of assets, drawn from a seed. Each client is a market: the assets move with a few factors that all markets
 * share, and have mean returns of their own in each.
 */
final class ReturnsData {
    private static final int FACTORS = 3;

    private ReturnsData() {}

    /**
     * Returns the data.
     *
     * @param clients markets; the name of the group of an example is the number of its market
     * @param perClient days per market
     * @param assets in every market
     */
    static LabelledDataset of(int clients, int perClient, int assets, long seed) {
        var random = new SplittableRandom(seed);
        var loadings = new double[assets][FACTORS];
        var common = new double[assets];
        for (int a = 0; a < assets; a++) {
            common[a] = 0.05 * random.nextGaussian();
            for (int f = 0; f < FACTORS; f++) {
                loadings[a][f] = 0.3 * random.nextGaussian();
            }
        }
        var means = new double[clients][assets];
        for (double[] market : means) {
            for (int a = 0; a < assets; a++) {
                market[a] = common[a] + 0.05 * random.nextGaussian();
            }
        }
        return SyntheticData.of(
                days(means, loadings, perClient, random),
                days(means, loadings, perClient, random),
                "returns of %d assets in %d markets, %d days each, and as many for testing"
                        .formatted(assets, clients, perClient),
                List.of("returns", clients, perClient, assets, seed));
    }

    private static ExampleSet days(double[][] means, double[][] loadings, int perClient, SplittableRandom random) {
        int clients = means.length;
        int assets = loadings.length;
        var values = new float[clients * perClient * assets];
        var groups = new ArrayList<String>();
        int at = 0;
        for (int k = 0; k < clients; k++) {
            for (int day = 0; day < perClient; day++) {
                groups.add(Integer.toString(k));
                var factors = new double[FACTORS];
                for (int f = 0; f < FACTORS; f++) {
                    factors[f] = random.nextGaussian();
                }
                for (int a = 0; a < assets; a++) {
                    double value = means[k][a] + 0.2 * random.nextGaussian();
                    for (int f = 0; f < FACTORS; f++) {
                        value += loadings[a][f] * factors[f];
                    }
                    values[at++] = (float) value;
                }
            }
        }
        return new ArraySet(List.of(assets), 1, values, new int[clients * perClient]).withGroups(groups);
    }
}
