package org.fedcomuon.bench;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.StringJoiner;
import org.fedcomuon.cli.Progress;
import org.fedcomuon.cli.Subcommand;
import org.fedcomuon.cli.UsageException;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code fedcomuon bench}: compares with a peer or with the machine's limit, measured in the same run. */
@Command(
        name = "bench",
        description = "Compare with a peer or with the machine's limit, measured in the same run.",
        footer = {
            "",
            "Needs 2.5 GB of memory at the default size. On a GPU, all is compose, orthogonalize, exact-vs-ns and round;"
                    + " simulated GPUs are always measured as with --small."
        })
public final class BenchCommand implements Subcommand {
    enum Suite {
        compose,
        orthogonalize,
        exact_vs_ns,
        round,
        scale,
        ffi,
        all,
        /** Not part of all, because it starts processes of other engines. */
        cluster,
        /** Not part of all, because it measures nothing. */
        gpu_model,
        /** Not part of all, because it measures nothing. */
        kernels;

        /** Whether it measures the device that is named, whatever its kind. */
        boolean isForAnyDevice() {
            return this == compose || this == orthogonalize || this == exact_vs_ns || this == round || this == all;
        }

        @Override
        public String toString() {
            return name().replace('_', '-');
        }
    }

    @Spec
    private CommandSpec spec;

    @Parameters(arity = "0..1", defaultValue = "all", description = "One of ${COMPLETION-CANDIDATES}; all by default.")
    private Suite suite = Suite.all;

    @Option(names = "--json", paramLabel = "FILE", description = "Also write the results to this file.")
    private Optional<Path> json = Optional.empty();

    @Option(
            names = "--table",
            paramLabel = "FILE",
            arity = "1..*",
            description =
                    "Do not measure; make a Markdown table from files written by --json, for one suite or for all.")
    private List<Path> table = List.of();

    @Option(
            names = "--into",
            paramLabel = "FILE",
            description = "With --table: replace the table in this file, between its marker lines.")
    private Optional<Path> into = Optional.empty();

    @Option(names = "--device", defaultValue = "cpu:0", description = "The device to measure; cpu:0 by default.")
    private String deviceName = "cpu:0";

    @Option(
            names = "--elements",
            defaultValue = "100000000",
            description = "The number of elements in compose's large case; 1e8 by default, at least 1e6.")
    private long elements = 100_000_000;

    @Option(names = "--small", description = "Small sizes and one sample each: to see that it runs, not how fast.")
    private boolean small;

    @Option(names = "--task", paramLabel = "NAME", description = "Measure only this task in round: mnist or cifar-cnn.")
    private Optional<String> task = Optional.empty();

    @Option(
            names = "--clients",
            paramLabel = "K",
            split = ",",
            description = "Measure only these numbers of clients in cluster.")
    private List<Integer> clients = List.of(); // all

    @Option(
            names = "--megabytes",
            paramLabel = "MB",
            split = ",",
            description = "Measure only these sizes of the weights in cluster.")
    private List<Double> megabytes = List.of(); // all

    @Option(
            names = "--large",
            description = "In cluster: measure an exchange as large as that of wikitext2-robust instead; needs 12 GB.")
    private boolean large;

    private final List<BenchReport> reports = new ArrayList<>();

