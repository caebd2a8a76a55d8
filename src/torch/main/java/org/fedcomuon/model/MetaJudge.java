package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import org.bytedeco.javacpp.PointerScope;
import org.fedcomuon.problem.Point;

/**
 * The meta test: scores the parameters of a network after one step of adaptation. Episodes run in parallel, each on one
 * thread, so that the number of threads does not change the result. Thread-safe.
 */
public final class MetaJudge implements AutoCloseable {
    private final Network network;
    private final Adaptation adaptation;
    private final ExecutorService pool;

    /** Creates one that uses this many threads. */
    public MetaJudge(Network network, Adaptation adaptation, int threads) {
        this.network = network;
        this.adaptation = adaptation;
        pool = Judge.pool(threads);
    }

    /**
     * Returns a score for each episode: {@code w}, which is in native memory, takes its step on the support set, all of
     * it at once, and is evaluated on the query set.
     */
    public List<Judge.Score> score(Point w, List<MetaLearning.Episode> episodes) throws InterruptedException {
        List<Callable<Judge.Score>> tasks = new ArrayList<>();
        for (MetaLearning.Episode episode : episodes) {
            tasks.add(() -> score(w, episode));
        }
        return Judge.all(pool, tasks);
    }

    private Judge.Score score(Point w, MetaLearning.Episode episode) {
        Torch.claim();
        try (var _ = new PointerScope()) {
            Parameters adapted = adapt(w, episode.support());
            Tally sum = Tally.NOTHING;
            for (Examples part : Tally.parts(network, episode.query())) {
                sum = sum.plus(Tally.of(network, adapted, part));
            }
            return sum.score();
        }
    }

    /** Returns the adapted parameters. It uses its own views, because it sets which tensors require gradients. */
    private Parameters adapt(Point w, Examples support) {
        return adaptation.adapted(network, Parameters.of(w).requireGradient(), support);
    }

    @Override
    public void close() {
        pool.close();
    }
}
