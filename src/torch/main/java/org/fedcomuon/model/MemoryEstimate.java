package org.fedcomuon.model;

import java.util.OptionalLong;

/**
 * The estimated memory of a run, so that a run that cannot fit is refused with a figure before it starts. It counts the
 * peak of one evaluation beside the variables of the federation; a worker evaluates one client at a time.
 *
 * <p>The activations of a plain gradient are counted by the networks. How many times as much a higher derivative takes
 * was measured with the networks of the paper, as the growth of the process; so was what the allocator adds. A run
 * takes between half of the figure and the figure.
 *
 * @param parameters of the model
 * @param evaluation bytes of one evaluation
 * @param complete whether the activations of the network are known; if not, they are missing in the figures, which are
 *     lower bounds
 */
public record MemoryEstimate(long parameters, long evaluation, boolean complete) {
    /** Returns the estimate for a gradient of the plain loss on this many examples. */
    public static MemoryEstimate gradient(Network network, int batch) {
        return of(network, batch, 2, 1);
    }

    /** Returns the estimate for a Hessian-vector product of the plain loss, as in FedMAML. */
    public static MemoryEstimate hessianProduct(Network network, int batch) {
        return of(network, batch, 4.5, 3);
    }

    /**
     * Returns the estimate for a gradient after a step of adaptation, with this many support examples and as many query
     * examples.
     */
    public static MemoryEstimate adapted(Network network, int batch, Adaptation adaptation) {
        return adaptation.firstOrder() ? of(network, batch, 2.4, 3) : of(network, batch, 7, 5);
    }

    /**
     * Returns the estimate for a batch that is evaluated without training. Its activations are not kept, but those of
     * one layer, the logits and their logarithms are in memory at once; the estimate is never larger than in training.
     */
    public static MemoryEstimate judgement(Network network) {
        return of(network, Tally.batch(network), 1, 0);
    }

    /**
     * Returns the estimate of one evaluation.
     *
     * @param times how many times the activations of a plain gradient
     * @param copies of the parameters: gradients before they are added up, adapted parameters
     */
    private static MemoryEstimate of(Network network, int batch, double times, int copies) {
        OptionalLong activations = network.activations(batch);
        double floats = times * activations.orElse(0) + (double) copies * network.parameters();
        return new MemoryEstimate(network.parameters(), (long) (Float.BYTES * floats), activations.isPresent());
    }

    /**
     * Returns the estimate of a whole run, in bytes.
     *
     * @param clients all of them
     * @param variables of the size of the model that a method has for each client
     * @param workers clients that are evaluated at the same time
     */
    public long bytes(int clients, int variables, int workers) {
        return (long) clients * variables * parameters * Float.BYTES + Math.min(workers, clients) * evaluation;
    }
}
