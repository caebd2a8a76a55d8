package org.fedcomuon.model;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import org.fedcomuon.file.MalformedFileException;

/**
 * What a file has to be before libtorch reads it: libtorch does not check sums, and trusts sizes that a file states.
 */
final class TorchScriptFile {
    private static final String MAGIC = "PK\3\4";

    /** Only the code in such a file is compressed; weights are not. */
    private static final long LARGEST_EXPANSION = 16;

    private static final String EXPECTED = "a file of torch.jit.script(model).save(...) is needed";

    private TorchScriptFile() {}

    /** Requires an undamaged archive with the parts that TorchScript has. */
    static void require(Path file) throws IOException {
        if (!Files.isRegularFile(file)) {
            throw new MalformedFileException(file, Files.exists(file) ? "is not a file" : "does not exist");
        }
        try (InputStream in = Files.newInputStream(file)) {
            if (!new String(in.readNBytes(MAGIC.length()), ISO_8859_1).equals(MAGIC)) {
                throw new MalformedFileException(file, "is not a zip archive; " + EXPECTED);
            }
        }
        try (var archive = new ZipFile(file.toFile())) {
            requireParts(file, archive);
            requireSums(file, archive);
        } catch (ZipException | EOFException e) {
            throw new MalformedFileException(file, "is a damaged zip archive (%s)".formatted(e.getMessage()), e);
        }
    }

    private static void requireParts(Path file, ZipFile archive) throws IOException {
        List<? extends ZipEntry> entries = Collections.list(archive.entries());
        boolean data = has(entries, "/data.pkl");
        if (!data || !has(entries, "/constants.pkl")) {
            throw new MalformedFileException(
                    file,
                    (data
                                    ? "has weights, as torch.save writes them, but not the model's code; "
                                    : "is an archive, but not of TorchScript; ")
                            + EXPECTED);
        }
        long size = 0;
        for (ZipEntry entry : entries) {
            size += Math.max(0, entry.getSize());
            if (size < 0 || size > LARGEST_EXPANSION * Files.size(file) + (1 << 20)) {
                throw new MalformedFileException(
                        file, "claims to contain more than it can: %s is too large".formatted(entry.getName()));
            }
        }
    }

    private static boolean has(List<? extends ZipEntry> entries, String end) {
        return entries.stream().anyMatch(entry -> entry.getName().endsWith(end));
    }

    private static void requireSums(Path file, ZipFile archive) throws IOException {
        for (ZipEntry entry : Collections.list(archive.entries())) {
            var sum = new CRC32();
            try (var in = new CheckedInputStream(archive.getInputStream(entry), sum)) {
                in.transferTo(OutputStream.nullOutputStream());
            }
            if (sum.getValue() != entry.getCrc()) {
                throw new MalformedFileException(
                        file, "is damaged: the checksum of %s is wrong".formatted(entry.getName()));
            }
        }
    }
}
