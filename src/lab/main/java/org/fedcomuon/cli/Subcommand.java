package org.fedcomuon.cli;

/**
 * A command that another module adds to {@code fedcomuon}: a service with picocli's annotations. The command line
 * therefore does not depend on optional modules.
 */
public interface Subcommand extends Runnable {}
