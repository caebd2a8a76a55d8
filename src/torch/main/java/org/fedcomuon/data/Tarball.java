package org.fedcomuon.data;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipException;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.file.FileTransfer;

/**
 * Extracts files from a tar archive that is compressed with gzip, such as a package.
 *
 * <p>Archives are not trusted. A name in an archive is compared with the wanted names and never becomes a path.
 * Archives that contain links, devices or names that lead out of the archive, or that are larger than expected, are
 * refused.
 *
 * <p>Thread-safe.
 */
final class Tarball {
    private static final int BLOCK = 512;
    /** Offsets and lengths of the fields of a header. */
    private static final int NAME = 0;

    private static final int NAME_LENGTH = 100;
    private static final int SIZE = 124;
    private static final int SIZE_LENGTH = 12;
    private static final int CHECKSUM = 148;
    private static final int CHECKSUM_LENGTH = 8;
    private static final int TYPE = 156;
    private static final int MAGIC = 257;
    private static final int PREFIX = 345;
    private static final int PREFIX_LENGTH = 155;

    private static final int BUFFER = 1 << 16;

    private Tarball() {}

    /**
     * Writes files of the archive to new files.
     *
     * @param wanted the destination of each file by its name in the archive; all of them must be present
     * @param most the largest permitted size of the whole archive in bytes, uncompressed
     * @throws MalformedFileException when the archive is damaged, suspicious, or lacks a file; some of the new files
     *     may have been written
     * @throws IOException when a file cannot be read or written
     */
    public static void extract(Path archive, Map<String, Path> wanted, long most) throws IOException {
        FileTransfer.requireRegular(archive, "a tar archive");
        try (InputStream whole = Files.newInputStream(archive);
                InputStream in = new Gunzip(new BufferedInputStream(whole))) {
            new Reader(archive, in, most).extract(wanted);
        } catch (EOFException | ZipException e) {
            throw new MalformedFileException(archive, Gunzip.explain(e), e);
        }
    }

    private static final class Reader {
        private final Path archive;
        private final InputStream in;
        private final long most;
        private final byte[] buffer = new byte[BUFFER];
        private long left;

        Reader(Path archive, InputStream in, long most) {
            this.archive = archive;
            this.in = in;
            this.most = most;
            left = most;
        }

        void extract(Map<String, Path> wanted) throws IOException {
            var missing = new HashSet<>(wanted.keySet());
            for (byte[] header = block(); !isZero(header); header = block()) {
                requireHeader(header);
                String name = name(header);
                requireHarmless(name);
                long size = octal(header, SIZE, SIZE_LENGTH, name);
                switch (header[TYPE]) {
                    case '0', 0 -> {}
                    case '5' -> {
                        if (size != 0) {
                            throw refused("the directory '%s' has content".formatted(FileTransfer.clip(name)));
                        }
                    }
                    default ->
                        throw refused("'%s' is neither a file nor a directory (type '%c'); nothing else is extracted"
                                .formatted(FileTransfer.clip(name), Byte.toUnsignedInt(header[TYPE])));
                }
                Path to = wanted.get(name);
                if (to == null || header[TYPE] == '5') {
                    copy(size, OutputStream.nullOutputStream());
                } else if (missing.remove(name)) {
                    try (OutputStream out = Files.newOutputStream(to, StandardOpenOption.CREATE_NEW)) {
                        copy(size, out);
                    }
                } else {
                    throw refused("'%s' is contained twice".formatted(FileTransfer.clip(name)));
                }
                copy(-size & (BLOCK - 1), OutputStream.nullOutputStream());
            }
            if (!missing.isEmpty()) {
                throw refused("it has no '%s'".formatted(List.copyOf(missing).getFirst()));
            }
            // Reads to the end, for the checksum over the whole archive.
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
                take(count);
            }
        }

        private void requireHeader(byte[] header) throws MalformedFileException {
            if (!"ustar".equals(text(header, MAGIC, 5))) {
                throw refused("not a tar archive in the supported format, ustar");
            }
            int sum = 0;
            for (int i = 0; i < BLOCK; i++) {
                boolean own = i >= CHECKSUM && i < CHECKSUM + CHECKSUM_LENGTH;
                sum += own ? ' ' : Byte.toUnsignedInt(header[i]);
            }
            if (octal(header, CHECKSUM, CHECKSUM_LENGTH, "header") != sum) {
                throw refused("a header with a wrong checksum; fetch the archive again");
            }
        }

        private static String name(byte[] header) {
            String name = text(header, NAME, NAME_LENGTH);
            // A zero follows "ustar": GNU's variant does not have the prefix in this place.
            String prefix = header[MAGIC + 5] == 0 ? text(header, PREFIX, PREFIX_LENGTH) : "";
            return prefix.isEmpty() ? name : prefix + "/" + name;
        }

        private void requireHarmless(String name) throws MalformedFileException {
            if (name.isEmpty()
                    || name.startsWith("/")
                    || name.contains("\\")
                    || Arrays.asList(name.split("/", -1)).contains("..")) {
                throw refused("the name '%s' leads out of the archive".formatted(FileTransfer.clip(name)));
            }
        }

        private static String text(byte[] header, int at, int length) {
            int end = at;
            while (end < at + length && header[end] != 0) {
                end++;
            }
            return new String(header, at, end - at, StandardCharsets.UTF_8);
        }

        private long octal(byte[] header, int at, int length, String what) throws MalformedFileException {
            String digits = text(header, at, length).strip();
            if (!digits.matches("[0-7]{1,12}")) {
                throw refused("'%s' has the number '%s' in its header; only octal digits are allowed"
                        .formatted(FileTransfer.clip(what), digits));
            }
            return Long.parseLong(digits, 8);
        }

        private byte[] block() throws IOException {
            byte[] block = in.readNBytes(BLOCK);
            take(block.length);
            if (block.length < BLOCK) {
                throw new EOFException();
            }
            return block;
        }

        private void copy(long bytes, OutputStream out) throws IOException {
            take(bytes); // before anything is written
            long rest = bytes;
            while (rest > 0) {
                int count = in.read(buffer, 0, (int) Math.min(buffer.length, rest));
                if (count < 0) {
                    throw new EOFException();
                }
                out.write(buffer, 0, count);
                rest -= count;
            }
        }

        private void take(long bytes) throws MalformedFileException {
            left -= bytes;
            if (left < 0) {
                throw refused("larger than the expected maximum of %d bytes".formatted(most));
            }
        }

        private static boolean isZero(byte[] block) {
            for (byte b : block) {
                if (b != 0) {
                    return false;
                }
            }
            return true;
        }

        private MalformedFileException refused(String problem) {
            return new MalformedFileException(archive, problem);
        }
    }
}
