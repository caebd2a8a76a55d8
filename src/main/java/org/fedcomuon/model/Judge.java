package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.fedcomuon.problem.Point;

/**
 * Scores a network's parameters, in batches spread over threads of its own; sums are taken in the order of the batches,
 * so their number does not change a bit. Of any one thread at a time.
 */
public final class Judge implements AutoCloseable {
    private final Network network;
    private final ExecutorService pool;

    /** With so many threads. */
    public Judge(Network network, int threads) {
        this.network = network;
        pool = pool(threads);
    }

    static ExecutorService pool(int threads) {
        return Executors.newFixedThreadPool(
                threads, Thread.ofPlatform().daemon().name("judge-", 0).factory());
    }

    /** The score of {@code w}, which is in native memory, on all of {@code examples}. */
    public Score score(Point w, Examples examples) throws InterruptedException {
        Parameters parameters = Parameters.of(w);
        List<Future<Tally>> parts = new ArrayList<>();
        for (Examples part : Tally.parts(network, examples)) {
            parts.add(pool.submit(() -> Tally.of(network, parameters, part)));
        }
        Tally sum = Tally.NOTHING;
        for (Future<Tally> part : parts) {
            sum = sum.plus(await(part));
        }
        return sum.score();
    }

    static <T> T await(Future<T> part) throws InterruptedException {
        try {
            return part.get();
        } catch (ExecutionException e) {
            throw new IllegalStateException("a batch could not be scored: " + e.getCause(), e.getCause());
        }
    }

    @Override
    public void close() {
        pool.close();
    }
}
