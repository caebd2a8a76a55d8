package org.fedcomuon.data;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Objects;

/** Images of one size, each with a label. Immutable. */
public final class ImageSet {
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
    private final byte[] pixels;
    private final byte[] labels;
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

    /** Creates a set that owns the given arrays, without a copy. */
    ImageSet(int rows, int cols, int channels, int classes, byte[] pixels, byte[] labels) {
        if (rows < 1 || cols < 1 || channels < 1) {
            throw new IllegalArgumentException(
                    "images of %d x %d pixels in %d channels are not possible".formatted(rows, cols, channels));
        }
        if (classes < 1 || classes > 256) {
            throw new IllegalArgumentException("%d classes; from 1 to 256 are possible".formatted(classes));
        }
        this.rows = rows;
        this.cols = cols;
        this.channels = channels;
        this.classes = classes;
        imageSize = Math.multiplyExact(Math.multiplyExact(rows, cols), channels);
        if ((long) labels.length * imageSize != pixels.length) {
            throw new IllegalArgumentException("%d labels and %d pixels do not fit together: an image has %d pixels"
                    .formatted(labels.length, pixels.length, imageSize));
        }
        this.pixels = pixels;
        this.labels = labels;
        values = new float[channels][];
        Arrays.fill(values, INTENSITIES);
        for (int i = 0; i < this.labels.length; i++) {
            if (label(i) >= classes) {
                throw new IllegalArgumentException(
                        "label %d of image %d is not among 0 to %d".formatted(label(i), i, classes - 1));
            }
        }
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
            int from = image * imageSize + channel * area;
            for (int i = from; i < from + area; i++) {
                histogram[Byte.toUnsignedInt(pixels[i])]++;
            }
        }
        return histogram;
    }

    /** Returns the number of images. */
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

    /** Returns the number of classes. */
    public int classes() {
        return classes;
    }

    /** Returns the number of values per image, {@code channels * rows * cols}. */
    public int imageSize() {
        return imageSize;
    }

    /** Returns the class of image {@code image}, from 0. */
    public int label(int image) {
        return Byte.toUnsignedInt(labels[image]);
    }

    /** Writes an image to {@code into}, from its element {@code offset} on: numbers in [0, 1], if not normalized. */
    public void copyTo(int image, float[] into, int offset) {
        copyTo(image, MemorySegment.ofArray(into), offset);
    }

    /** Writes an image to {@code into}, from its float number {@code offset} on. */
    public void copyTo(int image, MemorySegment into, long offset) {
        int from = Objects.checkIndex(image, count()) * imageSize;
        MemorySegment to = into.asSlice(offset * Float.BYTES, (long) imageSize * Float.BYTES);
        int area = rows * cols;
        for (int channel = 0; channel < channels; channel++) {
            float[] table = values[channel];
            for (int i = channel * area; i < (channel + 1) * area; i++) {
                to.setAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, i, table[Byte.toUnsignedInt(pixels[from + i])]);
            }
        }
    }

    /** Returns a description for messages. */
    @Override
    public String toString() {
        return "%d images of %d x %d x %d in %d classes".formatted(count(), channels, rows, cols, classes);
    }
}