    @Override
    public void run() {
        if (elements < 1_000_000) {
            throw new UsageException("--elements %d: at least 1000000 are needed".formatted(elements));
        }
        if (task.isPresent() && suite != Suite.round) {
            throw new UsageException("--task is an option of bench round only");
        }
        if (task.isPresent() && !RoundBench.TASKS.contains(task.get())) {
            throw new UsageException(
                    "--task %s: unknown; the tasks are %s".formatted(task.get(), String.join(", ", RoundBench.TASKS)));
        }
        boolean onCpu = deviceName.equals("cpu") || deviceName.startsWith("cpu:");
        if (!onCpu && !suite.isForAnyDevice()) {
            throw new UsageException("--device %s: bench %s is for the CPU".formatted(deviceName, suite));
        }
        if (small && !suite.isForAnyDevice()) {
            throw new UsageException("--small is not an option of bench %s".formatted(suite));
        }
        boolean chosen = large || !clients.isEmpty() || !megabytes.isEmpty();
        if (chosen && suite != Suite.cluster) {
            throw new UsageException("--clients, --megabytes and --large are options of bench cluster only");
        }
        PrintWriter out = spec.commandLine().getOut();
        if (!table.isEmpty() && suite == Suite.kernels) {
            String text = KernelsSuite.table(table);
            into.ifPresentOrElse(
                    file -> BenchFile.replaceTable(file, text, Optional.of(suite.toString())), () -> out.print(text));
            out.flush();
            return;
        }
        if (!table.isEmpty()) {
            Optional<String> one = suite == Suite.all ? Optional.empty() : Optional.of(suite.toString());
            List<BenchTable.Run> runs = table.stream().map(BenchFile::read).toList();
            List<BenchTable.Run> shown =
                    one.map(name -> BenchTable.only(name, runs)).orElse(runs);
            if (shown.isEmpty()) {
                throw new UsageException("--table: none of the files has a run of %s".formatted(suite));
            }
            String text = BenchTable.of(shown);
            into.ifPresentOrElse(file -> BenchFile.replaceTable(file, text, one), () -> out.print(text));
            out.flush();
            return;
        }
        if (into.isPresent()) {
            throw new UsageException("--into requires --table");
        }
        if (suite == Suite.gpu_model) {
            GpuModelSuite.run(out, json);
            return;
        }
        if (suite == Suite.kernels) {
            KernelsSuite.run(out, spec.commandLine().getErr(), json);
            return;
        }
        Progress progress = Progress.ofTurns(spec.commandLine().getErr());
        if (suite == Suite.cluster && large) {
            ClusterBench.large().forEach(out::println);
            out.flush();
            return;
        }
        if (suite == Suite.cluster) {
            report(ClusterBench.run(
                    clients.isEmpty() ? ClusterBench.CLIENTS : clients,
                    megabytes.isEmpty() ? ClusterBench.MEGABYTES : megabytes,
                    ClusterBench.SAMPLES,
                    progress::onTurn));
            return;
        }
        boolean simulated = deviceName.startsWith("cudasim");
        boolean tiny = small || simulated;
        try (Device device = Devices.open(deviceName)) {
            if (simulated) {
                out.printf("%s is simulated: small sizes, and times that say nothing about a GPU.%n%n", deviceName);
            }
            if (suite == Suite.compose || suite == Suite.all) {
                report(ComposeBench.run(
                        device,
                        tiny ? ComposeBench.SMALL : List.of(1_000_000L, elements),
                        tiny ? 1 : ComposeBench.ROUNDS,
                        progress::onTurn));
            }
            if (suite == Suite.orthogonalize || suite == Suite.all) {
                report(OrthogonalizeBench.run(
                        device,
                        tiny ? OrthogonalizeBench.Sizes.small() : OrthogonalizeBench.Sizes.full(),
                        tiny ? 1 : OrthogonalizeBench.ROUNDS,
                        progress::onTurn));
            }
            if (suite == Suite.exact_vs_ns || suite == Suite.all) {
                report(ExactVsNsBench.run(
                        device,
                        tiny ? 1 : ExactVsNsBench.ROUNDS,
                        tiny ? ExactVsNsBench.smallShapes() : ExactVsNsBench.shapes(),
                        progress::onTurn));
            }
            if (suite == Suite.scale || (suite == Suite.all && onCpu && !tiny)) {
                report(ScaleBench.run(device, ScaleBench.CLIENT_STEPS, ScaleBench.ROUNDS, progress::onTurn));
                if (onCpu) {
                    report(CohortBench.run(CohortBench.ROUNDS, progress::onTurn));
                }
            }
        }
        if (suite == Suite.ffi || (suite == Suite.all && onCpu && !tiny)) {
            report(FfiBench.run(FfiBench.ROUNDS, progress::onTurn));
        }
        if (suite == Suite.round || suite == Suite.all) { // last, because it takes longer than all others together
            try (Device device = Devices.open(deviceName)) {
                report(RoundBench.run(
                        device,
                        tiny ? 1 : RoundBench.ROUNDS,
                        tiny,
                        task.map(List::of).orElse(RoundBench.TASKS),
                        progress::onTurn));
            }
        }
    }

    /** Prints a report at once, so that it is kept if a later suite is interrupted. */
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
