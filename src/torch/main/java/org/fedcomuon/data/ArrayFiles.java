package org.fedcomuon.data;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.format.Npy;
import org.fedcomuon.internal.NativeHeap;

/**
 * Examples as arrays of NumPy, for data of your own: {@code x} has the values, {@code y} the labels. Each is an NPY
 * file, or {@code archive.npz#name}, or an archive with only one array.
 *
 * <ul>
 *   <li>{@code x} of shape {@code (count, features)} is rows of features, {@code (count, rows, cols)} is images of one
 *       channel, {@code (count, channels, rows, cols)} is images; with more dimensions the first one counts examples.
 *       The channels of images come first, as libtorch has them: images whose last dimension looks like their channels
 *       are refused.
 *   <li>Values are of any integer or floating-point type and are rounded to float32, unchanged otherwise, with one
 *       exception: unsigned bytes with three or four dimensions are pixels and are divided by 255, as MNIST's are here
 *       and as torchvision's {@code ToTensor} does. Nobody trains on pixels up to 255; features that are counts, in two
 *       dimensions, stay what they are.
 *   <li>Values have to be finite. C and Fortran order are read: pandas hands out the latter.
 *   <li>{@code y} of shape {@code (count,)} or {@code (count, 1)} has whole numbers from 0, of any type: floats too,
 *       because tables of floats often contain labels. There is one class more than the largest label of training and
 *       test examples.
 * </ul>
 *
 * @param x values
 * @param y labels
 */
public record ArrayFiles(Path x, Path y) {
    /** What an array of channels looks like: grey, RGB, RGBA. */
    private static final List<Long> CHANNELS = List.of(1L, 3L, 4L);

    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /**
     * Reads examples for training and for testing.
     *
     * @throws MalformedFileException when a file is damaged or is not what is needed, or files do not fit together
     * @throws IOException when a file is missing or cannot be read; every message is one line that names the file
     */
    public static LabelledDataset load(ArrayFiles train, ArrayFiles test) throws IOException {
        var digest = new ContentDigest();
        Both<int[]> labels = Both.of(() -> train.labels(digest), () -> test.labels(digest));
        int classes = Math.max(classes(labels.train()), classes(labels.test()));
        Both<ExampleSet> sets = Both.of(
                () -> train.examples(labels.train(), classes, digest),
                () -> test.examples(labels.test(), classes, digest));
        ExampleSet trainSet = sets.train();
        ExampleSet testSet = sets.test();
        if (!trainSet.shape().equals(testSet.shape())) {
            throw new MalformedFileException(
                    test.x,
                    "examples of %s values, but those of %s have %s; they have to be equal"
                            .formatted(IdxArray.text(testSet.shape()), train.x, IdxArray.text(trainSet.shape())));
        }
        return Holdout.dataset(trainSet, testSet, "arrays of %s".formatted(train.x.getFileName()), digest.hex());
    }

    /**
     * Reads examples and holds back a share of each class for testing.
     *
     * @param testShare between 0 and 1
     * @param seed equal seeds hold back the same examples
     * @throws MalformedFileException when a file is damaged or is not what is needed, or the two do not fit together
     * @throws IOException when a file is missing or cannot be read; every message is one line that names the file
     * @throws IllegalArgumentException when the share is not possible
     */
    public static LabelledDataset load(ArrayFiles train, double testShare, long seed) throws IOException {
        var digest = new ContentDigest();
        int[] labels = train.labels(digest);
        ExampleSet all = train.examples(labels, classes(labels), digest);
        return Holdout.of(all, testShare, seed, "arrays of %s".formatted(train.x.getFileName()), digest.hex());
    }

    private static int classes(int[] labels) {
        return 1 + Arrays.stream(labels).max().orElseThrow();
    }

