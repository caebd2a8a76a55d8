package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.LongOptional;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorOptional;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.problem.Point;

/**
 * Scores a network's parameters, in batches spread over threads of its own; sums are taken in the order of the batches,
 * so their number does not change a bit. Of any one thread at a time.
 */
public final class Judge implements AutoCloseable {
    private static final int BATCH = 250;

    /** What {@code at::Reduction::Sum} is. */
    private static final long SUM = 2;

    private record Part(double loss, long right) {}

    private final Network network;
    private final ExecutorService pool;

    /** With so many threads. */
    public Judge(Network network, int threads) {
        this.network = network;
        pool = Executors.newFixedThreadPool(
                threads, Thread.ofPlatform().daemon().name("judge-", 0).factory());
    }

    /** The score of {@code w}, which is in native memory, on all of {@code examples}. */
    public Score score(Point w, Examples examples) throws InterruptedException {
        var parameters = new Parameters(w);
        List<Future<Part>> parts = new ArrayList<>();
        for (int from = 0; from < examples.count(); from += BATCH) {
            int start = from;
            int end = Math.min(examples.count(), from + BATCH);
            parts.add(pool.submit(() -> part(parameters, examples, start, end)));
        }
        double loss = 0;
        long right = 0;
        for (Future<Part> part : parts) {
            Part done = await(part);
            loss += done.loss();
            right += done.right();
        }
        int count = examples.count();
        return new Score(loss / count, (double) right / count, count);
    }

    private static Part await(Future<Part> part) throws InterruptedException {
        try {
            return part.get();
        } catch (ExecutionException e) {
            throw new IllegalStateException("a batch could not be scored: " + e.getCause(), e.getCause());
        }
    }

    private Part part(Parameters parameters, Examples examples, int start, int end) {
        Torch.claim();
        try (var _ = new PointerScope()) {
            Tensor inputs = examples.inputs().narrow(0, start, end - start);
            Tensor labels = examples.labels().narrow(0, start, end - start);
            Tensor logits = network.logits(parameters, inputs, Dropout.none());
            double loss = torch.cross_entropy_loss(logits, labels, new TensorOptional(), SUM, -100, 0)
                    .item_float();
            long right =
                    logits.argmax(new LongOptional(1), false).eq(labels).sum().item_long();
            return new Part(loss, right);
        }
    }

    @Override
    public void close() {
        pool.close();
    }
}
