package org.fedcomuon.data;

import java.util.ArrayList;
import java.util.List;

/**
 * The normalization of pixels in [0, 1]: the mean of the channel is subtracted, and the result is divided by the
 * standard deviation of the channel.
 *
 * @param means one per channel
 * @param deviations one per channel, none of them 0
 * @param deviations one per channel, none of them 0
 */
record Normalization(List<Double> means, List<Double> deviations) {
    /** Copies the lists. */
    Normalization {
        means = List.copyOf(means);
        deviations = List.copyOf(deviations);
        if (means.isEmpty() || means.size() != deviations.size()) {
            throw new IllegalArgumentException("%d means and %d deviations; every channel has one of each"
                    .formatted(means.size(), deviations.size()));
        }
        if (!means.stream().allMatch(Double::isFinite)
                || !deviations.stream().allMatch(d -> d > 0 && Double.isFinite(d))) {
            throw new IllegalArgumentException(
                    "means %s and deviations %s; finite numbers are needed, deviations above 0"
                            .formatted(means, deviations));
        }
    }

    /**
     * Returns the normalization that gives every channel mean 0 and standard deviation 1 over all pixels of these
     * images. A constant channel, whose deviation is 0, is divided by 1.
     */
    static Normalization of(ImageSet images) {
        var means = new ArrayList<Double>();
        var deviations = new ArrayList<Double>();
        for (int channel = 0; channel < images.channels(); channel++) {
            long[] histogram = images.histogram(channel); // counts are exact in any order
            long count = 0;
            long sum = 0;
            for (int value = 0; value < histogram.length; value++) {
                count += histogram[value];
                sum += value * histogram[value];
            }
            if (count == 0) {
                throw new IllegalArgumentException("no images have no mean");
            }
            double mean = sum / (255.0 * count);
            double squares = 0;
            for (int value = 0; value < histogram.length; value++) {
                double distance = value / 255.0 - mean;
                squares += histogram[value] * distance * distance;
            }
            boolean constant = histogram[(int) (sum / count)] == count;
            means.add(mean);
            deviations.add(constant ? 1 : Math.sqrt(squares / count));
        }
        return new Normalization(means, deviations);
    }

    /** Normalizes a pixel, given as an unsigned byte. */
    float apply(int channel, int value) {
        return (float) ((value / 255.0 - means.get(channel)) / deviations.get(channel));
    }
}
