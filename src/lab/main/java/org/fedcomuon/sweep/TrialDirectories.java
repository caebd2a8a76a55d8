package org.fedcomuon.sweep;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.fedcomuon.experiment.ConfigurationException;
import org.fedcomuon.experiment.Training;

/**
 * The directories of trials. A trial is known by its settings, all of them, and not by the name of its directory: what
 * an earlier start has run is found again, also where a sweep has got more settings to vary.
 *
 * <p>Not thread-safe.
 */
final class TrialDirectories {
    private final Path parent;
    private final Map<Map<String, String>, Path> known = new HashMap<>();
    private final Set<String> taken = new HashSet<>();

    /** Looks at what there is. */
    TrialDirectories(Path parent) throws IOException {
        this.parent = parent;
        if (!Files.isDirectory(parent)) {
            return;
        }
        List<Path> there;
        try (Stream<Path> all = Files.list(parent)) {
            there = all.sorted().toList();
        }
        for (Path directory : there) {
            taken.add(String.valueOf(directory.getFileName()));
            try {
                known.putIfAbsent(Training.configurationOf(directory, Map.of()).values(), directory);
            } catch (ConfigurationException e) {
                // Not the directory of a trial, or one whose settings are not possible any more.
            }
        }
    }

    /** Returns the directory of a trial, which may not exist yet. */
    Path of(TrialPlan plan) {
        return known.computeIfAbsent(plan.configuration().values(), _ -> {
            String name = plan.name();
            for (int i = 2; !taken.add(name); i++) {
                name = plan.name() + "-" + i;
            }
            return parent.resolve(name);
        });
    }
}
