package org.fedcomuon.cli;

import java.io.IOException;
import java.util.Properties;
import picocli.CommandLine.IVersionProvider;

/** Provides the output of {@code --version}: the versions of the program and of Java, for bug reports. */
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
