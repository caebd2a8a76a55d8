/** Benchmarks that compare with a peer or with the limit of the machine, measured in the same run. */
@SuppressWarnings("requires-automatic") // JMH and JCuda have no module descriptors
module org.fedcomuon.bench {
    requires info.picocli;
    requires java.management;
    requires jcublas;
    requires jcuda;
    requires jdk.jfr;
    requires jmh.core;
    requires org.bytedeco.openblas;
    requires org.fedcomuon.bindings;
    requires org.fedcomuon.lab;
    requires static org.jspecify;
    requires tools.jackson.databind;

    provides org.fedcomuon.cli.Subcommand with
            org.fedcomuon.bench.BenchCommand;

    uses org.fedcomuon.bench.ClusterBench.Engine;

    opens org.fedcomuon.bench to
            info.picocli;
}
