/** Federated compositional optimization with orthogonalized momentum. */
module org.fedcomuon {
    requires info.picocli;
    requires org.bytedeco.javacpp;
    requires org.bytedeco.openblas;
    requires static org.jspecify;
    requires tools.jackson.databind;

    exports org.fedcomuon.device;

    opens org.fedcomuon.cli to
            info.picocli;
}
