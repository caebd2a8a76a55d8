package org.fedcomuon.data;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import org.fedcomuon.file.MalformedFileException;

/**
 * CIFAR-10, 32 x 32 photographs in 10 classes, read from files in a directory; {@link #download} fetches them. The data
 * set is not packaged with these classes.
 *
 * <p>Thread-safe.
 */
public final class Cifar10 {
    /** The SHA-256 of the whole set in the published binary layout. */
    static final String PUBLISHED_SHA256 = "013ba16d14ecc4829da62bf2af648ca30f600491ecb3e7f329c827db0dd17522";

    private Cifar10() {}

    /**
     * Reads CIFAR-10, or another set in its format, as {@link #files} finds it. Pixels of both sets are normalized by
     * the statistics of the training images, see {@link Normalization#of}.
     *
     * @throws MalformedFileException when a file is damaged or is not of the kind that its name indicates
     * @throws IOException when a file is missing or cannot be read; every message is one line that names the file
     */
    public static LabelledDataset load(Path directory) throws IOException {
        Cifar10Source source = Cifar10Source.find(directory);
        int[] counts = source.counts();
        var digest = new ContentDigest();
        var train = new Collector(counts[0]);
        var test = new Collector(counts[1]);
        source.read((batch, record) -> {
            digest.update(record, record.length);
            (batch < Cifar10Source.TRAIN_BATCHES ? train : test).add(record);
        });
        ImageSet images = train.images();
        Normalization normalization = Normalization.of(images);
        String sha256 = digest.hex();
        return new LabelledDataset(
                images.normalized(normalization),
                test.images().normalized(normalization),
                "%s: %d training and %d test images"
                        .formatted(
                                sha256.equals(PUBLISHED_SHA256)
                                        ? "CIFAR-10, the whole set"
                                        : "images in CIFAR-10's format, but not CIFAR-10",
                                counts[0],
                                counts[1]),
                sha256);
    }

    /** Returns the default directory of the files, in the user's cache. */
    public static Path defaultDirectory() {
        return DataCache.directory("cifar10");
    }

    /**
     * Puts the six binary files into {@code directory}, where {@link #load} finds them. Each file appears only when it
     * is complete. Meanwhile the directory needs space for twice the package, and for the result.
     *
     * @param progress receives messages about the progress
     * @return false if the files were there already
     * @throws FetchException when the files cannot be fetched, or other files have their names
     * @throws IOException when {@code directory} cannot be written to
     */
    public static boolean download(Path directory, Consumer<String> progress) throws IOException, InterruptedException {
        return new Cifar10Download().get(directory, progress);
    }

    /**
     * Returns the files in a directory, or in {@code cifar-10-batches-bin} or {@code package} in it: either
     * {@code data_batch_1.bin} to {@code data_batch_5.bin} and {@code test_batch.bin}, of records of a label and 3072
     * pixels; or sheets as the npm package has them, {@code .png} instead of {@code .bin} with one image per row, and
     * {@code train_lables.json} and {@code test_lables.json}.
     *
     * @throws NoSuchFileException when a file is missing
     */
    public static List<Path> files(Path directory) throws NoSuchFileException {
        return Cifar10Source.find(directory).files();
    }

    /** Collects images, one after the other, and their labels. */
    private static final class Collector {
        private final byte[] pixels;
        private final byte[] labels;
        private int count;

        Collector(int most) {
            pixels = new byte[Math.multiplyExact(most, Cifar10Source.IMAGE)];
            labels = new byte[most];
        }

        /** Adds an image. The arrays are large enough, because the source has counted the images. */
        void add(byte[] record) {
            labels[count] = record[0];
            System.arraycopy(record, 1, pixels, count * Cifar10Source.IMAGE, Cifar10Source.IMAGE);
            count++;
        }

        ImageSet images() {
            return new ImageSet(
                    Cifar10Source.SIDE,
                    Cifar10Source.SIDE,
                    Cifar10Source.CHANNELS,
                    Cifar10Source.CLASSES,
                    pixels,
                    labels);
        }
    }
}
