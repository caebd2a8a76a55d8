package org.fedcomuon.experiment;

/** All objectives. */
final class Objectives {
    static final Registry<ObjectiveChoice> ALL = new Registry<>(
            "objective",
            ChoiceProvider::objectives,
            LossObjective.robust(),
            LossObjective.mean(),
            LossObjective.kl(),
            LossObjective.cvar(),
            new MetaObjective(),
            new AucObjective(),
            new MeanVarianceObjective(),
            new BellmanObjective());

    private Objectives() {}
}
