package org.fedcomuon.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.experiment.Compare;
import org.fedcomuon.experiment.CompareReport;
import org.fedcomuon.experiment.Reproduction;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.report.ComparePage;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code fedcomuon compare}: compares exact orthogonalization with Newton-Schulz, as JSON and as a page. */
@Command(
        name = "compare",
        description =
                "Compare exact SVD with Newton-Schulz: time, orthogonality, alignment; compare.json and compare.html.")
final class CompareCommand implements Callable<Integer> {
    private static final Pattern SHAPE = Pattern.compile("(\\d{1,6})x(\\d{1,6})");

    @Spec
    private CommandSpec spec;

    @Option(
            names = "--shapes",
            split = ",",
            paramLabel = "RxC",
            defaultValue = "64x64,128x128,120x256,256x256,256x1024,512x512,768x768,768x1024",
            description = "Shapes, such as 128x128,768x1024; ${DEFAULT-VALUE} by default.")
    private List<String> shapes = List.of();

    @Option(
            names = "--condition",
            split = ",",
            paramLabel = "C",
            defaultValue = "1e1,1e2,1e4",
            description = "Condition numbers; ${DEFAULT-VALUE} by default.")
    private List<Double> conditions = List.of();

    @Option(names = "--device", defaultValue = "cpu:0", description = "The device to compute on; cpu:0 by default.")
    private String deviceName = "cpu:0";

    @Option(
            names = "--out",
            paramLabel = "DIR",
            defaultValue = "runs/compare",
            description = "The directory for the two files; ${DEFAULT-VALUE} by default.")
    private Path out = Path.of("runs/compare");

    @Option(
            names = "--bands",
            description = {
                "Only print the singular values that the steps of each coefficient set leave in fp32, tf32 and bf16,",
                "from matrices whose own are evenly spaced on a logarithmic scale from 1 / C to 1."
            })
    private boolean bands;

    @Option(
            names = "--train",
            description = {
                "Also train mnist-robust with each, by FedCoMuon and FedCoMuon-VR with two seeds:",
                "orthogonalizers.html in the same directory. Runs that exist already are not repeated."
            })
    private boolean train;

    @Option(names = "--iterations", paramLabel = "T", description = "Local steps of --train; the preset's by default.")
    private Optional<Integer> iterations = Optional.empty();

    @Option(
            names = "--seeds",
            paramLabel = "N",
            defaultValue = "2",
            description = "The number of seeds of --train; 2 by default.")
    private int seeds = 2;

    @Override
    public Integer call() throws IOException, InterruptedException {
        List<Compare.Shape> parsed = shapes.stream().map(CompareCommand::shape).toList();
        for (double condition : conditions) {
            if (!(condition >= 1 && condition <= 1e12)) {
                throw new UsageException("--condition %s: not in the range 1 to 1e12".formatted(condition));
            }
        }
        if (seeds < 1 || iterations.orElse(1) < 1) {
            throw new UsageException("--seeds and --iterations: at least 1 is needed");
        }
        PrintWriter print = spec.commandLine().getOut();
        if (bands) {
            printBands(parsed, print);
            return 0;
        }
        Training.makeDirectory(out);
        CompareReport report;
        try (Device device = Devices.open(deviceName)) {
            report = Compare.run(device, parsed, conditions, what -> {
                print.println(what);
                print.flush();
            });
        }
        WholeFile.write("--out", out.resolve("compare.json"), Json.pretty(describe(report)));
        WholeFile.write("--out", out.resolve("compare.html"), ComparePage.html(report));
        print.printf("%s%n%s%n", out.resolve("compare.json"), out.resolve("compare.html"));
        print.flush();
        if (train) {
            train(print);
        }
        return 0;
    }

    private void printBands(List<Compare.Shape> parsed, PrintWriter print) {
        try (Device device = Devices.open(deviceName)) {
            for (Compare.Shape shape : parsed) {
                for (double condition : conditions) {
                    Compare.bands(device, shape, condition).forEach(print::println);
                    print.println();
                    print.flush();
                }
            }
        } catch (DeviceException.Unsupported e) {
            throw new UsageException("--bands: " + e.getMessage(), e);
        }
    }

    private void train(PrintWriter print) throws IOException, InterruptedException {
        Map<String, String> changes = iterations
                .map(steps -> Map.of("iterations", Integer.toString(steps)))
                .orElse(Map.of());
        var options = new Training.Options(
                List.of(deviceName),
                Optional.empty(),
                Runtime.getRuntime().availableProcessors(),
                Optional.empty(),
                OptionalLong.empty(),
                Optional.empty(),
                false,
                new Version().getVersion()[0]);
        new ReproduceTraining(Reproduction.ORTHOGONALIZERS.changed(changes), print).run(out, seeds, options);
    }

    private static Compare.Shape shape(String text) {
        Matcher matcher = SHAPE.matcher(text);
        if (!matcher.matches()) {
            throw new UsageException("--shapes '%s' is not of the form ROWSxCOLUMNS, such as 128x256".formatted(text));
        }
        try {
            return new Compare.Shape(Integer.parseInt(matcher.group(1)), Integer.parseInt(matcher.group(2)));
        } catch (IllegalArgumentException e) {
            throw new UsageException("--shapes '%s': %s is not possible".formatted(text, e.getMessage()), e);
        }
    }

    private static Map<String, Object> describe(CompareReport report) {
        var entries = new ArrayList<Map<String, Object>>();
        for (CompareReport.Entry entry : report.entries()) {
            var map = new LinkedHashMap<String, Object>();
            map.put("rows", entry.rows());
            map.put("cols", entry.cols());
            map.put("condition", entry.condition());
            map.put("method", entry.method());
            map.put("coefficients", entry.coefficients());
            map.put("path", entry.path());
            map.put("seconds", entry.seconds());
            map.put("orthogonality_error", entry.orthogonalityError());
            map.put("alignment", entry.alignment());
            map.put("smallest_singular_value", entry.smallestSingularValue());
            map.put("largest_singular_value", entry.largestSingularValue());
            entries.add(map);
        }
        var all = new LinkedHashMap<String, Object>();
        all.put("device", report.device());
        all.put("library", report.library());
        all.put("entries", entries);
        return all;
    }
}
