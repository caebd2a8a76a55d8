package org.fedcomuon.model;

/**
 * What a run takes in memory, before it starts: so that one that cannot fit is refused with a figure. Of one evaluation
 * it counts what is in memory at its peak beside the federation's own variables; a worker evaluates a client at a time.
 *
 * <p>The activations of a plain gradient are counted by the networks. How many times as much a higher derivative takes
 * was measured with the networks of the paper, as the growth of the process; so was what the allocator adds. Expect the
 * truth between half of the figure and the figure.
 *
 * @param parameters of the model
 * @param evaluation bytes of one evaluation
 */
public record MemoryEstimate(long parameters, long evaluation) {
    /** Of a gradient of the plain loss on so many examples. */
    public static MemoryEstimate gradient(Network network, int batch) {
        return of(network, batch, 2, 1);
    }

    /** Of a Hessian-vector product of the plain loss, which FedMAML takes. */
    public static MemoryEstimate hessianProduct(Network network, int batch) {
        return of(network, batch, 4.5, 3);
    }

    /** Of a gradient after a step of adaptation, with so many examples for support and as many for query. */
    public static MemoryEstimate adapted(Network network, int batch, Adaptation adaptation) {
        return adaptation.firstOrder() ? of(network, batch, 2.4, 3) : of(network, batch, 7, 5);
    }

    /**
     * Of a batch that is judged and not trained on. Its activations do not stay, but those of a layer, logits and their
     * logarithms are there at once; no more than if it were trained on.
     */
    public static MemoryEstimate judgement(Network network) {
        return of(network, Tally.batch(network), 1, 0);
    }

    /**
     * Puts one together.
     *
     * @param times how many times the activations of a plain gradient
     * @param copies of the parameters: gradients before they are added up, adapted parameters
     */
    private static MemoryEstimate of(Network network, int batch, double times, int copies) {
        double floats = times * network.activations(batch) + (double) copies * network.parameters();
        return new MemoryEstimate(network.parameters(), (long) (Float.BYTES * floats));
    }

    /**
     * Of a whole run, in bytes.
     *
     * @param clients all of them
     * @param variables of the size of the model that a method has for each client
     * @param workers clients that are evaluated at the same time
     */
    public long bytes(int clients, int variables, int workers) {
        return (long) clients * variables * parameters * Float.BYTES + Math.min(workers, clients) * evaluation;
    }
}
