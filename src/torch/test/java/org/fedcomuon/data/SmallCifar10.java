package org.fedcomuon.data;

import static java.util.stream.Collectors.joining;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.zip.GZIPOutputStream;
import org.fedcomuon.data.Cifar10Source.Kind;

/** Files in CIFAR-10's two formats, but of a few images only. */
final class SmallCifar10 {
    private SmallCifar10() {}

    /** The same images as the package would have them: six sheets, and two lists of labels. */
    static List<byte[]> sheets(List<byte[]> binary, int channels) {
        var files = new ArrayList<byte[]>();
        for (byte[] batch : binary) {
            var rows = new byte[batch.length / 3073][1024 * channels];
            for (int i = 0; i < rows.length; i++) {
                Arrays.fill(rows[i], (byte) 255);
                for (int pixel = 0; pixel < 1024; pixel++) {
                    for (int channel = 0; channel < 3; channel++) {
                        rows[i][pixel * channels + channel] = batch[i * 3073 + 1 + channel * 1024 + pixel];
                    }
                }
            }
            files.add(PngEncoder.encode(rows, channels, 1 << 16, 1, 1, 4, 0, 2, 3));
        }
        files.add(labels(binary.subList(0, 5)));
        files.add(labels(binary.subList(5, 6)));
        return files;
    }

    private static byte[] labels(List<byte[]> batches) {
        return batches.stream()
                .flatMap(batch -> IntStream.range(0, batch.length / 3073).mapToObj(i -> "" + batch[i * 3073]))
                .collect(joining(",", "[", "]"))
                .getBytes(StandardCharsets.US_ASCII);
    }

    static Path write(Path directory, Kind kind, List<byte[]> files) throws IOException {
        Files.createDirectories(directory);
        for (int i = 0; i < files.size(); i++) {
            Files.write(directory.resolve(kind.names().get(i)), files.get(i));
        }
        return directory;
    }

    static Cifar10Download.Expected expected(List<byte[]> binary, int perClass) {
        return new Cifar10Download.Expected(
                sheets(binary, 3).stream().map(SmallMnist::sha256).toList(),
                binary.stream().map(SmallMnist::sha256).toList(),
                List.of(5 * perClass, perClass));
    }

    /** A package as npm makes it. */
    static Path pack(Path archive, List<byte[]> sheets) throws IOException {
        try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(archive))) {
            SmallMnist.entry(out, "package/package.json", "{}".getBytes(StandardCharsets.UTF_8));
            for (int i = 0; i < sheets.size(); i++) {
                SmallMnist.entry(out, "package/" + Kind.SHEETS.names().get(i), sheets.get(i));
            }
            out.write(new byte[1024]);
        }
        return archive;
    }
}
