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

/** {@code fedcomuon report}: runs of {@code train} as a page, one or several beside each other. */
@Command(name = "report", description = "Show runs of 'train' on a page, one or several over each other.")
final class ReportCommand implements Runnable {
    private static final String PAGE = "report.html";

    @Spec
    private CommandSpec spec;

    @Parameters(arity = "1..*", paramLabel = "DIR", description = "What 'train --out' wrote, ended or not.")
    private List<Path> directories = List.of();

    @Option(
            names = "--out",
            paramLabel = "FILE",
            description = "Where the page goes; DIR/report.html by default, or report.html here for several.")
    private Optional<Path> out = Optional.empty();

    @Override
    public void run() {
        // The shell's wildcards and a name beside them may give a directory twice.
        var distinct = new LinkedHashMap<Path, Path>();
        directories.forEach(
                directory -> distinct.putIfAbsent(directory.toAbsolutePath().normalize(), directory));
        Path page = out.orElseGet(
                () -> distinct.size() == 1 ? directories.getFirst().resolve(PAGE) : Path.of(PAGE));
        if (Files.isDirectory(page)) {
            throw new UsageException("--out %s is a directory; a file's name would be right".formatted(page));
        }
        List<RunRecord> runs;
        try {
            runs = distinct.values().stream().map(RunRecord::read).toList();
        } catch (RunRecordException e) {
            throw new UsageException(e.getMessage(), e);
        }
        WholeFile.write("--out", page, TrainPage.html(runs));
        PrintWriter print = spec.commandLine().getOut();
        print.println(page);
        print.flush();
    }
}
