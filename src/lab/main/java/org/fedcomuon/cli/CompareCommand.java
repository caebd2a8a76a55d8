package org.fedcomuon.cli;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.Devices;
import org.fedcomuon.experiment.Compare;
import org.fedcomuon.experiment.CompareReport;
import org.fedcomuon.experiment.Reproduction;
import org.fedcomuon.experiment.RunRecordException;
import org.fedcomuon.experiment.Training;
import org.fedcomuon.report.ComparePage;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code fedcomuon compare}: compares exact orthogonalization with Newton-Schulz, as JSON and as a page. */
@Command(
        name = "compare",
        description =
                "Compare exact factors with Newton-Schulz: time, error, orthogonality; compare.json and compare.html.")
final class CompareCommand implements Callable<Integer> {
    private static final String MNIST = "mnist-robust";
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
            defaultValue = "1e1,1e3,1e5,1e7",
            description = "Condition numbers; ${DEFAULT-VALUE} by default.")
    private List<Double> conditions = List.of();

    @Option(
            names = "--run",
            paramLabel = "DIR",
            description = {
                "Instead of matrices with these shapes: the momentum in the newest checkpoint of a run,",
                "with its singular values and how many directions the exact factor keeps."
            })
    private Optional<Path> run = Optional.empty();

    @Option(
            names = "--client",
            paramLabel = "K",
            description = "With --run: only the momentum of this client, where clients differ; all by default.")
    private Optional<Integer> client = Optional.empty();

    @Option(
            names = "--until",
            split = ",",
            paramLabel = "E",
            defaultValue = "1e-2,1e-3,1e-5",
            description = "Errors whose times are compared; ${DEFAULT-VALUE} by default.")
    private List<Double> wanted = List.of();

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
            arity = "0..1",
            paramLabel = "PRESET",
            fallbackValue = MNIST,
            description = {
                "Also train a preset with each, and with Newton-Schulz in bf16, by FedCoMuon and FedCoMuon-VR with two",
                "seeds: orthogonalizers.html in the same directory says whether training tells them apart. mnist-robust by",
                "default; wikitext2-robust, cifar-maml-cnn or cifar-maml-vit, which take --medium or --quick. Runs that",
                "exist already are not repeated."
            })
    private Optional<String> train = Optional.empty();

    @Mixin
    private FormOptions size = new FormOptions();

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
        for (double error : wanted) {
            if (!(error >= 1e-12 && error <= 0.5)) {
                throw new UsageException("--until %s: not in the range 1e-12 to 0.5".formatted(error));
            }
        }
        checkRun();
        Optional<Reproduction> training = training();
        if (seeds < 1 || iterations.orElse(1) < 1) {
            throw new UsageException("--seeds and --iterations: at least 1 is needed");
        }
        PrintWriter print = spec.commandLine().getOut();
        if (bands) {
            printBands(parsed, print);
            return 0;
        }
        Training.makeDirectory(out);
        CompareReport report = measure(parsed, print);
        WholeFile.write("--out", out.resolve("compare.json"), Json.pretty(CompareJson.of(report)));
        WholeFile.write("--out", out.resolve("compare.html"), ComparePage.html(report));
        print.printf("%s%n%s%n", out.resolve("compare.json"), out.resolve("compare.html"));
        print.flush();
        if (training.isPresent()) {
            train(training.get(), print);
        }
        return 0;
    }

    private Optional<Reproduction> training() {
        if (train.isEmpty() && size.form() != Reproduction.Form.PAPER) {
            throw new UsageException("--quick and --medium are of --train, which is not given");
        }
        return train.map(preset -> Reproduction.ofOrthogonalizers(preset, size.form()));
    }

    private void checkRun() {
        if (run.isEmpty()) {
            if (client.isPresent()) {
                throw new UsageException("--client is of --run, which is not given");
            }
            return;
        }
        for (String other : List.of("--shapes", "--condition", "--bands")) {
            if (spec.commandLine().getParseResult().hasMatchedOption(other)) {
                throw new UsageException("--run takes its matrices from a run: leave out " + other);
            }
        }
    }

    private CompareReport measure(List<Compare.Shape> parsed, PrintWriter print) {
        Consumer<String> progress = what -> {
            print.println(what);
            print.flush();
        };
        try (Device device = Devices.open(deviceName)) {
            return run.isEmpty()
                    ? Compare.ofShapes(device, parsed, conditions, wanted, progress)
                    : Compare.ofRun(
                            device,
                            run.get(),
                            client.map(OptionalInt::of).orElse(OptionalInt.empty()),
                            wanted,
                            progress);
        } catch (RunRecordException e) {
            throw new UsageException("--run: " + e.getMessage(), e);
        }
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

    private void train(Reproduction what, PrintWriter print) throws IOException, InterruptedException {
        var changes = new LinkedHashMap<>(what.changes());
        iterations.ifPresent(steps -> changes.put("iterations", Integer.toString(steps)));
        var options = new Training.Options(
                List.of(deviceName),
                Optional.empty(),
                Runtime.getRuntime().availableProcessors(),
                Optional.empty(),
                OptionalLong.empty(),
                Optional.empty(),
                false,
                new Version().getVersion()[0]);
        new ReproduceTraining(what.changed(changes), print).run(out, seeds, options, 1);
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
}
