package org.fedcomuon.bench;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
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

    /**
     * Runs a command and returns the rest of the line of its output that begins with {@code prefix}.
     *
     * @param what the process is, for messages
     */
    static String answer(List<String> command, String prefix, String what) {
        try {
            Process process =
                    new ProcessBuilder(command).redirectErrorStream(true).start();
            String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            int status = process.waitFor();
            return out.lines()
                    .filter(line -> status == 0 && line.startsWith(prefix))
                    .map(line -> line.substring(prefix.length()))
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException(
                            "%s ended with exit code %d: %s".formatted(what, status, out.strip())));
        } catch (IOException e) {
            throw new IllegalStateException("%s cannot be started: %s".formatted(what, e.getMessage()), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while measuring", e);
        }
    }
}
