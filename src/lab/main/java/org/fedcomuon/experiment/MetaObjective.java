package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.model.Adaptation;
import org.fedcomuon.model.ClassificationJudge;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.MemoryEstimate;
import org.fedcomuon.model.MetaJudge;
import org.fedcomuon.model.MetaLearning;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;

/** The risk of the clients' losses, each the loss of the network after a step of adaptation to the client. */
record MetaObjective() implements ObjectiveChoice {
    /** The rate of the step of adaptation. */
    static final Setting INNER = Setting.number("inner", 0, 1e6).withDefault("0.02");

    /** Whether derivatives treat the gradient of the step of adaptation as a constant. */
    static final Setting FIRST_ORDER = Setting.flag("firstOrder").withDefault("false");

    @Override
    public String name() {
        return "meta";
    }

    @Override
    public List<Setting> settings() {
        return List.of(LossObjective.LAMBDA, LossObjective.EXPONENT_CAP, INNER, FIRST_ORDER);
    }

    private static Adaptation adaptation(Configuration c) {
        return new Adaptation(c.number(INNER.name()), c.flag(FIRST_ORDER.name()));
    }

    @Override
    public Problem problem(TaskParts parts) {
        Configuration c = parts.configuration();
        var meta = new MetaLearning(
                        parts.network(),
                        parts.train(),
                        parts.clients(),
                        c.integer("batch"),
                        adaptation(c),
                        LossObjective.risk(c))
                .gradients(c.gradients());
        return c.chosen(MethodChoice.ALL).adapts() ? meta.plain() : meta;
    }

    @Override
    public List<ValidationMetric> validationMetrics(TaskData data) {
        return ValidationMetric.ofNetworks(data.hasPerplexity());
    }

    @Override
    public TaskEvaluator evaluator(TaskParts parts) {
        return new AdaptedScores(parts);
    }

    @Override
    public long evaluationBytes(Configuration c, Network network) {
        return MemoryEstimate.adapted(network, c.integer("batch"), adaptation(c))
                .evaluation();
    }

    @Override
    public long judgementBytes(Configuration c, Network network) {
        return MemoryEstimate.gradient(network, c.integer("batch")).evaluation()
                + MemoryEstimate.judgement(network).evaluation();
    }

    /**
     * The meta test: judges the network after a step of adaptation to a batch, by examples that are not in the batch.
     * The test set is divided as the training set was, so that a client is tested on the classes it has, and adapts to
     * some of its test examples; where the split does not depend on classes, there is one task for all clients. For
     * validation, a client adapts to a batch of its training examples, as it would in use.
     */
    private static final class AdaptedScores implements TaskEvaluator {
        private final ClassificationJudge.Metrics metrics;
        private final MetaJudge judge;
        private final List<MetaLearning.Episode> clients;
        private final List<MetaLearning.Episode> test = new ArrayList<>();
        private final List<MetaLearning.Episode> validation = new ArrayList<>();

        AdaptedScores(TaskParts parts) {
            Configuration c = parts.configuration();
            TaskData data = parts.data();
            metrics = parts.metrics(losses -> LossObjective.mean(LossObjective.risk(c), losses));
            int batch = c.integer("batch");
            clients = IntStream.range(0, parts.clients().size())
                    .mapToObj(k -> episode(parts.ofClient(k), batch, c.integer("judgedTrain")))
                    .toList();
            int judged = c.integer("judgedTest");
            List<int[]> testSets = parts.testSets();
            if (testSets.isEmpty()) {
                int[] all = IntStream.range(0, data.testCount()).toArray();
                test.add(episode(data.test(all), batch, judged));
            } else {
                int each = judged == 0 ? 0 : Math.max(1, judged / testSets.size());
                testSets.forEach(own -> test.add(episode(data.test(own), batch, each)));
            }
            for (int k = 0; k < clients.size(); k++) {
                Examples held = parts.validation(k);
                if (held.count() > 0) {
                    int count = TaskParts.limited(held.count(), c.integer("judgedTrain"));
                    validation.add(new MetaLearning.Episode(clients.get(k).support(), held.range(0, count)));
                }
            }
            judge = new MetaJudge(parts.network(), adaptation(c), parts.threads());
        }

        private static MetaLearning.Episode episode(Examples examples, int batch, int judged) {
            int support = Math.clamp(examples.count() / 2, 1, batch);
            int query = TaskParts.limited(examples.count() - support, judged);
            return MetaLearning.Episode.split(examples.range(0, support + query), support);
        }

        @Override
        public Evaluator.Scores of(Point w) throws InterruptedException {
            return metrics.of(judge.score(w, clients), judge.score(w, test), judge.score(w, validation));
        }

        @Override
        public Optional<Evaluator.OnDevices> onDevices(List<String> devices) {
            List<MetaLearning.Episode> all =
                    Stream.of(clients, test, validation).flatMap(List::stream).toList();
            int tests = clients.size();
            int validations = tests + test.size();
            return judge.onDevices(
                    devices,
                    all,
                    scores -> metrics.of(
                            scores.subList(0, tests),
                            scores.subList(tests, validations),
                            scores.subList(validations, all.size())));
        }

        @Override
        public void close() {
            judge.close();
        }
    }
}
