package org.fedcomuon.observe;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.fedcomuon.internal.file.FileTransfer;
import org.fedcomuon.internal.file.SteadyChannel;

/**
 * A file of events that is only appended to, as readers expect that follow it. What has been appended is on the disk;
 * what could not be written whole is cut off again, so that what there is can be read. Between two appends the file is
 * closed, because a disk with a file that is open for writing cannot be made read-only.
 *
 * <p>Not thread-safe.
 */
final class EventFile {
    /** Readers take files in the order of their names, which have ten digits of seconds until the year 2286. */
    private static final Pattern NAME = Pattern.compile("events\\.out\\.tfevents\\.(\\d{10})\\..*");

    /** Of a record: the length, its checksum, the event, its checksum. */
    private static final int FRAME = Long.BYTES + Integer.BYTES + Integer.BYTES;

    /** Checksums are masked, because checksums of data that contain checksums are weak. */
    private static final int MASK_ROTATION = 15;

    private static final int MASK = 0xa282ead8;

    private final Path file;
    private long length;

    private EventFile(Path file) {
        this.file = file;
    }

    /**
     * Makes a file that is read after all others in its directory, whatever a clock says that has been set back.
     *
     * @param directory made, unless it exists
     */
    static EventFile create(Path directory, Instant now) throws IOException {
        Path file = directory;
        try {
            Files.createDirectories(directory);
            long seconds = Math.max(now.getEpochSecond(), newest(directory) + 1);
            file = directory.resolve("events.out.tfevents.%010d.%d.fedcomuon"
                    .formatted(seconds, ProcessHandle.current().pid()));
            SteadyChannel.create(file).close();
            return new EventFile(file);
        } catch (IOException e) {
            throw FileTransfer.explainWrite(file, e);
        }
    }

    private static long newest(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> NAME.matcher("" + file.getFileName()))
                    .filter(Matcher::matches)
                    .mapToLong(name -> Long.parseLong(name.group(1)))
                    .max()
                    .orElse(0);
        }
    }

    /** Appends all of the events, or none. Interrupts do not disturb it. */
    void append(List<ProtocolMessage> events) throws IOException {
        List<byte[]> encoded = events.stream().map(ProtocolMessage::encoded).toList();
        ByteBuffer records = ByteBuffer.allocate(
                        encoded.stream().mapToInt(event -> FRAME + event.length).sum())
                .order(ByteOrder.LITTLE_ENDIAN);
        for (byte[] event : encoded) {
            int start = records.position();
            records.putLong(event.length);
            records.putInt(checksum(records.array(), start, Long.BYTES));
            records.put(event).putInt(checksum(event, 0, event.length));
        }
        try (SteadyChannel channel = SteadyChannel.write(file)) {
            try {
                channel.on(now -> {
                    FileTransfer.write(now, length, MemorySegment.ofArray(records.array()));
                    return now;
                });
                channel.force();
            } catch (IOException e) {
                cut(channel, e);
                throw e;
            }
        } catch (IOException e) {
            throw FileTransfer.explainWrite(file, e);
        }
        length += records.capacity();
    }

    private static int checksum(byte[] bytes, int from, int count) {
        var crc = new CRC32C();
        crc.update(bytes, from, count);
        return Integer.rotateRight((int) crc.getValue(), MASK_ROTATION) + MASK;
    }

    private void cut(SteadyChannel channel, IOException why) {
        try {
            channel.on(now -> now.truncate(length));
        } catch (IOException e) {
            why.addSuppressed(e);
        }
    }
}
