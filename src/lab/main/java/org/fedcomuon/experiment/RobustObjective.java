package org.fedcomuon.experiment;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.fedcomuon.model.Classification;
import org.fedcomuon.model.Examples;
import org.fedcomuon.model.Judge;
import org.fedcomuon.model.MemoryEstimate;
import org.fedcomuon.model.Network;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;

/** The risk of the clients' losses, each the plain loss of the network. */
record RobustObjective() implements ObjectiveChoice {
    @Override
    public String name() {
        return "robust";
    }

    @Override
    public List<Setting> settings() {
        return List.of();
    }

    @Override
    public Problem problem(TaskParts parts) {
        return new Classification(
                parts.network(),
                parts.train(),
                parts.clients(),
                parts.configuration().integer("batch"),
                parts.risk());
    }

    @Override
    public Scores scores(TaskParts parts) {
        return new PlainScores(parts);
    }

    @Override
    public long evaluationBytes(Configuration c, Network network) {
        return MemoryEstimate.gradient(network, c.integer("batch")).evaluation();
    }

    @Override
    public long judgementBytes(Configuration c, Network network) {
        return MemoryEstimate.judgement(network).evaluation();
    }

    /** Evaluates the network without adaptation. */
    private static final class PlainScores implements Scores {
        private final Judge judge;
        private final List<Examples> clients = new ArrayList<>();
        private final Examples test;

        PlainScores(TaskParts parts) {
            Configuration c = parts.configuration();
            for (int k = 0; k < parts.clients().size(); k++) {
                Examples own = parts.ofClient(k);
                clients.add(own.range(0, TaskParts.limited(own.count(), c.integer("judgedTrain"))));
            }
            int count = TaskParts.limited(parts.data().testCount(), c.integer("judgedTest"));
            test = parts.data().test(IntStream.range(0, count).toArray());
            judge = new Judge(parts.network(), parts.threads());
        }

        @Override
        public List<Judge.Score> ofClients(Point w) throws InterruptedException {
            var scores = new ArrayList<Judge.Score>();
            for (Examples client : clients) {
                scores.add(judge.score(w, client));
            }
            return scores;
        }

        @Override
        public List<Judge.Score> ofTest(Point w) throws InterruptedException {
            return List.of(judge.score(w, test));
        }

        @Override
        public void close() {
            judge.close();
        }
    }
}
