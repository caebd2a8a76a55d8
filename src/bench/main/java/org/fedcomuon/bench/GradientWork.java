package org.fedcomuon.bench;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.model.Adaptation;
import org.fedcomuon.model.Classification;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Initialization;
import org.fedcomuon.model.LeNet;
import org.fedcomuon.model.MetaLearning;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.ExponentialRisk;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;

/**
 * The work of one gradient of one client, from the operators that libtorch calls for it on the CPU. They are recorded
 * with the whole batch, or with two small batches and extrapolated linearly, operator by operator. Shapes do not depend
 * on the data, so the examples are arbitrary.
 *
 * @param work the work of a GPU
 * @param maskElements elements of dropout masks, which the host generates
 * @param recorded the batches that were run
 */
record GradientWork(WorkList work, double maskElements, List<Integer> recorded) {
    private static final long SEED = 42;
    private static final int ALIGNMENT = 64;

    /** The kind of the examples. */
    sealed interface Inputs {
        /** Images. */
        record Images(int channels, int side) implements Inputs {}

        /** Sequences, whose labels are the next words. */
        record Words(int length) implements Inputs {}
    }

    /** Records a gradient with the whole batch. */
    static GradientWork recorded(Network network, Inputs inputs, Optional<Adaptation> adaptation, int batch) {
        List<TorchOperation> operations = record(network, inputs, adaptation, batch);
        return new GradientWork(TorchWork.of(operations), TorchWork.maskElements(operations), List.of(batch));
    }

    /**
     * Records a gradient with two small batches, for gradients that would take minutes. The work of every operator is a
     * linear function of the batch size.
     */
    static GradientWork extrapolated(
            Network network, Inputs inputs, Optional<Adaptation> adaptation, int few, int more, int batch) {
        GradientWork small = recorded(network, inputs, adaptation, few);
        GradientWork large = recorded(network, inputs, adaptation, more);
        if (small.work.all().size() != large.work.all().size()) {
            throw new IllegalStateException("libtorch calls other operators with %d examples than with %d: %d, not %d"
                    .formatted(
                            more, few, large.work.all().size(), small.work.all().size()));
        }
        double along = (batch - few) / (double) (more - few);
        double masks = small.maskElements + along * (large.maskElements - small.maskElements);
        return new GradientWork(line(small.work, large.work, along), masks, List.of(few, more));
    }

    /** Returns {@code a + along (b - a)}, operator by operator. */
    static WorkList line(WorkList a, WorkList b, double along) {
        var all = new ArrayList<KernelWork>();
        for (int i = 0; i < a.all().size(); i++) {
            all.add(line(a.all().get(i), b.all().get(i), along));
        }
        return new WorkList(all);
    }

    /**
     * Returns the gradients of so many clients: one after the other, or by one pass, whose operators work for all
     * clients, whose masks are made on the device, and which leaves its values there.
     */
    WorkList of(Design design, int clients) {
        if (design == Design.WITH_WAITS) {
            return work.times(clients);
        }
        return new WorkList(work.all().stream()
                .filter(each -> !each.name().equals(TorchWork.VALUE_TO_HOST))
                .map(each -> each.name().equals(TorchWork.MASK)
                        ? KernelWork.of("mask", each.launches(), 0, each.bytes())
                        : each)
                .map(each -> each.wider(clients).waiting(0))
                .toList());
    }

    private static KernelWork line(KernelWork a, KernelWork b, double along) {
        if (!a.name().equals(b.name()) || a.launches() != b.launches()) {
            throw new IllegalStateException("libtorch calls %s where it called %s".formatted(b.name(), a.name()));
        }
        return new KernelWork(
                a.name(),
                a.launches(),
                a.flops() + along * (b.flops() - a.flops()),
                0,
                a.bytes() + along * (b.bytes() - a.bytes()),
                0,
                a.hostBytes() + along * (b.hostBytes() - a.hostBytes()),
                a.product(),
                a.precision(),
                a.waits());
    }

    private static List<TorchOperation> record(
            Network network, Inputs inputs, Optional<Adaptation> adaptation, int batch) {
        Network asOnGpu = network instanceof LeNet ours ? LibtorchLeNet.asOnGpu(ours) : network;
        Problem problem = problem(asOnGpu, inputs, adaptation, batch);
        try (Arena arena = Arena.ofShared()) {
            Point w = point(network, arena);
            w.values().set(Initialization.uniform(network.layout(), SEED).toArray());
            Point gradient = point(network, arena);
            Client client = problem.client(0);
            var xi = new Sample(SEED, 0, Sample.Stream.INNER, 0);
            return TorchRecorder.record(
                    () -> client.inner(xi, w, Floats.of(new float[1]), new Jacobian(List.of(gradient))));
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException("the gradient of %s failed".formatted(network.name()), e);
        }
    }

    private static Point point(Network network, Arena arena) {
        return new Point(network.layout(), Floats.of(arena.allocate(network.parameters() * Float.BYTES, ALIGNMENT)));
    }

    private static Problem problem(Network network, Inputs inputs, Optional<Adaptation> adaptation, int batch) {
        int count = adaptation.isPresent() ? 2 * batch : batch;
        Examples examples = examples(inputs, count);
        List<int[]> shares = List.of(IntStream.range(0, count).toArray());
        var risk = new ExponentialRisk(1);
        return adaptation
                .<Problem>map(step -> new MetaLearning(network, examples, shares, batch, step, risk))
                .orElseGet(() -> new Classification(network, examples, shares, batch, risk));
    }

    /** Returns examples with arbitrary content. */
    static Examples examples(Inputs inputs, int count) {
        return switch (inputs) {
            case Inputs.Images(int channels, int side) ->
                new Examples(torch.zeros(count, channels, side, side), Tensor.create(new long[count]));
            case Inputs.Words(int length) -> new Examples(words(count, length), words(count, length));
        };
    }

    private static Tensor words(int count, int length) {
        return Tensor.create(new long[count * length]).view(count, length);
    }
}
