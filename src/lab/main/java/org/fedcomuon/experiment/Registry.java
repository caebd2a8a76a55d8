package org.fedcomuon.experiment;

import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * All choices of one kind, by name. The entry of a choice is the only place that knows it: configurations, presets,
 * messages and help texts read the registry. Immutable.
 */
final class Registry<C extends Choice> {
    private final String kind;
    private final Map<String, C> entries;

    /**
     * Creates a registry.
     *
     * @param kind the setting that chooses one of the entries, such as {@code model}
     */
    @SafeVarargs
    Registry(String kind, C... entries) {
        this.kind = kind;
        var byName = new LinkedHashMap<String, C>();
        for (C entry : entries) {
            if (byName.put(entry.name(), entry) != null) {
                throw new IllegalArgumentException("two entries for %s = %s".formatted(kind, entry.name()));
            }
        }
        this.entries = Collections.unmodifiableMap(byName);
    }

    String kind() {
        return kind;
    }

    Set<String> names() {
        return entries.keySet();
    }

    Collection<C> entries() {
        return entries.values();
    }

    /**
     * Returns the entry of this name.
     *
     * @throws ConfigurationException when there is none; the message lists the entries
     */
    C get(String name) {
        C entry = entries.get(name);
        if (entry == null) {
            throw new ConfigurationException(Nearest.unknown(kind, name, names()));
        }
        return entry;
    }

    /** Returns the setting that chooses an entry. */
    Setting setting() {
        return new Setting(
                kind, "one of " + String.join(", ", names()), name -> get(name).name());
    }
}
