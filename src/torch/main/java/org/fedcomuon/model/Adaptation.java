package org.fedcomuon.model;

import org.bytedeco.pytorch.BoolOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;

/**
 * One step of adaptation to a task, {@code W~ = W - a grad l(W; S)}. Meta learning judges a model by its loss after
 * this step.
 *
 * @param rate a
 * @param firstOrder uses {@code grad l(W~; Q)} as the gradient instead of the exact {@code (I - a hess l(W; S)) grad
 *     l(W~; Q)}; takes less than half of the time and memory
 */
public record Adaptation(double rate, boolean firstOrder) {
    public Adaptation {
        if (!(rate >= 0 && rate < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("the rate of adaptation is %s; a number >= 0 is needed".formatted(rate));
        }
    }

    /** Returns an adaptation with exact gradients. */
    public static Adaptation exact(double rate) {
        return new Adaptation(rate, false);
    }

    /**
     * Returns {@code g(W; (S, Q)) = l(W~; Q)}, differentiable with respect to {@code w}; with fresh masks for S and for
     * Q.
     */
    Tensor loss(Network network, Parameters w, MetaLearning.Episode episode, Dropout dropout) {
        return loss(network, w, Minibatch.of(episode.support()), Minibatch.of(episode.query()), dropout);
    }

    /** Returns the same for S and Q; with parameters of several clients, each adapts to its own part of S. */
    Tensor loss(Network network, Parameters w, Minibatch support, Minibatch query, Dropout dropout) {
        Parameters adapted = step(network, w, support, dropout, !firstOrder);
        return CrossEntropy.mean(network, adapted, query, dropout);
    }

    /** Returns W~ without derivatives. */
    Parameters adapted(Network network, Parameters w, Examples support) {
        return step(network, w, Minibatch.of(support), Dropout.none(), false).detached();
    }

    /** Returns W~. Without {@code graph} the gradient is treated as a constant. */
    private Parameters step(Network network, Parameters w, Minibatch support, Dropout dropout, boolean graph) {
        Tensor loss = Views.total(CrossEntropy.mean(network, w, support, dropout));
        TensorVector slope = torch.grad(
                new TensorVector(loss), w.vector(), new TensorVector(), new BoolOptional(graph), graph, false);
        return w.minus(rate, slope);
    }
}
