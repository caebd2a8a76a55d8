package org.example.embedding;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Round;
import org.junit.jupiter.api.Test;

class DemandTest {
    @Test
    void theShopsLearnAndTheResultDoesNotDependOnTheDevices() throws Exception {
        List<Double> losses = new ArrayList<>();
        var listener = new Listener() {
            @Override
            public void onRound(Round round) {
                losses.add(round.meanLoss());
            }
        };
        var one = Demand.run(5).iterations(2000).tau(5).seed(42).listener(listener).build().run();
        var two = Demand.run(5).iterations(2000).tau(5).seed(42).devices("cpu:0", "cpu:1").build().run();
        assertEquals(one.sha256(), two.sha256());
        assertTrue(losses.getLast() < losses.getFirst() / 4, () -> losses.getFirst() + " to " + losses.getLast());
    }
}
