package org.fedcomuon.cli;

import java.awt.image.BufferedImage;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import javax.imageio.ImageIO;
import org.fedcomuon.testing.NumpyFiles;

/** Data of a user's own, and YAML files about them. */
final class OwnFiles {
    static {
        // the module itself draws no images, so it does not read the JDK's module for them unless told
        OwnFiles.class
                .getModule()
                .addReads(ModuleLayer.boot().findModule("java.desktop").orElseThrow());
    }

    private final Path directory;
    private final Map<String, String> base = new LinkedHashMap<>();

    /** @param base a file, whose lines begin with a key each */
    OwnFiles(Path directory, String base) {
        this.directory = directory;
        base.lines().forEach(line -> this.base.put(key(line), line));
    }

    private static String key(String line) {
        return line.substring(0, line.indexOf(':'));
    }

    /** Writes a file: the lines of {@code changes} replace those of the same key, and {@code -key} takes one away. */
    Path yaml(String name, String changes) throws IOException {
        var lines = new LinkedHashMap<>(base);
        changes.lines().filter(line -> !line.isBlank()).forEach(line -> {
            if (line.startsWith("-")) {
                lines.remove(line.substring(1));
            } else {
                lines.put(key(line), line);
            }
        });
        return Files.writeString(directory.resolve(name), String.join("\n", lines.values()) + "\n");
    }

    Path file(String name) {
        return directory.resolve(name);
    }

    Path array(String name, String descr, String shape, double... values) throws IOException {
        return Files.write(file(name), NumpyFiles.npy(descr, false, shape, values));
    }

    /** Values around the number of the class, so that there is something to learn. */
    static double[] values(int count, int size, int classes, long seed) {
        var random = new Random(seed);
        return IntStream.range(0, count * size)
                .mapToDouble(i -> 0.5 * random.nextGaussian() + (i / size % classes == i % size % classes ? 1 : 0))
                .toArray();
    }

    static double[] labels(int count, int classes) {
        return IntStream.range(0, count).mapToDouble(i -> i % classes).toArray();
    }

    /** A table with two columns of features, a class and a client. */
    Path table(String name, int rows, int classes, int clients) throws IOException {
        double[] values = values(rows, 2, classes, rows);
        var lines = new ArrayList<>(List.of("a,b,kind,who"));
        for (int i = 0; i < rows; i++) {
            lines.add("%s,%s,%s,%s"
                    .formatted(values[2 * i], values[2 * i + 1], "kind" + i % classes, "who" + i / classes % clients));
        }
        return Files.write(file(name), lines);
    }

    /** Images in a directory per class: brighter on the left or on the right. */
    Path images(String name, String format, int perClass, int rows, int cols) throws IOException {
        var random = new Random(perClass);
        for (String side : List.of("left", "right")) {
            Path of = Files.createDirectories(file(name).resolve(side));
            for (int i = 0; i < perClass; i++) {
                var image = new BufferedImage(cols, rows, BufferedImage.TYPE_BYTE_GRAY);
                for (int y = 0; y < rows; y++) {
                    for (int x = 0; x < cols; x++) {
                        int light = (side.equals("left") == x < cols / 2 ? 160 : 40) + random.nextInt(40);
                        image.getRaster().setSample(x, y, 0, light);
                    }
                }
                ImageIO.write(
                        image, format, of.resolve("%d.%s".formatted(i, format)).toFile());
            }
        }
        return file(name);
    }

    Path text(String name, int words) throws IOException {
        var random = new Random(words);
        var text = new StringBuilder();
        for (int i = 0; i < words; i++) {
            text.append((char) ('a' + random.nextInt(1 + random.nextInt(12)))).append(i % 10 == 9 ? '\n' : ' ');
        }
        return Files.writeString(file(name), text);
    }
}
