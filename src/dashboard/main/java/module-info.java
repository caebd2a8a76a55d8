/** A live page about a federation, served by the process that runs it. */
@SuppressWarnings("module") // the reports lie above, and are not there when it is compiled
module org.fedcomuon.dashboard {
    requires jdk.management;
    requires transitive org.fedcomuon.core;
    requires static org.jspecify;
    requires org.slf4j;
    requires tools.jackson.databind;

    exports org.fedcomuon.chart to
            org.fedcomuon.lab;
    exports org.fedcomuon.dashboard;
}
