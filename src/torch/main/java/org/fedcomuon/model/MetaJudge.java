package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.function.Function;
import java.util.function.Predicate;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.problem.Point;

/**
 * The meta test: scores the parameters of a network after one step of adaptation. Episodes run in parallel, each on one
 * thread, so that the number of threads does not change the result. Thread-safe.
 */
public final class MetaJudge implements AutoCloseable {
    private final Network network;
    private final Adaptation adaptation;
    private final Predicate<List<String>> computesOn;
    private final ExecutorService pool;
    private final List<DeviceJudge> onDevices = new CopyOnWriteArrayList<>();

    /** Creates one that uses this many threads. */
    public MetaJudge(Network network, Adaptation adaptation, int threads) {
        this(network, adaptation, threads, Torch::computesOn);
    }

    /** @param computesOn whether libtorch computes in the memory of all of some devices */
    MetaJudge(Network network, Adaptation adaptation, int threads, Predicate<List<String>> computesOn) {
        this.network = network;
        this.adaptation = adaptation;
        this.computesOn = computesOn;
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

    /**
     * Returns an evaluation of models by episodes that devices share, as {@link Judge#onDevices} does.
     *
     * @param metrics makes the metrics from a score for each episode
     */
    public Optional<Evaluator.OnDevices> onDevices(
            List<String> devices,
            List<MetaLearning.Episode> episodes,
            Function<List<Judge.Score>, Evaluator.Scores> metrics) {
        if (!computesOn.test(devices)) {
            return Optional.empty();
        }
        var judge = new DeviceJudge(
                episodes.stream().map(AdaptedTask::new).toList(),
                episodes.stream()
                        .map(episode -> Tally.parts(network, episode.query()))
                        .toList(),
                metrics);
        onDevices.add(judge);
        return Optional.of(judge);
    }

    /** An episode that is judged on a device: the sums of each batch of its query set, after the step of adaptation. */
    private final class AdaptedTask implements DeviceJudge.Task {
        private final MetaLearning.Episode episode;

        AdaptedTask(MetaLearning.Episode episode) {
            this.episode = episode;
        }

        @Override
        public List<Tensor> tensors() {
            return List.of(
                    episode.support().inputs(),
                    episode.support().labels(),
                    episode.query().inputs(),
                    episode.query().labels());
        }

        @Override
        public Tensor sums(Parameters w, List<Tensor> here) {
            Parameters own = w.detached().requireGradient(); // w itself is that of all episodes
            Parameters adapted = adaptation.adapted(network, own, new Examples(here.get(0), here.get(1)));
            Tensor[] sums = Tally.parts(network, new Examples(here.get(2), here.get(3))).stream()
                    .map(part -> Torch.part(() -> Tally.sums(network, adapted, part)))
                    .toArray(Tensor[]::new);
            return torch.cat(new TensorVector(sums));
        }
    }

    /** Returns the adapted parameters. It uses its own views, because it sets which tensors require gradients. */
    private Parameters adapt(Point w, Examples support) {
        return adaptation.adapted(network, Parameters.of(w).requireGradient(), support);
    }

    @Override
    public void close() {
        onDevices.forEach(DeviceJudge::close);
        pool.close();
    }
}
