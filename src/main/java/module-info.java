/** Federated compositional optimization with orthogonalized momentum. */
@SuppressWarnings({"requires-automatic", "requires-transitive-automatic"
}) // JCuda and Micrometer have no module descriptors
module org.fedcomuon {
    requires info.picocli;
    requires java.logging;
    requires jdk.httpserver;
    requires jdk.jfr;
    requires static transitive micrometer.core;
    requires static jcublas;
    requires static jcuda;
    requires static jcusolver;
    requires org.bytedeco.javacpp;
    requires org.bytedeco.openblas;
    requires static org.bytedeco.pytorch;
    requires static org.jspecify;
    requires org.slf4j;
    requires tools.jackson.databind;
    requires tools.jackson.dataformat.yaml;

    exports org.fedcomuon.cluster;
    exports org.fedcomuon.cluster.mpi;
    exports org.fedcomuon.dashboard;
    exports org.fedcomuon.data;
    exports org.fedcomuon.device;
    exports org.fedcomuon.federation;
    exports org.fedcomuon.format;
    exports org.fedcomuon.linalg;
    exports org.fedcomuon.method;
    exports org.fedcomuon.model;
    exports org.fedcomuon.observe;
    exports org.fedcomuon.problem;

    uses org.fedcomuon.bench.ClusterBench.Engine;
    uses org.fedcomuon.experiment.TrainingEngine;

    opens org.fedcomuon.cli to
            info.picocli;
}
