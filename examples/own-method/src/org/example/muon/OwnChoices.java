package org.example.muon;

import java.util.List;
import org.fedcomuon.experiment.ChoiceProvider;
import org.fedcomuon.experiment.MethodChoice;
import org.fedcomuon.experiment.Setting;

/** Makes {@code --method my-method} known; {@code META-INF/services} names this class. */
public final class OwnChoices implements ChoiceProvider {
    @Override
    public List<MethodChoice> methods() {
        return List.of(MethodChoice.method(
                        "my-method",
                        Setting.schedule("eta").withDefault("0.01"),
                        Setting.schedule("alpha").withDefault("0.2"),
                        Setting.schedule("keep").withDefault("0.9"))
                .perClient(4) // W, M, grad g and gradient: what memory is estimated by
                .of((c, muon) -> new HeavyBall(c.schedule("eta"), c.schedule("alpha"), c.schedule("keep"), muon)));
    }
}
