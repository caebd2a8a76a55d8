/** Federated compositional optimization with orthogonalized momentum. */
module org.fedcomuon {
    requires info.picocli;
    requires org.bytedeco.javacpp;
    requires org.bytedeco.openblas;
    requires static org.bytedeco.pytorch;
    requires static org.jspecify;
    requires tools.jackson.databind;

    exports org.fedcomuon.device;
    exports org.fedcomuon.format;
    exports org.fedcomuon.linalg;

    opens org.fedcomuon.cli to
            info.picocli;
}
