/** Federated compositional optimization with orthogonalized momentum: what a service embeds. */
@SuppressWarnings({
    "module", // modules above this one are not there when it is compiled
    "requires-automatic" // JCuda and Micrometer have no module descriptors
})
module org.fedcomuon.core {
    requires jdk.jfr;
    requires static micrometer.core;
    requires static jcublas;
    requires static jcuda;
    requires static jcusolver;
    requires org.bytedeco.javacpp;
    requires org.bytedeco.openblas;
    requires org.fedcomuon.bindings;
    requires static org.jspecify;
    requires org.slf4j;
    requires tools.jackson.databind;

    exports org.fedcomuon.cluster;
    exports org.fedcomuon.cluster.mpi;
    exports org.fedcomuon.device;
    exports org.fedcomuon.federation;
    exports org.fedcomuon.file;
    exports org.fedcomuon.format;
    exports org.fedcomuon.linalg;
    exports org.fedcomuon.method;
    exports org.fedcomuon.observe;
    exports org.fedcomuon.problem;
    exports org.fedcomuon.problem.testbed to
            org.fedcomuon.lab;
    exports org.fedcomuon.internal.file to
            org.fedcomuon.torch,
            org.fedcomuon.lab;
    exports org.fedcomuon.internal.vendor to
            org.fedcomuon.bench;
    exports org.fedcomuon.internal to
            org.fedcomuon.torch,
            org.fedcomuon.lab,
            org.fedcomuon.bench;

    uses org.fedcomuon.federation.RunRecorder.Page;
}
