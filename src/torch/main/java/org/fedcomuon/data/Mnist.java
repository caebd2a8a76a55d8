package org.fedcomuon.data;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.fedcomuon.file.MalformedFileException;

/**
 * MNIST, handwritten digits of 28 x 28 grey pixels: the pool that is packaged with these classes, or four files in a
 * directory. {@link #download} fetches the whole set.
 *
 * <p>Thread-safe.
 */
public final class Mnist {
    /** The number of packaged training images; all test images are packaged. */
    public static final int POOL = 12_000;

    /** How the pool was chosen from all training images: {@code Partition.imbalanced(60_000, List.of(POOL), SEED)}. */
    public static final long POOL_SEED = 2026;

    /** The SHA-256 of the content of the whole set, as published. */
    static final String PUBLISHED_SHA256 = "b2d8f5bf39174ee5ffeefa97e42d673c35432b411bb5d1f74fbbeddae7f1690a";
    /** The SHA-256 of the packaged content. */
    static final String POOL_SHA256 = "576deb008c7d910516b38cf027b14ea1cfc6a0c5e445d3b28207696a1424652b";

    static final int CLASSES = 10;
    static final int SIDE = 28;

    /** The standard names of the files, in the order in which their content is hashed. */
    static final List<String> FILES = List.of(
            "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");

    /** A limit above the sizes of MNIST and of the larger data sets in its format. */
    private static final int MOST_IMAGES = 1_000_000;

    private Mnist() {}

    /** A way to read one of the four files. */
    @FunctionalInterface
    private interface Opener {
        IdxArray read(int file, int rank, Idx.Rule rule) throws IOException;
    }

    /** Returns the packaged pool of {@value #POOL} training images, and all 10000 test images. */
    public static LabelledDataset bundled() {
        List<Path> names = FILES.stream().map(file -> Path.of(file + ".gz")).toList();
        try {
            return read(names, (file, rank, rule) -> {
                Path name = names.get(file);
                try (InputStream in = Mnist.class.getResourceAsStream("mnist/" + name)) {
                    if (in == null) {
                        throw new NoSuchFileException(name.toString(), null, "not packaged with these classes");
                    }
                    return Idx.read(name, in.readAllBytes(), rank, rule);
                }
            });
        } catch (IOException e) {
            throw new UncheckedIOException("the packaged MNIST cannot be read: " + e.getMessage(), e);
        }
    }

    /**
     * Reads the four files of a directory: MNIST itself, or another set in its format. See {@link #files} for their
     * names.
     *
     * @throws MalformedFileException when a file is damaged or is not of the kind that its name indicates
     * @throws IOException when a file is missing or cannot be read; every message is one line that names the file
     */
    public static LabelledDataset load(Path directory) throws IOException {
        List<Path> files = files(directory);
        return read(files, (file, rank, rule) -> Idx.read(files.get(file), rank, rule));
    }

    /** Returns the default directory of the files, in the user's cache. */
    public static Path defaultDirectory() {
        return DataCache.directory("mnist");
    }

    /**
     * Puts the four files into {@code directory}, where {@link #load} finds them. Each file appears only when it is
     * complete.
     *
     * @param progress receives messages about the progress
     * @return false if the files were there already
     * @throws FetchException when the files cannot be fetched, or other files have their names
     * @throws IOException when {@code directory} cannot be written to
     */
    public static boolean download(Path directory, Consumer<String> progress) throws IOException, InterruptedException {
        return new MnistDownload().get(directory, progress);
    }

    /**
     * Returns the four files in a directory: images and labels for training, images and labels for testing. Their names
     * are {@code train-images-idx3-ubyte}, {@code train-labels-idx1-ubyte}, {@code t10k-images-idx3-ubyte} and
     * {@code t10k-labels-idx1-ubyte}, optionally with a dot before {@code idx}, and optionally with {@code .gz} at the
     * end.
     *
     * @throws NoSuchFileException when a file is missing
     */
    public static List<Path> files(Path directory) throws NoSuchFileException {
        var files = new ArrayList<Path>();
        for (String standard : FILES) {
            files.add(candidates(directory, standard).stream()
                    .filter(Files::isRegularFile)
                    .findFirst()
                    .orElseThrow(() -> new NoSuchFileException(
                            MalformedFileException.oneLine("" + directory),
                            null,
                            "%s and %s.gz are missing".formatted(standard, standard))));
        }
        return List.copyOf(files);
    }

    /** Returns the possible names of a file; the first one that exists is used. */
    static List<Path> candidates(Path directory, String standard) {
        String other = standard.replace("-idx", ".idx");
        return Stream.of(standard, standard + ".gz", other, other + ".gz")
                .map(directory::resolve)
                .toList();
    }

    private static LabelledDataset read(List<Path> names, Opener opener) throws IOException {
        var digest = new ContentDigest();
        ImageSet train = read(names, 0, opener, digest);
        ImageSet test = read(names, 2, opener, digest);
        String sha256 = digest.hex();
        return new LabelledDataset(train, test, describe(train, test, sha256), sha256);
    }

    /** Reads images and the labels that follow them. */
    private static ImageSet read(List<Path> names, int at, Opener opener, ContentDigest digest) throws IOException {
        Path labelsFile = names.get(at + 1);
        IdxArray labels = opener.read(at + 1, 1, Mnist::refuseLabels);
        requireDigits(labelsFile, labels.data());
        IdxArray images =
                opener.read(at, 3, shape -> refuseImages(shape, labels.shape().getFirst(), labelsFile));
        digest.update(images);
        digest.update(labels);
        return new ImageSet(SIDE, SIDE, 1, CLASSES, images.data(), labels.data());
    }

    private static Optional<String> refuseLabels(List<Integer> shape) {
        return shape.getFirst() <= MOST_IMAGES
                ? Optional.empty()
                : Optional.of("%d labels; at most %d are possible".formatted(shape.getFirst(), MOST_IMAGES));
    }

    private static Optional<String> refuseImages(List<Integer> shape, int labels, Path labelsFile) {
        if (shape.get(1) != SIDE || shape.get(2) != SIDE) {
            return Optional.of("images of %d x %d pixels; MNIST's are of %d x %d"
                    .formatted(shape.get(1), shape.get(2), SIDE, SIDE));
        }
        return shape.getFirst() == labels
                ? Optional.empty()
                : Optional.of("%d images, but %d labels in %s; every image has one"
                        .formatted(shape.getFirst(), labels, labelsFile.getFileName()));
    }

    private static void requireDigits(Path file, MemorySegment labels) throws MalformedFileException {
        for (long i = 0; i < labels.byteSize(); i++) {
            int label = Byte.toUnsignedInt(labels.get(ValueLayout.JAVA_BYTE, i));
            if (label >= CLASSES) {
                throw new MalformedFileException(
                        file, "label %d of image %d is not a digit from 0 to %d".formatted(label, i, CLASSES - 1));
            }
        }
    }

    private static String describe(ImageSet train, ImageSet test, String sha256) {
        String which = switch (sha256) {
            case PUBLISHED_SHA256 -> "MNIST, the whole set";
            case POOL_SHA256 -> "MNIST, the packaged pool";
            default -> "images in MNIST's format, but not MNIST";
        };
        return "%s: %d training and %d test images".formatted(which, train.count(), test.count());
    }
}
