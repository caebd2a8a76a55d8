package org.fedcomuon.experiment;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.fedcomuon.file.MalformedFileException;

/**
 * What is wrong with a configuration and with the files that it names. Parts that do not depend on each other are all
 * tried before the configuration is refused, so that nobody has to mend one mistake to see the next.
 */
final class Mistakes {
    private final Configuration configuration;
    private final List<String> lines = new ArrayList<>();

    /** Work that may be impossible because of what the user asks for. */
    @FunctionalInterface
    interface Work<T> {
        T result() throws IOException;
    }

    Mistakes(Configuration configuration) {
        this.configuration = configuration;
    }

    void addAll(List<String> more) {
        lines.addAll(more);
    }

    /**
     * Returns the result, or notes why there is none.
     *
     * @param setting the setting that it depends on; messages that name no file begin with it
     */
    <T> Optional<T> attempt(String setting, Work<T> work) {
        try {
            return Optional.of(work.result());
        } catch (ConfigurationException e) {
            lines.addAll(e.lines());
        } catch (IllegalArgumentException e) {
            String text = String.valueOf(e.getMessage());
            String named = "%s = %s".formatted(setting, configuration.text(setting));
            lines.add(text.startsWith(setting + " = ") ? text : "%s: %s".formatted(named, text));
        } catch (IOException e) {
            lines.add(e.getMessage() == null ? e.toString() : e.getMessage());
            Arrays.stream(e.getSuppressed())
                    .filter(MalformedFileException.class::isInstance)
                    .forEach(another -> lines.add(String.valueOf(another.getMessage())));
        }
        return Optional.empty();
    }

    /** Refuses the configuration if anything is wrong with it. */
    void refuse() {
        if (!lines.isEmpty()) {
            throw ConfigurationException.of(configuration.text("preset"), lines);
        }
    }
}
