package org.fedcomuon.bench;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.cli.Progress;
import org.fedcomuon.cli.Subcommand;
import org.fedcomuon.cli.UsageException;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import picocli.CommandLine.Command;
import picocli.CommandLine.IExitCodeGenerator;
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
public final class BenchCommand implements Subcommand, IExitCodeGenerator {
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

    @Option(
            names = "--check",
            description =
                    "Exit with 1, and a line for each, if rows miss their aims by more than their noise; also with"
                            + " --table.")
    private boolean check;

    private final List<BenchReport> reports = new ArrayList<>();
    private AimCheck checked = new AimCheck();
    private int exitCode;

    /** Returns 1 when {@code --check} has found an aim that is not met. */
    @Override
    public int getExitCode() {
        return exitCode;
    }

    @Override
    public void run() {
        checked = new AimCheck(); // a command may be executed again
        exitCode = 0;
        bench();
        if (check) {
            List<String> failures = checked.failures();
            PrintWriter err = spec.commandLine().getErr();
            Stream.concat(checked.missing().stream(), failures.stream())
                    .forEach(line -> err.println("fedcomuon: " + line));
            err.flush();
            exitCode = failures.isEmpty() ? 0 : 1;
        }
    }

    private void bench() {
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
        boolean simulated = deviceName.startsWith("cudasim");
        boolean tiny = small || simulated;
        if (check && table.isEmpty() && (suite == Suite.gpu_model || large || tiny)) {
            throw new UsageException("--check: bench %s has no aims"
                    .formatted(large ? "cluster --large" : tiny ? "at small sizes" : suite.toString()));
        }
        PrintWriter out = spec.commandLine().getOut();
        if (!table.isEmpty() && suite == Suite.kernels) {
            List<List<KernelProfile>> runs = KernelsSuite.read(table);
            runs.getLast().forEach(profile -> checked.add(profile.row(), profile.aims()));
            String text = KernelsSuite.table(runs);
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
            shown.forEach(run -> run.reports().forEach(checked::add));
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
            KernelsSuite.run(out, spec.commandLine().getErr(), json)
                    .forEach(profile -> checked.add(profile.row(), profile.aims()));
            return;
        }
        Progress progress = Progress.ofTurns(spec.commandLine().getErr());
        if (suite == Suite.cluster && large) {
            ClusterBench.large().forEach(out::println);
            out.flush();
            return;
        }
        if (suite == Suite.cluster) {
            report(
                    ClusterBench.run(
                            clients.isEmpty() ? ClusterBench.CLIENTS : clients,
                            megabytes.isEmpty() ? ClusterBench.MEGABYTES : megabytes,
                            ClusterBench.SAMPLES,
                            progress::onTurn),
                    ClusterBench.AIMS);
            return;
        }
        try (Device device = Devices.open(deviceName)) {
            if (simulated) {
                out.printf("%s is simulated: small sizes, and times that say nothing about a GPU.%n%n", deviceName);
            }
            if (suite == Suite.compose || suite == Suite.all) {
                report(
                        ComposeBench.run(
                                device,
                                tiny ? ComposeBench.SMALL : List.of(1_000_000L, elements),
                                tiny ? 1 : ComposeBench.ROUNDS,
                                progress::onTurn),
                        ComposeBench.AIMS);
            }
            if (suite == Suite.orthogonalize || suite == Suite.all) {
                report(
                        OrthogonalizeBench.run(
                                device,
                                tiny ? OrthogonalizeSizes.small() : OrthogonalizeSizes.full(),
                                tiny ? 1 : OrthogonalizeBench.ROUNDS,
                                progress::onTurn),
                        OrthogonalizeBench.AIMS);
            }
            if (suite == Suite.exact_vs_ns || suite == Suite.all) {
                report(
                        ExactVsNsBench.run(
                                device,
                                tiny ? 1 : ExactVsNsBench.ROUNDS,
                                tiny ? ExactVsNsBench.smallShapes() : ExactVsNsBench.shapes(),
                                progress::onTurn),
                        ExactVsNsBench.AIMS);
            }
            if (suite == Suite.scale || (suite == Suite.all && onCpu && !tiny)) {
                report(
                        ScaleBench.run(device, ScaleBench.CLIENT_STEPS, ScaleBench.ROUNDS, progress::onTurn),
                        ScaleBench.AIMS);
                if (onCpu) {
                    report(CohortBench.run(CohortBench.ROUNDS, progress::onTurn), CohortBench.AIMS);
                }
            }
        }
        if (suite == Suite.ffi || (suite == Suite.all && onCpu && !tiny)) {
            report(FfiBench.run(FfiBench.ROUNDS, progress::onTurn), FfiBench.AIMS);
        }
        if (suite == Suite.round || suite == Suite.all) { // last, because it takes longer than all others together
            try (Device device = Devices.open(deviceName)) {
                report(
                        RoundBench.run(
                                device,
                                tiny ? 1 : RoundBench.ROUNDS,
                                tiny,
                                task.map(List::of).orElse(RoundBench.TASKS),
                                progress::onTurn),
                        RoundBench.AIMS);
            }
        }
    }

    /** Prints a report at once, so that it is kept if a later suite is interrupted. */
    private void report(BenchReport report, Aims aims) {
        ReportText.print(spec.commandLine().getOut(), report);
        checked.add(report, aims);
        reports.add(report);
        json.ifPresent(file -> BenchFile.write(file, reports));
    }
}
