package org.fedcomuon.data;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.NativeHeap;
import org.fedcomuon.internal.file.FileTransfer;

/**
 * Images in a directory for each class, for data of your own. Classes are the names of the directories, in the order of
 * their characters; the images of a class are ordered by their names.
 *
 * <ul>
 *   <li>Images are PNG or JPEG files, {@code .png}, {@code .jpg} or {@code .jpeg}, all of one size; they are not
 *       scaled. Pixels are numbers in [0, 1].
 *   <li>If all images are grey, they have one channel; otherwise all have three, RGB. Transparency is ignored.
 *   <li>Names that begin with a dot are ignored. Every other file that is not an image is refused, so that no image is
 *       left out because of its format, and so are directories in the directory of a class.
 *   <li>Symbolic links in the directory are refused: a data set of somebody else could lead to any file. The directory
 *       itself may be one.
 * </ul>
 *
 * An image may have {@value #MOST_PIXELS} pixels and a file {@value #MOST_BYTES} bytes.
 *
 * <p>Thread-safe.
 */
public final class ImageDirectory {
    /** The limit of an image. */
    static final int MOST_PIXELS = 1 << 24;

    /** The limit of a file. */
    static final int MOST_BYTES = 1 << 26;

    private static final int LISTED_CLASSES = 20;

    private ImageDirectory() {}

    /** An image, and its class. */
    private record Image(Path file, int label) {}

    /**
     * What a directory contains.
     *
     * @param classes their names, in order
     * @param images ordered by class and name, at least one
     * @param size of all of them, with three channels if one has colours
     */
    private record Listing(List<String> classes, List<Image> images, PixelSize size) {}

    /**
     * Reads images for training and for testing. The classes are those of the training images; a class may be missing
     * among the test images.
     *
     * @throws MalformedFileException when a file is damaged or is not an image, or images do not fit together
     * @throws IOException when a directory is missing or cannot be read; every message is one line that names the file
     */
    public static LabelledDataset load(Path train, Path test) throws IOException {
        Listing trained = list(train, Optional.empty(), Optional.empty());
        Listing tested = list(test, Optional.of(trained), Optional.of(train));
        int channels = Math.max(trained.size.channels(), tested.size.channels());
        var digest = new ContentDigest();
        Both<ImageSet> sets = Both.of(() -> read(trained, channels, digest), () -> read(tested, channels, digest));
        return Holdout.dataset(sets.train(), sets.test(), describe(train, trained), digest.hex());
    }

    /**
     * Reads images and holds back a share of each class for testing.
     *
     * @param testShare between 0 and 1
     * @param seed equal seeds hold back the same images
     * @throws MalformedFileException when a file is damaged or is not an image, or images do not fit together
     * @throws IOException when the directory is missing or cannot be read; every message is one line that names the
     *     file
     * @throws IllegalArgumentException when the share is not possible
     */
    public static LabelledDataset load(Path train, double testShare, long seed) throws IOException {
        Listing listing = list(train, Optional.empty(), Optional.empty());
        Holdout.size(listing.images.size(), testShare); // before images are read
        var digest = new ContentDigest();
        ImageSet all = read(listing, listing.size.channels(), digest);
        return Holdout.of(all, testShare, seed, describe(train, listing), digest.hex());
    }

    private static String describe(Path directory, Listing listing) {
        List<String> names = listing.classes.stream()
                .limit(LISTED_CLASSES)
                .map(FileTransfer::clip)
                .toList();
        return MalformedFileException.oneLine("images of %s with classes %s%s"
                .formatted(
                        directory.getFileName(),
                        String.join(", ", names),
                        listing.classes.size() > LISTED_CLASSES ? ", ..." : ""));
    }

    /** Lists a directory and reads the headers of all images; {@code like} is what the images have to fit. */
    private static Listing list(Path directory, Optional<Listing> like, Optional<Path> likeDirectory)
            throws IOException {
        List<Path> directories = new ArrayList<>();
        for (Path each : visible(directory)) {
            if (!Files.isDirectory(each, LinkOption.NOFOLLOW_LINKS)) {
                throw refused(
                        each, "not a directory; %s has a directory of images for each class".formatted(directory));
            }
            directories.add(each);
        }
        List<String> names =
                directories.stream().map(each -> "" + each.getFileName()).toList();
        List<String> classes = like.map(Listing::classes).orElse(names);
        if (classes.size() > Labels.MOST_CLASSES) {
            throw refused(
                    directory, "%d classes; at most %d are possible".formatted(classes.size(), Labels.MOST_CLASSES));
        }
        var images = new ArrayList<Image>();
        Optional<PixelSize> size = like.map(Listing::size);
        Optional<Path> first = like.map(each -> each.images.getFirst().file);
        boolean grey = true;
        for (int i = 0; i < names.size(); i++) {
            int label = classes.indexOf(names.get(i));
            if (label < 0) {
                throw refused(
                        directories.get(i),
                        "no class of this name in %s; a model knows only the classes that it is trained on"
                                .formatted(likeDirectory.orElseThrow()));
            }
            List<Path> files = visible(directories.get(i));
            if (files.isEmpty()) {
                throw refused(directories.get(i), "no images; every class has one at least");
            }
            for (Path file : files) {
                PixelSize found = size(file);
                if (size.isPresent() && !sameArea(size.get(), found)) {
                    throw refused(
                            file,
                            "%d x %d pixels, but %s has %d x %d; all images have one size"
                                    .formatted(
                                            found.cols(),
                                            found.rows(),
                                            first.orElseThrow(),
                                            size.get().cols(),
                                            size.get().rows()));
                }
                if (size.isEmpty()) {
                    size = Optional.of(found);
                    first = Optional.of(file);
                }
                grey &= found.isGrey();
                images.add(new Image(file, label));
            }
        }
        if (images.isEmpty()) {
            throw refused(directory, "no directories; a directory of images for each class is needed");
        }
        PixelSize area = size.orElseThrow();
        return new Listing(classes, images, new PixelSize(area.cols(), area.rows(), grey ? 1 : 3));
    }

