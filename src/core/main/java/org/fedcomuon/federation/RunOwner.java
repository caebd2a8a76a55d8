package org.fedcomuon.federation;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.fedcomuon.file.MalformedFileException;
import tools.jackson.core.JacksonException;
import tools.jackson.core.type.TypeReference;
import tools.jackson.databind.json.JsonMapper;

/**
 * The process that holds the {@link RunLock} of a directory, as its file says it. Immutable.
 *
 * @param host its name, for people: containers and hosts may have equal names
 * @param boot the identifier of the boot of its kernel; empty if unknown
 * @param processes its namespace of processes, in which its number has a meaning; empty if unknown
 * @param pid its number there
 * @param started when it was started, in ticks of the kernel since the boot, because numbers are used again; 0 if
 *     unknown
 * @param since when it took the lock, for people: clocks of hosts are never compared
 * @param id of the lock, which no other lock has
 */
record RunOwner(String host, String boot, String processes, long pid, long started, Instant since, String id) {
    private static final JsonMapper JSON = JsonMapper.shared();
    private static final TypeReference<Map<String, Object>> VALUES = new TypeReference<>() {};
    private static final DateTimeFormatter MINUTES = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm", Locale.ROOT);
    private static final Path PROC = Path.of("/proc");

    /** The fields of /proc/PID/stat after the name of the program, which may contain anything. */
    private static final int STATE = 0;

    private static final int START_TIME = 19;

    /** Returns this process, with a new identifier. */
    static RunOwner current() {
        long pid = ProcessHandle.current().pid();
        return new RunOwner(
                line(PROC.resolve("sys/kernel/hostname")).orElse("this host"), // asks no name server
                line(PROC.resolve("sys/kernel/random/boot_id")).orElse(""),
                namespace(),
                pid,
                stat(pid).map(fields -> Long.parseLong(fields[START_TIME])).orElse(0L),
                Instant.now(),
                UUID.randomUUID().toString());
    }

    /** Reads what {@link #text} has written; empty for anything else. */
    static Optional<RunOwner> of(String text) {
        try {
            Map<String, Object> values = JSON.readValue(text, VALUES);
            return Optional.of(new RunOwner(
                    MalformedFileException.oneLine(String.valueOf(values.get("host"))),
                    String.valueOf(values.get("boot")),
                    String.valueOf(values.get("processes")),
                    number(values.get("pid")),
                    number(values.get("started")),
                    Instant.parse(String.valueOf(values.get("since"))),
                    String.valueOf(values.get("id"))));
        } catch (JacksonException | DateTimeParseException | NumberFormatException e) {
            return Optional.empty();
        }
    }

    private static long number(Object value) {
        return Long.parseLong(String.valueOf(value));
    }

    /** Returns the content of the file at a beat. Its length does not depend on the beat. */
    String text(long beat) {
        var values = new LinkedHashMap<String, Object>();
        values.put("host", host);
        values.put("pid", pid);
        values.put("since", since.toString());
        values.put("boot", boot);
        values.put("processes", processes);
        values.put("started", started);
        values.put("id", id);
        values.put("beat", "%019d".formatted(beat));
        return JSON.writeValueAsString(values) + '\n';
    }

    /** Returns whether its number means a process that this one can see. */
    boolean isHere(RunOwner me) {
        return !boot.isEmpty() && boot.equals(me.boot) && !processes.isEmpty() && processes.equals(me.processes);
    }

    /** Returns whether the process runs still. Has a meaning only where it {@link #isHere}. */
    boolean isAlive() {
        Optional<String[]> fields = stat(pid);
        if (fields.isEmpty()) {
            return ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false);
        }
        String state = fields.get()[STATE];
        // A killed process whose parent has not asked for its end yet has closed its files.
        return !state.equals("Z") && !state.equals("X") && Long.parseLong(fields.get()[START_TIME]) == started;
    }

    private static Optional<String[]> stat(long pid) {
        return line(PROC.resolve(Long.toString(pid)).resolve("stat"))
                .map(text -> text.substring(text.lastIndexOf(')') + 1).strip().split(" "))
                .filter(fields -> fields.length > START_TIME);
    }

    private static String namespace() {
        try {
            return Files.readSymbolicLink(PROC.resolve("self/ns/pid")).toString();
        } catch (IOException e) {
            return "";
        }
    }

    private static Optional<String> line(Path file) {
        try {
            return Files.readString(file, StandardCharsets.ISO_8859_1).lines().findFirst();
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    /** Returns {@code process 1234 on HOST}. */
    String who() {
        return "process %d on %s".formatted(pid, host);
    }

    /** Returns {@code process 1234 on HOST since 2026-11-19 10:11}. */
    @Override
    public String toString() {
        return "%s since %s".formatted(who(), MINUTES.format(since.atZone(ZoneId.systemDefault())));
    }
}
