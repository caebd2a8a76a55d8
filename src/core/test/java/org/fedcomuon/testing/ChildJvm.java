package org.fedcomuon.testing;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A JVM of its own with the classes of this one, for tests that kill it or give it little. */
public final class ChildJvm {
    private ChildJvm() {}

    /** What starts it; with everything on the class path, as most services have it. */
    public static List<String> command(List<String> options, Class<?> main, List<String> arguments) {
        return command(options, main.getName(), arguments);
    }

    /** The same for a class of a module above this one. */
    public static List<String> command(List<String> options, String main, List<String> arguments) {
        String path = Stream.of(
                        Path.of("target", "test-classes").toAbsolutePath().toString(),
                        System.getProperty("jdk.module.path", ""),
                        System.getProperty("surefire.real.class.path", ""),
                        System.getProperty("java.class.path"))
                .filter(each -> !each.isEmpty())
                .collect(Collectors.joining(":"));
        var command = new ArrayList<String>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        // First: Open MPI's mpirun takes the first argument in which it finds "cp" for the class path, and adds to it.
        command.addAll(List.of("-cp", path));
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow"));
        command.add("-XX:CompileThresholdScaling=4"); // as the launcher has it, for the same reason
        for (String property : List.of("fedcomuon.root", "fedcomuon.native.path")) {
            command.add("-D%s=%s".formatted(property, System.getProperty(property, "")));
        }
        command.addAll(options);
        command.add(main);
        command.addAll(arguments);
        return command;
    }
}
