package org.fedcomuon.data;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import org.fedcomuon.format.MalformedFileException;

/**
 * CIFAR-10, 32 x 32 photographs in 10 classes, from files in a directory; {@link Cifar10Download} gets them. Nothing is
 * packaged with these classes.
 *
 * <p>Thread-safe.
 */
public final class Cifar10 {
    /** Of the content of the whole set in the binary layout, as published. */
    static final String PUBLISHED_SHA256 = "013ba16d14ecc4829da62bf2af648ca30f600491ecb3e7f329c827db0dd17522";

    private Cifar10() {}

    /**
     * Reads CIFAR-10, or another set in its format, as {@link #files} finds it. Pixels of both sets are normalized by
     * what the training images give, see {@link Normalization#of}.
     *
     * @throws MalformedFileException when a file is damaged, or is not what its name says
     * @throws IOException when one is missing or cannot be read; all messages are a line that names the file
     */
    public static ImageDataset load(Path directory) throws IOException {
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
        return new ImageDataset(
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

    /**
     * The files in a directory, or in {@code cifar-10-batches-bin} or {@code package} in it: either
     * {@code data_batch_1.bin} to {@code data_batch_5.bin} and {@code test_batch.bin}, of records of a label and 3072
     * pixels; or sheets as the npm package has them, {@code .png} instead of {@code .bin} and an image a row, with
     * {@code train_lables.json} and {@code test_lables.json}.
     *
     * @throws NoSuchFileException when one is missing
     */
    public static List<Path> files(Path directory) throws NoSuchFileException {
        return Cifar10Source.find(directory).files();
    }

    /** Images one after the other, and their labels. */
    private static final class Collector {
        private final byte[] pixels;
        private final byte[] labels;
        private int count;

        Collector(int most) {
            pixels = new byte[Math.multiplyExact(most, Cifar10Source.IMAGE)];
            labels = new byte[most];
        }

        /** The source has counted them. */
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
