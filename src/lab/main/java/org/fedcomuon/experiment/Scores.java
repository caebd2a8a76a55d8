package org.fedcomuon.experiment;

import java.util.List;
import org.fedcomuon.model.Judge;
import org.fedcomuon.problem.Point;

/** Evaluates a model: for each client on its own examples, and on test examples, which no client has. */
interface Scores extends AutoCloseable {
    /** Returns one score per client. */
    List<Judge.Score> ofClients(Point w) throws InterruptedException;

    /** Returns one score, or one per client. */
    List<Judge.Score> ofTest(Point w) throws InterruptedException;

    @Override
    void close();
}
