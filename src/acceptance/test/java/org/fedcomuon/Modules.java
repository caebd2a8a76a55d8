package org.fedcomuon;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.fedcomuon.testing.Repository;

/** The modules as they were built, from the bottom up. */
final class Modules {
    /** Those that have a module descriptor. Spark's jars cannot be modules, so what uses them is none. */
    static final List<String> NAMED = List.of("core", "torch", "dashboard", "lab", "bench");

    private Modules() {}

    static Path directory(String module) {
        return Repository.root().resolve("src").resolve(module);
    }

    private static Path classes(String module) {
        return directory(module).resolve("target/classes");
    }

    static Path sources(String module) {
        return directory(module).resolve("main/java");
    }

    /** The classes of all of them, without those of tests. */
    static JavaClasses importClasses() {
        return new ClassFileImporter()
                .importPaths(NAMED.stream().map(Modules::classes).toArray(Path[]::new));
    }

    static ModuleDescriptor descriptor(String module) {
        return ModuleFinder.of(classes(module)).findAll().iterator().next().descriptor();
    }

    /** The packages that users see. */
    static Set<String> exported() {
        return NAMED.stream()
                .flatMap(module -> descriptor(module).exports().stream())
                .filter(export -> !export.isQualified())
                .map(ModuleDescriptor.Exports::source)
                .collect(Collectors.toSet());
    }

    /** The source of a class or package by its path below the sources of its module. */
    static Path source(String path) {
        return NAMED.stream()
                .map(module -> sources(module).resolve(path))
                .filter(Files::exists)
                .findFirst()
                .orElseThrow(() -> new AssertionError("no module has " + path));
    }

    /** The tests of the module that a source is of. */
    static Path tests(Path source) {
        return NAMED.stream()
                .filter(module -> source.startsWith(sources(module)))
                .map(module -> directory(module).resolve("test/java"))
                .findFirst()
                .orElseThrow();
    }

    static List<Path> allSources() {
        return NAMED.stream()
                .flatMap(module -> {
                    try (Stream<Path> files = Files.walk(sources(module))) {
                        return files.filter(file -> file.toString().endsWith(".java")).toList().stream();
                    } catch (IOException e) {
                        throw new UncheckedIOException(e);
                    }
                })
                .toList();
    }
}
