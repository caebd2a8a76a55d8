package org.fedcomuon.format;

import static java.util.stream.Collectors.joining;
import static org.fedcomuon.internal.file.FileTransfer.clip;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import org.fedcomuon.file.MalformedFileException;

/**
 * An array in an NPZ archive, which is a zip file of NPY files. An entry is read twice: at first to verify its length
 * and its checksum, which the JDK's reader does not do, so that no memory is allocated for what is not there.
 */
final class NpzEntry implements Npy.Source, AutoCloseable {
    private static final String ARCHIVE = ".npz";
    private static final String MARK = ARCHIVE + "#";
    private static final String ARRAY = ".npy";
    /** The largest number of bytes that Deflate can produce from one. */
    private static final long RATIO = 1032;

    private static final int BUFFER = 1 << 16;

    private final Path path;
    private final ZipFile archive;
    private final InputStream in;
    private final long size;
    private final byte[] buffer = new byte[BUFFER];

    private NpzEntry(Path path, ZipFile archive, InputStream in, long size) {
        this.path = path;
        this.archive = archive;
        this.in = in;
        this.size = size;
    }

    /**
     * What a user calls an array of an archive.
     *
     * @param array its name, without a suffix; empty stands for the only one
     */
    record Name(Path archive, String array) {
        /** Returns the parts of {@code archive.npz#name}, or of {@code archive.npz}; empty for any other path. */
        static Optional<Name> of(Path path) {
            String text = path.toString();
            int mark = text.toLowerCase(Locale.ROOT).lastIndexOf(MARK);
            if (mark >= 0) {
                int end = mark + ARCHIVE.length();
                return Optional.of(new Name(Path.of(text.substring(0, end)), text.substring(end + 1)));
            }
            return text.toLowerCase(Locale.ROOT).endsWith(ARCHIVE) ? Optional.of(new Name(path, "")) : Optional.empty();
        }
    }

    /**
     * Opens an array and verifies it.
     *
     * @throws MalformedFileException when it is not there or damaged
     */
    static NpzEntry open(Name name) throws IOException {
        Path file = name.archive();
        try {
            var archive = new ZipFile(file.toFile());
            try {
                return open(name, archive, Files.size(file));
            } catch (IOException | RuntimeException | Error e) {
                archive.close();
                throw e;
            }
        } catch (ZipException | EOFException | IllegalArgumentException e) {
            throw new MalformedFileException(
                    file,
                    "not a zip archive of arrays, as numpy.savez writes it, or damaged (%s); copy or save it again"
                            .formatted(e.getMessage()),
                    e);
        }
    }

    private static NpzEntry open(Name name, ZipFile archive, long bytes) throws IOException {
        ZipEntry entry = find(name, archive);
        String array = entry.getName().endsWith(ARRAY)
                ? entry.getName().substring(0, entry.getName().length() - ARRAY.length())
                : entry.getName();
        Path path = Path.of(name.archive() + "#" + array.replace('\0', '?'));
        long size = entry.getSize();
        long packed = entry.getCompressedSize();
        if (size < 0 || packed < 0 || packed > bytes || size > RATIO * (packed + 1)) {
            throw new MalformedFileException(
                    path,
                    "it claims %d bytes, which %d bytes of an archive of %d cannot hold"
                            .formatted(size, packed, bytes));
        }
        verify(path, archive, entry);
        return new NpzEntry(path, archive, archive.getInputStream(entry), size);
    }

    private static ZipEntry find(Name name, ZipFile archive) throws MalformedFileException {
        List<String> names = archive.stream()
                .map(ZipEntry::getName)
                .filter(each -> each.endsWith(ARRAY))
                .map(each -> each.substring(0, each.length() - ARRAY.length()))
                .sorted()
                .toList();
        if (name.array().isEmpty() && names.size() != 1) {
            throw new MalformedFileException(
                    name.archive(),
                    "%d arrays%s; name one, as %s#%s"
                            .formatted(
                                    names.size(),
                                    names.isEmpty() ? "" : " (%s)".formatted(list(names)),
                                    name.archive().getFileName(),
                                    names.isEmpty() ? "x" : clip(names.getFirst())));
        }
        String wanted = name.array().isEmpty() ? names.getFirst() : name.array();
        ZipEntry entry = archive.getEntry(wanted.endsWith(ARRAY) ? wanted : wanted + ARRAY);
        if (entry == null || entry.isDirectory()) {
            throw new MalformedFileException(
                    name.archive(),
                    "no array '%s'; %s"
                            .formatted(clip(wanted), names.isEmpty() ? "it has none" : "it has " + list(names)));
        }
        return entry;
    }

    private static String list(List<String> names) {
        return clip(names.stream().collect(joining(", ")), 120);
    }

    private static void verify(Path path, ZipFile archive, ZipEntry entry) throws IOException {
        var checksum = new CRC32();
        var buffer = new byte[BUFFER];
        long total = 0;
        try (InputStream in = archive.getInputStream(entry)) {
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
                checksum.update(buffer, 0, count);
                total += count;
                if (total > entry.getSize()) {
                    break;
                }
            }
        }
        if (total != entry.getSize() || checksum.getValue() != entry.getCrc()) {
            throw new MalformedFileException(
                    path, "the data do not have the length and the checksum of the archive; copy or save it again");
        }
    }

    /** Returns the path that names the array in messages. */
    Path path() {
        return path;
    }

    @Override
    public long size() {
        return size;
    }

    @Override
    public void next(MemorySegment into) throws IOException {
        for (long at = 0; at < into.byteSize(); ) {
            int count = in.read(buffer, 0, (int) Math.min(buffer.length, into.byteSize() - at));
            if (count < 0) {
                throw new IOException("the file became shorter while it was read");
            }
            MemorySegment.copy(MemorySegment.ofArray(buffer), 0, into, at, count);
            at += count;
        }
    }

    @Override
    public void close() throws IOException {
        archive.close(); // and the stream with it
    }
}
