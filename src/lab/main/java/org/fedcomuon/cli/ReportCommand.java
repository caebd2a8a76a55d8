package org.fedcomuon.cli;

import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import org.fedcomuon.experiment.RunRecord;
import org.fedcomuon.experiment.RunRecordException;
import org.fedcomuon.report.TrainPage;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code fedcomuon report}: writes a page about one run of {@code train}, or several in the same charts. */
@Command(name = "report", description = "Write a page about one run of 'train', or several in the same charts.")
final class ReportCommand implements Runnable {
    private static final String PAGE = "report.html";

    @Spec
    private CommandSpec spec;

    @Parameters(
            arity = "1..*",
            paramLabel = "DIR",
            description = "A directory that 'train --out' wrote; the run need not have ended.")
    private List<Path> directories = List.of();

    @Option(
            names = "--out",
            paramLabel = "FILE",
            description = "The file to write; DIR/report.html by default, or ./report.html for several runs.")
    private Optional<Path> out = Optional.empty();

    @Option(
            names = "--figure",
            paramLabel = "FILE.svg",
            description = "Also write the main chart of the page to an SVG file.")
    private Optional<Path> figure = Optional.empty();

    @Override
    public void run() {
        // A wildcard of the shell and an explicit name may give a directory twice.
        var distinct = new LinkedHashMap<Path, Path>();
        directories.forEach(
                directory -> distinct.putIfAbsent(directory.toAbsolutePath().normalize(), directory));
        Path page = out.orElseGet(
                () -> distinct.size() == 1 ? directories.getFirst().resolve(PAGE) : Path.of(PAGE));
        refuseDirectory("--out", page);
        figure.ifPresent(file -> refuseDirectory("--figure", file));
        List<RunRecord> runs;
        try {
            runs = distinct.values().stream().map(RunRecord::read).toList();
        } catch (RunRecordException e) {
            throw new UsageException(e.getMessage(), e);
        }
        PrintWriter print = spec.commandLine().getOut();
        figure.ifPresent(file -> {
            String svg = TrainPage.figure(runs)
                    .orElseThrow(() -> new UsageException(
                            "--figure %s: no run has an evaluation, so there is nothing to draw".formatted(file)));
            WholeFile.write("--figure", file, svg);
            print.println(file);
        });
        WholeFile.write("--out", page, TrainPage.html(runs));
        print.println(page);
        print.flush();
    }

    private static void refuseDirectory(String option, Path file) {
        if (Files.isDirectory(file)) {
            throw new UsageException("%s %s is a directory; the name of a file is needed".formatted(option, file));
        }
    }
}
