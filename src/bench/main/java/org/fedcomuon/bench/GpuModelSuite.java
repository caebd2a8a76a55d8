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
                Integer.parseInt(c.text("schulzSteps")));
    }
}
