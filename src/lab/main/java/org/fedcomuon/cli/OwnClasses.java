package org.fedcomuon.cli;

import java.io.File;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Optional;
import org.fedcomuon.experiment.LocalTraining;
import org.fedcomuon.experiment.MpiTraining;
import org.fedcomuon.experiment.TrainingEngine;
import org.jspecify.annotations.Nullable;

/**
 * The classes of {@code --class-path}: while it is open, the calling thread and the threads that it starts find them.
 * Not thread-safe.
 */
final class OwnClasses implements AutoCloseable {
    private final ClassLoader before = Thread.currentThread().getContextClassLoader();
    private final @Nullable URLClassLoader loader;

    private OwnClasses(@Nullable URLClassLoader loader) {
        this.loader = loader;
        if (loader != null) {
            Thread.currentThread().setContextClassLoader(loader);
        }
    }

    /**
     * Opens a class path.
     *
     * @throws UsageException when an entry does not exist
     */
    static OwnClasses open(Optional<String> classPath) {
        if (classPath.isEmpty()) {
            return new OwnClasses(null);
        }
        var urls = new ArrayList<URL>();
        for (String entry : classPath.get().split(File.pathSeparator, -1)) {
            try {
                Path path = Path.of(entry);
                if (entry.isEmpty() || !Files.exists(path)) {
                    throw new UsageException("--class-path %s: '%s' does not exist; jars and directories are possible"
                            .formatted(classPath.get(), entry));
                }
                urls.add(path.toUri().toURL());
            } catch (InvalidPathException | MalformedURLException e) {
                throw new UsageException("--class-path %s: '%s' is no path".formatted(classPath.get(), entry), e);
            }
        }
        return new OwnClasses(new URLClassLoader(urls.toArray(URL[]::new), OwnClasses.class.getClassLoader()));
    }

    /** Refuses an engine whose processes would not find the classes. */
    void require(TrainingEngine engine, String cluster) {
        if (loader != null && !(engine instanceof LocalTraining || engine instanceof MpiTraining)) {
            throw new UsageException(
                    "--class-path with --cluster %s: its processes would not find the classes; put them on their class paths instead"
                            .formatted(cluster));
        }
    }

    @Override
    public void close() throws IOException {
        if (loader != null) {
            Thread.currentThread().setContextClassLoader(before);
            loader.close();
        }
    }
}
