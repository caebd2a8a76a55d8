/** Presets, training runs, reproductions of the paper, reports, and the command line over them. */
@SuppressWarnings("module") // the modules named in qualified exports are compiled later
module org.fedcomuon.lab {
    requires info.picocli;
    requires java.logging;
    requires java.management;
    requires org.apache.commons.statistics.distribution;
    requires org.fedcomuon.dashboard;
    requires transitive org.fedcomuon.torch;
    requires static org.jspecify;
    requires tools.jackson.databind;
    requires tools.jackson.dataformat.yaml;

    exports org.fedcomuon.cli to
            org.fedcomuon.bench;
    exports org.fedcomuon.experiment;
    exports org.fedcomuon.experiment.statistics;
    exports org.fedcomuon.sweep;

    uses org.fedcomuon.cli.Subcommand;
    uses org.fedcomuon.experiment.ChoiceProvider;
    uses org.fedcomuon.experiment.TrainingEngine;
    uses org.fedcomuon.sweep.TrialCluster;

    provides org.fedcomuon.experiment.TrainingEngine with
            org.fedcomuon.experiment.LocalTraining,
            org.fedcomuon.experiment.MpiTraining;
    provides org.fedcomuon.federation.RunRecorder.Page with
            org.fedcomuon.report.RecordedPage;

    opens org.fedcomuon.cli to
            info.picocli;
}
