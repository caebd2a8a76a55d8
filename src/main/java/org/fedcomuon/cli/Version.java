package org.fedcomuon.cli;

import java.io.IOException;
import java.util.Properties;
import picocli.CommandLine.IVersionProvider;

/** What {@code --version} prints: ours, and the Java that runs it, since half of all bug reports need both. */
final class Version implements IVersionProvider {
    @Override
    public String[] getVersion() throws IOException {
        var properties = new Properties();
        try (var in = Version.class.getResourceAsStream("version.properties")) {
            properties.load(in);
        }
        return new String[] {"fedcomuon %s (Java %s)".formatted(properties.get("version"), Runtime.version())};
    }
}
