package org.fedcomuon.experiment;

import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.Function;

/**
 * All choices of one kind, by name: ours, and those of {@link ChoiceProvider}s that the class loader of the calling
 * thread finds. The entry of a choice is the only place that knows it: configurations, presets, messages and help texts
 * read the registry. Thread-safe.
 */
final class Registry<C extends Choice> {
    private final String kind;
    private final Function<ChoiceProvider, List<C>> provided;
    private final List<C> ours;
    /** What was found before, because every setting of every configuration is looked up here. */
    private final Map<ClassLoader, Map<String, C>> found = Collections.synchronizedMap(new WeakHashMap<>());

    /**
     * Creates a registry.
     *
     * @param kind the setting that chooses one of the entries, such as {@code model}
     * @param provided returns what a provider adds
     */
    @SafeVarargs
    @SuppressWarnings("varargs")
    Registry(String kind, Function<ChoiceProvider, List<C>> provided, C... ours) {
        this.kind = kind;
        this.provided = provided;
        this.ours = List.of(ours);
    }

    private Map<String, C> all() {
        ClassLoader loader = Optional.ofNullable(Thread.currentThread().getContextClassLoader())
                .orElseGet(ClassLoader::getSystemClassLoader);
        return found.computeIfAbsent(loader, this::find);
    }

    private Map<String, C> find(ClassLoader loader) {
        var byName = new LinkedHashMap<String, C>();
        ours.forEach(choice -> add(choice, byName));
        try {
            for (ChoiceProvider provider : ServiceLoader.load(ChoiceProvider.class, loader)) {
                provided.apply(provider).forEach(choice -> add(choice, byName));
            }
        } catch (ServiceConfigurationError e) {
            throw new ConfigurationException("a provider of choices cannot be used: " + e.getMessage(), e);
        }
        return Collections.unmodifiableMap(byName);
    }

    private void add(C choice, Map<String, C> byName) {
        if (byName.putIfAbsent(choice.name(), choice) != null) {
            throw new ConfigurationException(
                    "there are two entries for %s = %s; a name of its own is needed".formatted(kind, choice.name()));
        }
    }

    String kind() {
        return kind;
    }

    Set<String> names() {
        return all().keySet();
    }

    Collection<C> entries() {
        return all().values();
    }

    /**
     * Returns the entry of this name.
     *
     * @throws ConfigurationException when there is none; the message lists the entries
     */
    C get(String name) {
        C entry = all().get(name);
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
