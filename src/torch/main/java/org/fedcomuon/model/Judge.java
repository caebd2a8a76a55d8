package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.problem.Point;
import org.jspecify.annotations.Nullable;

/**
 * Scores the parameters of a network, in batches on threads of its own. Sums are taken in the order of the batches, so
 * that the number of threads does not change the result. Thread-safe.
 */
public final class Judge implements AutoCloseable {
    private final Network network;
    private final ExecutorService pool;

    /** Creates one that uses this many threads. */
    public Judge(Network network, int threads) {
        this.network = network;
        pool = pool(threads);
    }

    static ExecutorService pool(int threads) {
        return Executors.newFixedThreadPool(
                threads, Thread.ofPlatform().daemon().name("judge-", 0).factory());
    }

    /** Returns the score of {@code w}, which is in native memory, on all of {@code examples}. */
    public Score score(Point w, Examples examples) throws InterruptedException {
        Parameters parameters = Parameters.of(w);
        List<Callable<Tally>> parts = new ArrayList<>();
        for (Examples part : Tally.parts(network, examples)) {
            parts.add(() -> Tally.of(network, parameters, part));
        }
        Tally sum = Tally.NOTHING;
        for (Tally part : all(pool, parts)) {
            sum = sum.plus(part);
        }
        return sum.score();
    }

    /** Returns the first output of the network for each example, such as a score: {@code w} is in native memory. */
    public double[] outputs(Point w, Examples examples) throws InterruptedException {
        Parameters parameters = Parameters.of(w);
        List<Callable<float[]>> parts = new ArrayList<>();
        for (Examples part : Tally.parts(network, examples)) {
            parts.add(() -> first(parameters, part));
        }
        return all(pool, parts).stream()
                .flatMapToDouble(part -> IntStream.range(0, part.length).mapToDouble(i -> part[i]))
                .toArray();
    }

    private float[] first(Parameters parameters, Examples batch) {
        Torch.claim();
        try (var _ = new PointerScope()) {
            Tensor logits = network.logits(parameters, batch.inputs(), Dropout.none());
            Tensor first = logits.flatten(1, -1).select(1, 0).contiguous();
            var values = new float[batch.count()];
            first.data_ptr_float().get(values);
            return values;
        }
    }

    /**
     * Returns all results in order. When it returns or throws, no task is running any more: the caller owns the
     * parameters and may free them.
     */
    static <T> List<T> all(ExecutorService pool, List<Callable<T>> tasks) throws InterruptedException {
        var over = new AtomicBoolean();
        var running = new ArrayList<Future<T>>();
        for (Callable<T> task : tasks) {
            running.add(pool.submit(() -> {
                if (over.get()) {
                    throw new CancellationException();
                }
                return task.call();
            }));
        }
        var results = new ArrayList<T>();
        @Nullable Throwable failure = null;
        boolean interrupted = false;
        for (Future<T> each : running) {
            for (boolean done = false; !done; ) {
                try {
                    results.add(each.get());
                    done = true;
                } catch (InterruptedException _) {
                    interrupted = true;
                    over.set(true);
                } catch (ExecutionException e) {
                    failure = failure == null ? e.getCause() : failure; // those after the first gave up for it
                    over.set(true);
                    done = true;
                }
            }
        }
        if (interrupted) {
            throw new InterruptedException("while a model was judged");
        }
        if (failure != null) {
            throw new IllegalStateException("a batch could not be scored: " + failure, failure);
        }
        return results;
    }

    @Override
    public void close() {
        pool.close();
    }

    /**
     * The score of a model on some examples.
     *
     * @param loss the mean cross entropy
     * @param accuracy the share of correct predictions
     * @param count number of predictions: one per example, or one per token
     */
    public record Score(double loss, double accuracy, int count) {
        /** Returns the perplexity, {@code exp(loss)}. */
        public double perplexity() {
            return Math.exp(loss);
        }
    }
}
