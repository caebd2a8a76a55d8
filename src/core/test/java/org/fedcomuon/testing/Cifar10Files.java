package org.fedcomuon.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

/** The binary files of CIFAR-10, but of a few images only. */
public final class Cifar10Files {
    /** Bytes of a label and an image. */
    public static final int RECORD = 3073;

    private Cifar10Files() {}

    /** The content of the six binary files; labels are 0, 1, ..., 9, 0, ... */
    public static List<byte[]> content(int each, long seed) {
        var random = new Random(seed);
        return IntStream.range(0, 6)
                .mapToObj(_ -> {
                    var bytes = new byte[each * RECORD];
                    random.nextBytes(bytes);
                    for (int i = 0; i < each; i++) {
                        bytes[i * RECORD] = (byte) (i % 10);
                    }
                    return bytes;
                })
                .toList();
    }

    /** A directory with the six files; five times {@code each} images for training. */
    public static Path directory(Path directory, int each) throws IOException {
        Files.createDirectories(directory);
        List<byte[]> files = content(each, 7);
        for (int i = 0; i < 5; i++) {
            Files.write(directory.resolve("data_batch_%d.bin".formatted(i + 1)), files.get(i));
        }
        Files.write(directory.resolve("test_batch.bin"), files.get(5));
        return directory;
    }
}
