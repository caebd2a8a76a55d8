package org.fedcomuon.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.stream.Stream;
import picocli.CommandLine;

/** What a command that ran in this process has printed, and its exit code. */
record CommandRun(int exitCode, String out, String err) {
    static CommandRun of(Object... arguments) {
        return of(Main.commandLine(), arguments);
    }

    static CommandRun of(CommandLine commandLine, Object... arguments) {
        var out = new StringWriter();
        var err = new StringWriter();
        commandLine.setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        int exitCode =
                Main.run(commandLine, Stream.of(arguments).map(Object::toString).toArray(String[]::new));
        return new CommandRun(exitCode, out.toString(), err.toString());
    }

    /** Bad input: exit code 2, and one line that has these words. */
    static void assertRefused(CommandRun run, String... words) {
        assertThat(run.exitCode).as(run.err).isEqualTo(2);
        assertThat(run.err.lines())
                .singleElement()
                .asString()
                .startsWith("fedcomuon: ")
                .contains(words);
    }
}
