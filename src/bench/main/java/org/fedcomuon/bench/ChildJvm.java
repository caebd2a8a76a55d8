package org.fedcomuon.bench;

import java.io.File;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A child JVM with the classes and the settings of this one, for measurements in other processes. */
final class ChildJvm {
    private ChildJvm() {}

    /**
     * Returns the command that starts it. Everything is on its class path, because neither JMH nor mpirun supports
     * modules. The class path is the first argument, because Open MPI's mpirun takes the first argument that contains
     * "cp" for it and extends it.
     */
    static List<String> command(List<String> options, String main, List<String> arguments) {
        String path = Stream.of("jdk.module.path", "surefire.real.class.path", "java.class.path")
                .map(property -> System.getProperty(property, ""))
                .filter(part -> !part.isEmpty())
                .collect(Collectors.joining(File.pathSeparator));
        var command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                path,
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow")); // JMH, JavaCPP
        System.getProperties().stringPropertyNames().stream()
                .filter(name -> name.startsWith("fedcomuon."))
                .sorted()
                .forEach(name -> command.add("-D%s=%s".formatted(name, System.getProperty(name))));
        command.addAll(options);
        command.add(main);
        command.addAll(arguments);
        return command;
    }
}
