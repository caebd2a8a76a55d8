package org.fedcomuon.bench;

import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Context;
import org.bytedeco.pytorch.NoGradGuard;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.model.Dropout;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Initialization;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.Parameters;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Point;

/**
 * The work of one evaluation of a model: predictions of all examples that are judged and, in meta learning, a gradient
 * for the adaptation of each episode. The operators are recorded from predictions on the CPU, with two small batches,
 * and extrapolated linearly.
 *
 * @param all the work, as if one device did all of it
 */
record EvaluationWork(WorkList all) {
    /**
     * The flops of the host per second: 16 cores at what a core reaches in products of Newton-Schulz (180 Gflop/s on
     * two cores, {@code docs/performance.md}). An assumption in favour of the CPU, because networks reach less.
     */
    static final double HOST_FLOPS = 16 * 90e9;

    private static final int FEW = 2;
    private static final int MORE = 3;

    /**
     * What is evaluated, and how often.
     *
     * @param every steps between evaluations; there is one more at the start
     * @param examples that are predicted
     * @param batch examples that are predicted at once
     * @param episodes with an adaptation each; 0 without meta learning
     */
    record Plan(long every, int examples, int batch, int episodes) {
        long count(long iterations) {
            return iterations / every + 1;
        }
    }

    /**
     * Records predictions.
     *
     * @param adaptation the gradient of a support set
     */
    static EvaluationWork recorded(Network network, GradientWork.Inputs inputs, Plan plan, WorkList adaptation) {
        double along = (plan.batch() - FEW) / (double) (MORE - FEW);
        WorkList one = GradientWork.line(predictions(network, inputs, FEW), predictions(network, inputs, MORE), along);
        double batches = (double) plan.examples() / plan.batch();
        // The loss and the number of correct predictions of a batch are brought to the host.
        WorkList scores = WorkList.of(KernelWork.tiny("scores to the host", 1).waiting(1));
        return new EvaluationWork(one.and(scores).times(batches).and(adaptation.times(plan.episodes())));
    }

    private static WorkList predictions(Network network, GradientWork.Inputs inputs, int batch) {
        Examples examples = GradientWork.examples(inputs, batch);
        var w = new Point(network.layout(), Floats.zeros(network.parameters()));
        w.values().set(Initialization.uniform(network.layout(), 1).toArray());
        Context libtorch = torch.globalContext();
        boolean enabled = libtorch.userEnabledMkldnn();
        libtorch.setUserEnabledMkldnn(false); // a GPU does not take the ways that are for oneDNN alone
        try {
            WorkList work = TorchWork.of(TorchRecorder.record(() -> {
                try (var _ = new PointerScope();
                        var _ = new NoGradGuard()) {
                    Tensor logits = network.logits(Parameters.of(w), examples.inputs(), Dropout.none());
                    if (logits.size(0) != batch) {
                        throw new IllegalStateException("not a prediction for each example");
                    }
                }
            }));
            double bytes =
                    (double) examples.inputs().numel() * examples.inputs().element_size();
            return WorkList.of(
                            KernelWork.fromHost("examples from the host", bytes).waiting(1))
                    .and(work);
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException("a prediction of %s failed".formatted(network.name()), e);
        } finally {
            libtorch.setUserEnabledMkldnn(enabled);
        }
    }

    /** Returns the seconds of an evaluation on the host, or on so many GPUs that share it. */
    double seconds(Design design, Gpu gpu, int devices) {
        return design == Design.WITH_WAITS ? all.flops() / HOST_FLOPS : all.seconds(gpu, false) / devices;
    }
}
