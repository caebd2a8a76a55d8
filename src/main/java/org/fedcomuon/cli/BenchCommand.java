package org.fedcomuon.cli;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.StringJoiner;
import org.fedcomuon.bench.BenchReport;
import org.fedcomuon.bench.BenchTable;
import org.fedcomuon.bench.ClusterBench;
import org.fedcomuon.bench.ComposeBench;
import org.fedcomuon.bench.ExactVsNsBench;
import org.fedcomuon.bench.FfiBench;
import org.fedcomuon.bench.OrthogonalizeBench;
import org.fedcomuon.bench.RoundBench;
import org.fedcomuon.bench.ScaleBench;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code fedcomuon bench}: ratios against a peer or the machine's limit, measured in one run. */
@Command(
        name = "bench",
        description = "Measure against a peer or the machine's limit, in one run.",
        footer = {"", "Needs 2.5 GB of memory at the default size."})
final class BenchCommand implements Runnable {
    enum Suite {
        compose,
        orthogonalize,
        exact_vs_ns,
        round,
        scale,
        ffi,
        all,
        /** Starts processes of other engines, so it is not one of all. */
        cluster,
        /** Measures nothing, so it is not one of all. */
        gpu_model;

        @Override
        public String toString() {
            return name().replace('_', '-');
        }
    }

    @Spec
    private CommandSpec spec;

    @Parameters(arity = "0..1", defaultValue = "all", description = "One of ${COMPLETION-CANDIDATES}; all by default.")
    private Suite suite = Suite.all;

    @Option(names = "--json", paramLabel = "FILE", description = "Write the results here too.")
    private Optional<Path> json = Optional.empty();

    @Option(
            names = "--table",
            paramLabel = "FILE",
            arity = "1..*",
            description =
                    "Measure nothing; make a table in Markdown of what --json has left in these files, of one suite or of"
                            + " all.")
    private List<Path> table = List.of();

    @Option(
            names = "--into",
            paramLabel = "FILE",
            description = "With --table: put it into this file, between the lines that say so.")
    private Optional<Path> into = Optional.empty();

    @Option(names = "--device", defaultValue = "cpu:0", description = "Where to measure; cpu:0 by default.")
    private String deviceName = "cpu:0";

    @Option(
            names = "--elements",
            defaultValue = "100000000",
            description = "The large size of compose; 1e8 by default, no less than 1e6.")
    private long elements = 100_000_000;

    private final List<BenchReport> reports = new ArrayList<>();

    @Override
    public void run() {
        if (elements < 1_000_000) {
            throw new UsageException("--elements %d: at least 1000000 are needed".formatted(elements));
        }
        if (suite == Suite.ffi && FfiBench.missing().isPresent()) {
            throw new UsageException("bench ffi: " + FfiBench.missing().get());
        }
        PrintWriter out = spec.commandLine().getOut();
        if (!table.isEmpty()) {
            Optional<String> one = suite == Suite.all ? Optional.empty() : Optional.of(suite.toString());
            List<BenchTable.Run> runs = table.stream().map(BenchFile::read).toList();
            List<BenchTable.Run> chosen =
                    one.map(name -> BenchTable.only(name, runs)).orElse(runs);
            if (chosen.isEmpty()) {
                throw new UsageException("--table: none of the files has a run of %s".formatted(suite));
            }
            String text = BenchTable.of(chosen);
            into.ifPresentOrElse(file -> BenchFile.replaceTable(file, text, one), () -> out.print(text));
            out.flush();
            return;
        }
        if (into.isPresent()) {
            throw new UsageException("--into goes with --table");
        }
        if (suite == Suite.gpu_model) {
            GpuModelSuite.run(out, json);
            return;
        }
        if (suite == Suite.cluster) {
            report(ClusterBench.run(ClusterBench.MEGABYTES, ClusterBench.SAMPLES));
            return;
        }
        try (Device device = Devices.open(deviceName)) {
            if (suite == Suite.compose || suite == Suite.all) {
                report(ComposeBench.run(device, elements, ComposeBench.ROUNDS));
            }
            if (suite == Suite.orthogonalize || suite == Suite.all) {
                report(OrthogonalizeBench.run(device, OrthogonalizeBench.ROUNDS, OrthogonalizeBench.shapes()));
            }
            if (suite == Suite.exact_vs_ns || suite == Suite.all) {
                report(ExactVsNsBench.run(device, ExactVsNsBench.ROUNDS, ExactVsNsBench.shapes()));
            }
            if (suite == Suite.scale || suite == Suite.all) {
                report(ScaleBench.run(device, ScaleBench.CLIENT_STEPS, ScaleBench.ROUNDS));
            }
        }
        if (suite == Suite.ffi || suite == Suite.all) {
            FfiBench.missing()
                    .ifPresentOrElse(
                            reason -> out.printf("ffi: not measured: %s%n", reason),
                            () -> report(FfiBench.run(FfiBench.ROUNDS)));
        }
        if (suite == Suite.round || suite == Suite.all) { // last: it takes longer than all the others together
            try (Device device = Devices.open(deviceName)) {
                report(RoundBench.run(device, RoundBench.ROUNDS));
            }
        }
    }

    /** At once, so that whoever gives up on a long suite keeps those before it. */
    private void report(BenchReport report) {
        print(spec.commandLine().getOut(), report);
        reports.add(report);
        json.ifPresent(file -> BenchFile.write(file, reports));
    }

    private static void print(PrintWriter out, BenchReport report) {
        out.printf("%s on %s%n%s%n", report.suite(), report.device(), report.explanation());
        boolean moving = report.rows().stream().anyMatch(row -> row.bytes() > 0);
        boolean calls = report.rows().stream().allMatch(row -> row.seconds() < 1e-4);
        String moves = moving ? "   GB moved     GB/s" : "";
        out.printf("%8s %10s %8s%s  %s%n", "ratio", calls ? "ns" : "ms", "spread", moves, "");
        for (BenchReport.Row row : report.rows()) {
            String moved = moving ? " %10.3f %8.1f".formatted(row.bytes() * 1e-9, row.gigabytesPerSecond()) : "";
            out.printf(
                    "%8.2f %10.3f %7.1f%%%s  %s%n",
                    row.ratio(),
                    row.seconds() * (calls ? 1e9 : 1e3),
                    row.spread() * 100,
                    moved,
                    row.name() + parts(row));
        }
        report.notes().forEach(out::println);
        out.println();
        out.flush();
    }

    private static String parts(BenchReport.Row row) {
        if (row.parts().isEmpty()) {
            return "";
        }
        var shares = new StringJoiner(", ", " (", ")");
        row.parts().forEach((name, share) -> shares.add(String.format(Locale.ROOT, "%s %.0f%%", name, 100 * share)));
        return shares.toString();
    }
}
