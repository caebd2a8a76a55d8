package org.fedcomuon.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.tensorflow.framework.Summary;
import org.tensorflow.util.Event;
import org.tensorflow.util.SessionLog;

/** Event files as TensorBoard reads them, decoded with TensorFlow's own definitions. */
public final class EventFiles {
    private EventFiles() {}

    /** The files of a directory, in the order in which they are read. */
    public static List<Path> files(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.toString().contains("tfevents"))
                    .sorted()
                    .toList();
        }
    }

    /** All events of a file, which has to end with a whole one. */
    public static List<Event> events(Path file) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        var events = new ArrayList<Event>();
        while (bytes.hasRemaining()) {
            byte[] header = next(bytes, Long.BYTES);
            long length = ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).getLong();
            events.add(Event.parseFrom(next(bytes, Math.toIntExact(length))));
        }
        return events;
    }

    private static byte[] next(ByteBuffer bytes, int count) {
        byte[] next = new byte[count];
        bytes.get(next);
        int masked = bytes.getInt() - 0xa282ead8;
        var crc = new CRC32C();
        crc.update(next);
        assertThat(masked >>> 17 | masked << 15).isEqualTo((int) crc.getValue());
        return next;
    }

    /**
     * The scalars of all files of a directory, by tag and step; a session that starts discards what is from its step
     * on.
     */
    public static Map<String, NavigableMap<Long, Float>> scalars(Path directory) throws IOException {
        var scalars = new TreeMap<String, NavigableMap<Long, Float>>();
        for (Path file : files(directory)) {
            List<Event> events = events(file);
            assertThat(events.getFirst().getFileVersion()).isEqualTo("brain.Event:2");
            for (Event event : events) {
                if (event.getSessionLog().getStatus() == SessionLog.SessionStatus.START) {
                    scalars.values()
                            .forEach(points ->
                                    points.tailMap(event.getStep(), true).clear());
                }
                for (Summary.Value value : event.getSummary().getValueList()) {
                    if (value.getValueCase() == Summary.Value.ValueCase.SIMPLE_VALUE) {
                        Float before = scalars.computeIfAbsent(value.getTag(), _ -> new TreeMap<>())
                                .put(event.getStep(), value.getSimpleValue());
                        assertThat(before)
                                .as("%s at step %d of %s", value.getTag(), event.getStep(), file)
                                .isNull();
                    }
                }
            }
        }
        return scalars;
    }
}
