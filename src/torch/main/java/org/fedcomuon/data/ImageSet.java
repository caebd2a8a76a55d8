package org.fedcomuon.data;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** Images of one size, kept as a byte per value, each with a label. Immutable. */
public final class ImageSet implements ExampleSet {
    /** The values of a pixel in [0, 1], by its byte. */
    private static final float[] INTENSITIES = new float[1 << Byte.SIZE];

    static {
        for (int i = 0; i < INTENSITIES.length; i++) {
            INTENSITIES[i] = i / 255f;
        }
    }

    private final int rows;
    private final int cols;
    private final int channels;
    private final int classes;
    private final int imageSize;
    private final MemorySegment pixels;
    private final int[] labels;
    /** The value of each byte, by channel. */
    private final float[][] values;

    /**
     * Creates a set with a copy of the data.
     *
     * @param channels 1 for grey, 3 for colours
     * @param classes labels are from 0 to one less
     * @param pixels unsigned bytes in the order images, channels, rows, columns
     * @param labels one byte per image
     * @throws IllegalArgumentException when these do not fit together
     */
    public ImageSet(int rows, int cols, int channels, int classes, MemorySegment pixels, MemorySegment labels) {
        this(
                rows,
                cols,
                channels,
                classes,
                pixels.toArray(ValueLayout.JAVA_BYTE),
                labels.toArray(ValueLayout.JAVA_BYTE));
    }

    /** Creates a set that owns the given pixels, without a copy. */
    ImageSet(int rows, int cols, int channels, int classes, byte[] pixels, byte[] labels) {
        this(rows, cols, channels, classes, MemorySegment.ofArray(pixels), unsigned(labels));
    }

    /** Creates a set that owns the given memory, which may be larger than any array, without a copy. */
    ImageSet(int rows, int cols, int channels, int classes, MemorySegment pixels, int[] labels) {
        if (rows < 1 || cols < 1 || channels < 1) {
            throw new IllegalArgumentException(
                    "images of %d x %d pixels in %d channels are not possible".formatted(rows, cols, channels));
        }
        this.rows = rows;
        this.cols = cols;
        this.channels = channels;
        this.classes = classes;
        imageSize = Math.multiplyExact(Math.multiplyExact(rows, cols), channels);
        if ((long) labels.length * imageSize != pixels.byteSize()) {
            throw new IllegalArgumentException("%d labels and %d pixels do not fit together: an image has %d pixels"
                    .formatted(labels.length, pixels.byteSize(), imageSize));
        }
        Labels.require(labels, classes, "image");
        this.pixels = pixels.asReadOnly();
        this.labels = labels;
        values = new float[channels][];
        Arrays.fill(values, INTENSITIES);
    }

    private ImageSet(ImageSet same, float[][] values) {
        rows = same.rows;
        cols = same.cols;
        channels = same.channels;
        classes = same.classes;
        imageSize = same.imageSize;
        pixels = same.pixels;
        labels = same.labels;
        this.values = values;
    }

    private static int[] unsigned(byte[] labels) {
        var numbers = new int[labels.length];
        Arrays.setAll(numbers, i -> Byte.toUnsignedInt(labels[i]));
        return numbers;
    }

    /** Returns the same images with normalized pixels instead of numbers in [0, 1]. */
    ImageSet normalized(Normalization normalization) {
        if (normalization.means().size() != channels) {
            throw new IllegalArgumentException("a normalization of %d channels does not fit images with %d"
                    .formatted(normalization.means().size(), channels));
        }
        var tables = new float[channels][INTENSITIES.length];
        for (int channel = 0; channel < channels; channel++) {
            for (int value = 0; value < INTENSITIES.length; value++) {
                tables[channel][value] = normalization.apply(channel, value);
            }
        }
        return new ImageSet(this, tables);
    }

    /** Returns the histogram of the bytes in {@code channel}, over all images. */
    long[] histogram(int channel) {
        var histogram = new long[INTENSITIES.length];
        int area = rows * cols;
        for (int image = 0; image < count(); image++) {
            long from = (long) image * imageSize + (long) channel * area;
            for (long i = from; i < from + area; i++) {
                histogram[Byte.toUnsignedInt(pixels.get(ValueLayout.JAVA_BYTE, i))]++;
            }
        }
        return histogram;
    }

    /** Returns the number of images. */
    @Override
    public int count() {
        return labels.length;
    }

    /** Returns the number of rows of an image. */
    public int rows() {
        return rows;
    }

    /** Returns the number of columns of an image. */
    public int cols() {
        return cols;
    }

    /** Returns the number of values per pixel. */
    public int channels() {
        return channels;
    }

    /** Returns {@code channels, rows, cols}. */
    @Override
    public List<Integer> shape() {
        return List.of(channels, rows, cols);
    }

    /** Returns the number of classes. */
    @Override
    public int classes() {
        return classes;
    }

    /** Returns the number of values per image, {@code channels * rows * cols}. */
    @Override
    public int size() {
        return imageSize;
    }

    /** Returns the class of image {@code image}, from 0. */
    @Override
    public int label(int image) {
        return labels[image];
    }

    /**
     * Writes an image to {@code into}, from its float number {@code offset} on: numbers in [0, 1], if not normalized.
     */
    @Override
    public void copyTo(int image, MemorySegment into, long offset) {
        long from = (long) Objects.checkIndex(image, count()) * imageSize;
        MemorySegment to = into.asSlice(offset * Float.BYTES, (long) imageSize * Float.BYTES);
        int area = rows * cols;
        for (int channel = 0; channel < channels; channel++) {
            float[] table = values[channel];
            for (int i = channel * area; i < (channel + 1) * area; i++) {
                int value = Byte.toUnsignedInt(pixels.get(ValueLayout.JAVA_BYTE, from + i));
                to.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i, table[value]);
            }
        }
    }

    /** Returns a description for messages. */
    @Override
    public String toString() {
        return "%d images of %d x %d x %d in %d classes".formatted(count(), channels, rows, cols, classes);
    }
}
