package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import org.bytedeco.javacpp.PointerScope;
import org.fedcomuon.problem.Point;

/**
 * The meta test: scores what a network's parameters become by one step of adaptation. Episodes run side by side on
 * threads of its own, each on one, so the number of threads does not change a bit. Thread-safe.
 */
public final class MetaJudge implements AutoCloseable {
    private final Network network;
    private final Adaptation adaptation;
    private final ExecutorService pool;

    /** With so many threads. */
    public MetaJudge(Network network, Adaptation adaptation, int threads) {
        this.network = network;
        this.adaptation = adaptation;
        pool = Judge.pool(threads);
    }

    /**
     * A score for each episode: {@code w}, which is in native memory, takes its step on the support set, all of it at
     * once, and is asked about the query set.
     */
    public List<Score> score(Point w, List<Episode> episodes) throws InterruptedException {
        List<Callable<Score>> tasks = new ArrayList<>();
        for (Episode episode : episodes) {
            tasks.add(() -> score(w, episode));
        }
        return Judge.all(pool, tasks);
    }

    private Score score(Point w, Episode episode) {
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

    /** With views of its own: which tensors ask for derivatives is nobody else's business. */
    private Parameters adapt(Point w, Examples support) {
        return adaptation.adapted(network, Parameters.of(w).requireGradient(), support);
    }

    @Override
    public void close() {
        pool.close();
    }
}
