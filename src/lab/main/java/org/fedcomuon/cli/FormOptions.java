package org.fedcomuon.cli;

import org.fedcomuon.experiment.Reproduction;
import picocli.CommandLine.Option;

/** How large the training runs of a command are. */
final class FormOptions {
    @Option(
            names = "--quick",
            description = {
                "Short runs and few seeds: an inconclusive first look. For text and CIFAR-10 also small models, and one",
                "baseline of each kind."
            })
    private boolean quick;

    @Option(
            names = "--medium",
            description = {
                "For text and CIFAR-10: all methods, with models of about half the width, smaller batches and fewer",
                "steps."
            })
    private boolean medium;

    /** Returns the form; the paper's by default. */
    Reproduction.Form form() {
        if (quick && medium) {
            throw new UsageException("--quick and --medium are different forms; give one of them");
        }
        return quick ? Reproduction.Form.QUICK : medium ? Reproduction.Form.MEDIUM : Reproduction.Form.PAPER;
    }
}