    private static boolean sameArea(PixelSize one, PixelSize other) {
        return one.cols() == other.cols() && one.rows() == other.rows();
    }

    /** Returns what is in a directory, in the order of names, without what is hidden; links are refused. */
    private static List<Path> visible(Path directory) throws IOException {
        List<Path> all;
        try (Stream<Path> files = Files.list(directory)) {
            all = files.filter(each -> !("" + each.getFileName()).startsWith("."))
                    .sorted((a, b) -> ("" + a.getFileName()).compareTo("" + b.getFileName()))
                    .toList();
        } catch (NotDirectoryException e) {
            throw refused(directory, "not a directory; a directory with one of images for each class is needed");
        } catch (NoSuchFileException e) {
            var explained =
                    new NoSuchFileException(MalformedFileException.oneLine("" + directory), null, "no such directory");
            explained.initCause(e);
            throw explained;
        } catch (IOException e) {
            throw FileTransfer.explainRead(directory, e);
        }
        for (Path each : all) {
            if (Files.isSymbolicLink(each)) {
                throw refused(each, "a symbolic link, which is not followed; put the images themselves there");
            }
        }
        return all;
    }

    private static PixelSize size(Path file) throws IOException {
        String name = ("" + file.getFileName()).toLowerCase(Locale.ROOT);
        if (Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS)) {
            throw refused(file, "a directory among the images of a class; move its images up");
        }
        if (!Stream.of(".png", ".jpg", ".jpeg").anyMatch(name::endsWith)) {
            throw refused(file, "neither .png nor .jpg nor .jpeg; convert it, or move it out of the directory");
        }
        return size(file, content(file));
    }

    private static PixelSize size(Path file, byte[] content) throws IOException {
        PixelSize size = Jpeg.isJpeg(content) ? Jpeg.size(file, content) : Png.size(file, content);
        if ((long) size.cols() * size.rows() > MOST_PIXELS) {
            throw refused(
                    file, "%d x %d pixels; an image has at most %d".formatted(size.cols(), size.rows(), MOST_PIXELS));
        }
        return size;
    }

    private static byte[] content(Path file) throws IOException {
        FileTransfer.requireRegular(file, "an image");
        try (InputStream in = Files.newInputStream(file, LinkOption.NOFOLLOW_LINKS)) {
            byte[] content = in.readNBytes(MOST_BYTES);
            if (in.read() >= 0) {
                throw refused(file, "larger than the limit of %d bytes".formatted(MOST_BYTES));
            }
            return content;
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }

    private static ImageSet read(Listing listing, int channels, ContentDigest digest) throws IOException {
        PixelSize size = listing.size;
        int area = size.cols() * size.rows();
        int count = listing.images.size();
        MemorySegment pixels = NativeHeap.allocate((long) count * area * channels);
        var labels = new int[count];
        try (var jpeg = new Jpeg()) {
            for (int i = 0; i < count; i++) {
                Image image = listing.images.get(i);
                labels[i] = image.label;
                byte[] samples = planes(image.file, size, jpeg);
                for (int channel = 0; channel < channels; channel++) {
                    int from = samples.length < 3 * area ? 0 : channel * area; // grey is equal in all channels
                    long to = ((long) i * channels + channel) * area;
                    MemorySegment.copy(MemorySegment.ofArray(samples), from, pixels, to, area);
                }
                digest.update("%s\n".formatted(listing.classes.get(image.label)));
                digest.update(samples, samples.length);
            }
        }
        return new ImageSet(size.rows(), size.cols(), channels, listing.classes.size(), pixels, labels);
    }

    /** Returns the samples of an image without its alpha channel, in the order channels, rows, columns. */
    private static byte[] planes(Path file, PixelSize size, Jpeg jpeg) throws IOException {
        byte[] content = content(file);
        PixelSize found = size(file, content);
        if (!sameArea(found, size) || (size.isGrey() && !found.isGrey())) {
            throw new IOException(MalformedFileException.oneLine(file + ": the file changed while it was read"));
        }
        if (Jpeg.isJpeg(content)) {
            return jpeg.read(file, content);
        }
        int area = size.cols() * size.rows();
        int channels = found.isGrey() ? 1 : 3;
        var planes = new byte[channels * area];
        Png.read(file, content, _ -> Optional.empty(), (row, samples) -> {
            for (int x = 0; x < size.cols(); x++) {
                for (int channel = 0; channel < channels; channel++) {
                    planes[channel * area + row * size.cols() + x] = samples[x * found.channels() + channel];
                }
            }
        });
        return planes;
    }

    private static MalformedFileException refused(Path file, String problem) {
        return new MalformedFileException(file, problem);
    }
}
