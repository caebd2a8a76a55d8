package org.fedcomuon.cli;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.Preset;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** The preset of a run and its settings that are changed, as {@code train} and {@code sweep} take them. */
final class RunSettings {
    /** The names of the presets, for the help. */
    private static final class Presets implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return Preset.NAMES.iterator();
        }
    }

    /** The names of the methods, for the help; read when it is shown, because every command creates this class. */
    private static final class Methods implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return Configuration.methodNames().iterator();
        }
    }

    @Parameters(
            arity = "0..1",
            paramLabel = "PRESET",
            completionCandidates = Presets.class,
            description = "${COMPLETION-CANDIDATES}, or a .yaml file of your own.")
    private Optional<String> preset = Optional.empty();

    @Option(
            names = "--method",
            paramLabel = "M",
            completionCandidates = Methods.class,
            description = "One of ${COMPLETION-CANDIDATES}.")
    private Optional<String> method = Optional.empty();

    @Option(names = "--seed", paramLabel = "S", description = "The seed of W0, of the split and of all samples.")
    private Optional<String> seed = Optional.empty();

    @Option(names = "--iterations", paramLabel = "T", description = "The number of local steps.")
    private Optional<String> iterations = Optional.empty();

    @Option(names = "--tau", paramLabel = "N", description = "The number of local steps per round.")
    private Optional<String> tau = Optional.empty();

    @Option(names = "--clients", paramLabel = "K", description = "The number of clients.")
    private Optional<String> clients = Optional.empty();

    @Option(
            names = "--participation",
            paramLabel = "P",
            description = "The share of clients that take part in a round.")
    private Optional<String> participation = Optional.empty();

    @Option(
            names = "--cohort",
            paramLabel = "N",
            description = "The number of clients that take part in a round, instead of their share.")
    private Optional<String> cohort = Optional.empty();

    @Option(
            names = "--orthogonalizer",
            paramLabel = "O",
            description = "exact, exact-svd, newton-schulz, gram or auto.")
    private Optional<String> orthogonalizer = Optional.empty();

    @Option(names = "--checkpoint-every", paramLabel = "N", description = "Rounds between checkpoints.")
    private Optional<String> checkpointEvery = Optional.empty();

    @Option(
            names = "--init",
            paramLabel = "FILE",
            description = "The initial weights, a .safetensors file; --set initNames=BLOCK=TENSOR,... maps names.")
    private Optional<String> init = Optional.empty();

    @Option(names = "--set", paramLabel = "NAME=VALUE", description = "Any other setting of the preset.")
    private Map<String, String> settings = new LinkedHashMap<>();

    /** Returns the preset. */
    Preset preset() {
        return Preset.load(preset.orElseThrow(() ->
                new UsageException("no PRESET given; the presets are %s".formatted(String.join(", ", Preset.NAMES)))));
    }

    /** Returns the settings that are changed. */
    Map<String, String> changes() {
        var changes = new LinkedHashMap<>(settings);
        Map<String, Optional<String>> given = new LinkedHashMap<>();
        given.put("method", method);
        given.put("seed", seed);
        given.put("iterations", iterations);
        given.put("tau", tau);
        given.put("clients", clients);
        given.put("participation", participation);
        given.put("cohort", cohort);
        given.put("orthogonalizer", orthogonalizer);
        given.put("checkpointEvery", checkpointEvery);
        given.put("init", init);
        given.forEach((name, value) -> value.ifPresent(text -> {
            if (changes.put(name, text) != null) {
                throw new UsageException("%s is given twice, by its own option and by --set".formatted(name));
            }
        }));
        return changes;
    }
}
