/** Networks in libtorch as oracles of a federation, data sets, and how they are split among clients. */
module org.fedcomuon.torch {
    requires de.siegmar.fastcsv;
    requires java.desktop;
    requires transitive org.bytedeco.pytorch;
    requires transitive org.fedcomuon.core;
    requires org.bytedeco.javacpp;
    requires static org.jspecify;
    requires org.slf4j;
    requires tools.jackson.databind;

    exports org.fedcomuon.data;
    exports org.fedcomuon.model;
}
