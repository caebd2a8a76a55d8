package org.fedcomuon.model;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.bytedeco.pytorch.Tensor;

/**
 * Examples that one loss is the mean over; or those of several clients, one client after the other, with a loss each.
 * As many examples are needed of every client: one that has fewer repeats its first one, which does not count again.
 *
 * @param examples of all clients
 * @param shares clients x examples: what each example counts for in the mean of its client; empty if all count the same
 */
record Minibatch(Examples examples, Optional<Tensor> shares) {
    /** Returns a batch of one client. */
    static Minibatch of(Examples examples) {
        return new Minibatch(examples, Optional.empty());
    }

    /** Returns the batches of several clients, whose examples are chosen by their indices. */
    static Minibatch of(Examples examples, List<int[]> clients) {
        int most = clients.stream().mapToInt(own -> own.length).max().orElseThrow();
        var indices = new int[clients.size() * most];
        var shares = new float[indices.length];
        for (int k = 0; k < clients.size(); k++) {
            int[] own = clients.get(k);
            System.arraycopy(own, 0, indices, k * most, own.length);
            Arrays.fill(indices, k * most + own.length, (k + 1) * most, own[0]);
            Arrays.fill(shares, k * most, k * most + own.length, 1f / own.length);
        }
        boolean equal = clients.stream().allMatch(own -> own.length == most);
        return new Minibatch(
                examples.select(indices),
                equal ? Optional.empty() : Optional.of(Tensor.create(shares).view(clients.size(), most)));
    }
}