    private int[] labels(ContentDigest digest) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            Npy.Numbers numbers = Npy.readNumbers(y, arena);
            List<Long> shape = numbers.shape();
            if (shape.isEmpty() || shape.size() > 2 || (shape.size() == 2 && shape.get(1) != 1)) {
                throw new MalformedFileException(
                        y,
                        "shape %s; labels have shape (count,): %s"
                                .formatted(
                                        text(shape),
                                        shape.size() == 2
                                                ? "of labels that are one-hot, save y.argmax(axis=1)"
                                                : "is it the other file of the two?"));
            }
            if (shape.getFirst() < 1 || shape.getFirst() > Integer.MAX_VALUE) {
                throw new MalformedFileException(
                        y, "%d labels; from 1 to %d are possible".formatted(shape.getFirst(), Integer.MAX_VALUE));
            }
            update(digest, numbers);
            var labels = new int[(int) numbers.elements()];
            for (int i = 0; i < labels.length; i++) {
                double value = numbers.get(i);
                labels[i] = (int) value;
                if (labels[i] != value || labels[i] < 0 || labels[i] >= Labels.MOST_CLASSES) {
                    throw new MalformedFileException(
                            y,
                            "label %s of example %d; labels are whole numbers from 0 to %d"
                                    .formatted(text(numbers, value), i, Labels.MOST_CLASSES - 1));
                }
            }
            return labels;
        }
    }

    private ExampleSet examples(int[] labels, int classes, ContentDigest digest) throws IOException {
        // Of the C library's heap, which has no limit; the set may keep it.
        Npy.Numbers numbers = Npy.readNumbers(x, (bytes, _) -> NativeHeap.allocate(bytes));
        List<Integer> shape = shape(numbers, labels.length);
        update(digest, numbers);
        boolean images = shape.size() == 3;
        if (images && numbers.type() == Npy.NumberType.UINT8 && !numbers.fortranOrder()) {
            return new ImageSet(shape.get(1), shape.get(2), shape.get(0), classes, numbers.data(), labels);
        }
        boolean asTheyAre = numbers.type() == Npy.NumberType.FLOAT32
                && !numbers.fortranOrder()
                && ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;
        float scale = images && numbers.type() == Npy.NumberType.UINT8 ? 255 : 1;
        MemorySegment values = asTheyAre ? numbers.data() : NativeHeap.allocate(numbers.elements() * Float.BYTES);
        int size = shape.stream().reduce(1, Math::multiplyExact);
        int[] places = places(shape, numbers.fortranOrder());
        for (int example = 0; example < labels.length; example++) {
            for (int i = 0; i < size; i++) {
                long from =
                        numbers.fortranOrder() ? example + (long) labels.length * places[i] : (long) example * size + i;
                float value = asTheyAre ? numbers.data().get(FLOAT, from * Float.BYTES) : (float) numbers.get(from);
                if (!Float.isFinite(value)) {
                    throw new MalformedFileException(
                            x,
                            "value %s of example %d, at %s; every value has to be finite and in the range of float32"
                                    .formatted(numbers.get(from), example, index(example, i, shape, numbers)));
                }
                if (!asTheyAre) {
                    long to = (long) example * size + i;
                    values.set(ValueLayout.JAVA_FLOAT_UNALIGNED, to * Float.BYTES, value / scale);
                }
            }
        }
        return new ArraySet(shape, classes, values, labels, List.of());
    }

    /** Returns the shape of an example. */
    private List<Integer> shape(Npy.Numbers numbers, int labels) throws MalformedFileException {
        List<Long> shape = numbers.shape();
        if (shape.size() < 2) {
            throw new MalformedFileException(
                    x,
                    "shape %s; (count, features), (count, rows, cols) or (count, channels, rows, cols) is needed"
                            .formatted(text(shape)));
        }
        if (shape.getFirst() != labels) {
            throw new MalformedFileException(
                    x, "shape %s, but %s has %d labels; every example has one".formatted(text(shape), y, labels));
        }
        if (shape.size() == 4 && CHANNELS.contains(shape.get(3)) && shape.get(1) > 4 && shape.get(2) > 4) {
            throw new MalformedFileException(
                    x,
                    "shape %s looks like images with their channels last; save x.transpose(0, 3, 1, 2)"
                            .formatted(text(shape)));
        }
        var example = new ArrayList<Integer>();
        long size = 1;
        for (long dimension : shape.subList(1, shape.size())) {
            size = dimension < 1 ? 0 : Math.multiplyExact(size, Math.min(dimension, Integer.MAX_VALUE));
            if (size < 1 || size > Integer.MAX_VALUE) {
                throw new MalformedFileException(
                        x, "shape %s; an example has from 1 to %d values".formatted(text(shape), Integer.MAX_VALUE));
            }
            example.add((int) dimension);
        }
        if (example.size() == 2) {
            example.addFirst(1);
        }
        return List.copyOf(example);
    }

    /**
     * Returns where the values of an example are in Fortran order, in units of the number of examples: the first of its
     * indices runs fastest.
     */
    private static int[] places(List<Integer> shape, boolean fortranOrder) {
        if (!fortranOrder) {
            return new int[0];
        }
        var places = new int[shape.stream().reduce(1, Math::multiplyExact)];
        for (int i = 0; i < places.length; i++) {
            int rest = i;
            int stride = places.length;
            int place = 0;
            for (int d = shape.size() - 1; d >= 0; d--) {
                stride /= shape.get(d);
                place += rest % shape.get(d) * stride;
                rest /= shape.get(d);
            }
            places[i] = place;
        }
        return places;
    }

    /** Returns the index of a value as NumPy writes it. */
    private static String index(int example, int at, List<Integer> shape, Npy.Numbers numbers) {
        var indices = new ArrayList<Long>();
        int rest = at;
        for (int d = shape.size() - 1; d >= 0; d--) {
            indices.addFirst((long) rest % shape.get(d));
            rest /= shape.get(d);
        }
        if (indices.size() == numbers.shape().size()) {
            indices.removeFirst(); // the channel that images of three dimensions do not have
        }
        indices.addFirst((long) example);
        return "x" + indices;
    }

    private static void update(ContentDigest digest, Npy.Numbers numbers) {
        digest.update("%s %s %s\n".formatted(numbers.type(), numbers.shape(), numbers.fortranOrder()));
        digest.update(numbers.data());
    }

    private static String text(Npy.Numbers numbers, double value) {
        return numbers.type().isFloat() ? Double.toString(value) : "%.0f".formatted(value);
    }

    private static String text(List<Long> shape) {
        String list = shape.toString();
        return "(%s%s)".formatted(list.substring(1, list.length() - 1), shape.size() == 1 ? "," : "");
    }
}
