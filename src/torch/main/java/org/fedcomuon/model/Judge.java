package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.problem.Point;
import org.jspecify.annotations.Nullable;

/**
 * Scores the parameters of a network, in batches on threads of its own. Sums are taken in the order of the batches, so
 * that the number of threads does not change the result. Thread-safe.
 */
public final class Judge implements AutoCloseable {
    private final Network network;
    private final Predicate<List<String>> computesOn;
    private final ExecutorService pool;
    private final List<DeviceJudge> onDevices = new CopyOnWriteArrayList<>();

    /** Creates one that uses this many threads. */
    public Judge(Network network, int threads) {
        this(network, threads, Torch::computesOn);
    }

    /** @param computesOn whether libtorch computes in the memory of all of some devices */
    Judge(Network network, int threads, Predicate<List<String>> computesOn) {
        this.network = network;
        this.computesOn = computesOn;
        pool = pool(threads);
    }

    static ExecutorService pool(int threads) {
        return Executors.newFixedThreadPool(
                threads, Thread.ofPlatform().daemon().name("judge-", 0).factory());
    }

    /** Returns the score of {@code w}, which is in native memory, on all of {@code examples}. */
    public Score score(Point w, Examples examples) throws InterruptedException {
        return scores(w, List.of(examples)).getFirst();
    }

    /** Returns the scores of {@code w}, which is in native memory, on several sets of examples; one score for each. */
    public List<Score> scores(Point w, List<Examples> sets) throws InterruptedException {
        Parameters parameters = Parameters.of(w);
        List<List<Examples>> parts =
                sets.stream().map(set -> Tally.parts(network, set)).toList();
        List<Callable<Tally>> tasks = new ArrayList<>(); // of all sets, so that no thread waits at the end of one
        parts.forEach(own -> own.forEach(part -> tasks.add(() -> Tally.of(network, parameters, part))));
        Iterator<Tally> tallies = all(pool, tasks).iterator();
        var scores = new ArrayList<Score>();
        for (List<Examples> own : parts) {
            Tally sum = Tally.NOTHING;
            for (int i = 0; i < own.size(); i++) {
                sum = sum.plus(tallies.next());
            }
            scores.add(sum.score());
        }
        return scores;
    }

    /**
     * Returns an evaluation of models on several sets of examples that devices share, in their own memory; empty unless
     * libtorch computes on all of them, which it does on no simulated one. On the CPU {@link #scores} takes all cores.
     *
     * @param devices by name
     * @param metrics makes the metrics from a score for each set
     */
    public Optional<Evaluator.OnDevices> onDevices(
            List<String> devices, List<Examples> sets, Function<List<Score>, Evaluator.Scores> metrics) {
        if (!computesOn.test(devices)) {
            return Optional.empty();
        }
        List<List<Examples>> parts =
                sets.stream().map(set -> Tally.parts(network, set)).toList();
        List<BatchTask> tasks = parts.stream()
                .flatMap(List::stream)
                .map(part -> new BatchTask(network, part))
                .toList();
        var judge = new DeviceJudge(tasks, parts, metrics);
        onDevices.add(judge);
        return Optional.of(judge);
    }

    /** A batch that is judged on a device. */
    private record BatchTask(Network network, Examples examples) implements DeviceJudge.Task {
        @Override
        public List<Tensor> tensors() {
            return List.of(examples.inputs(), examples.labels());
        }

        @Override
        public Tensor sums(Parameters w, List<Tensor> here) {
            return Tally.sums(network, w, new Examples(here.get(0), here.get(1)));
        }
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
        onDevices.forEach(DeviceJudge::close);
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
