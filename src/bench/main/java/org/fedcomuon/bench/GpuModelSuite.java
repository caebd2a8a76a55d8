package org.fedcomuon.bench;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.cli.Json;
import org.fedcomuon.cli.WholeFile;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.Preset;
import org.fedcomuon.model.Adaptation;

/** {@code fedcomuon bench gpu-model}: runs {@link GpuModel} for the presets. */
final class GpuModelSuite {
    private static final int CLASSES = 10;

    /** The vocabulary of the whole of WikiText-2, on which the paper trains; the model reads no data. */
    private static final int VOCABULARY = 33_278;

    /** Images that an evaluation predicts at once, if their activations are small. */
    private static final int IMAGES_AT_ONCE = 250;

    /** Images in the test set of MNIST. */
    private static final int MNIST_TEST = 10_000;

    /** The blocks of 128 words in the test text of WikiText-2, which has 245 569 words. */
    private static final int TEXT_TEST = 245_569 / 128;

    private GpuModelSuite() {}

    static void run(PrintWriter out, Optional<Path> json) {
        run(Preset.NAMES.stream().filter(GpuModelSuite::isModelled).toList(), out, json);
    }

    /** Runs the model for some presets only. */
    static void run(List<String> presets, PrintWriter out, Optional<Path> json) {
        var experiments = new ArrayList<GpuModel.Experiment>();
        for (String preset : presets) {
            experiments.add(experiment(Configuration.of(Preset.load(preset), Map.of()), preset));
        }
        var model = new GpuModel(List.copyOf(experiments));
        out.print(model.markdown());
        out.flush();
        json.ifPresent(file -> WholeFile.write("--json", file, Json.pretty(List.of(model.json()))));
    }

    /** Experiments with d = 1 on networks of the library; what others cost on a GPU is not modelled. */
    private static boolean isModelled(String preset) {
        String objective = Configuration.of(Preset.load(preset), Map.of()).text("objective");
        return List.of("robust", "meta").contains(objective);
    }

    private static GpuModel.Experiment experiment(Configuration c, String preset) {
        GpuModel.Data data = switch (c.text("data")) {
            case "mnist" -> GpuModel.Data.DIGITS;
            case "wikitext2" -> GpuModel.Data.TEXT;
            default -> GpuModel.Data.PHOTOGRAPHS;
        };
        return new GpuModel.Experiment(
                preset,
                c.network(data == GpuModel.Data.TEXT ? VOCABULARY : CLASSES),
                data,
                c.text("objective").equals("meta")
                        ? Optional.of(new Adaptation(
                                Double.parseDouble(c.text("inner")), Boolean.parseBoolean(c.text("firstOrder"))))
                        : Optional.empty(),
                Integer.parseInt(c.text("batch")),
                Integer.parseInt(c.text("clients")),
                Integer.parseInt(c.text("tau")),
                c.iterations(),
                MuonWork.Iteration.of(
                        c.coefficients().steps().size(),
                        c.text("orthogonalizer").equals("auto")),
                evaluation(c));
    }

    /** Returns what the objectives of the presets evaluate. */
    private static EvaluationWork.Plan evaluation(Configuration c) {
        int clients = c.integer("clients");
        long every = c.integer("evaluateEvery");
        int judged = c.integer("judgedTrain");
        return switch (c.text("data")) {
            // Every client's own images, and the test set.
            case "mnist" ->
                new EvaluationWork.Plan(
                        every,
                        c.integer("largest") + (clients - 1) * c.integer("others") + MNIST_TEST,
                        IMAGES_AT_ONCE,
                        0);
            case "wikitext2" -> new EvaluationWork.Plan(every, clients * judged + TEXT_TEST, c.integer("batch"), 0);
            // Two episodes of each client, of training and of test images, less those that are adapted to.
            default ->
                new EvaluationWork.Plan(
                        every,
                        clients * (judged + c.integer("testPerClient") - c.integer("batch")),
                        IMAGES_AT_ONCE,
                        2 * clients);
        };
    }
}
