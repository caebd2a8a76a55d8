package org.fedcomuon.federation;

import static java.util.Map.entry;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.fedcomuon.format.Dtype;
import org.fedcomuon.format.SafetensorsFile;
import org.fedcomuon.format.SafetensorsWriter;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CheckpointStoreTest {
    private static final List<SafetensorsWriter.Tensor> TENSORS =
            List.of(SafetensorsWriter.Tensor.of("w", Dtype.F32, 2), SafetensorsWriter.Tensor.of("step", Dtype.I64));

    @TempDir
    Path temporary;

    private Path directory;
    private CheckpointStore store;

    @BeforeEach
    void newStore() {
        directory = temporary.resolve("run").resolve("checkpoints");
        store = new CheckpointStore(directory);
    }

    @Test
    void aCheckpointComesBack() throws IOException {
        Path file = save(7);
        assertThat(file).isEqualTo(directory.resolve("checkpoint-0000000007.safetensors"));
        assertThat(store.directory()).isEqualTo(directory);
        assertThat(store.newest()).contains(file);
        for (SafetensorsFile checkpoint : List.of(store.open(file), store.openNewest())) {
            try (checkpoint) {
                assertThat(checkpoint.path()).isEqualTo(file);
                assertThat(checkpoint.metadata().entrySet())
                        .startsWith(entry("format", "fedcomuon-checkpoint"), entry("version", "1"), entry("lr", "0.1"));
                assertThat(checkpoint.floats("w")).containsExactly(7, -7);
                assertThat(checkpoint.longs("step")).containsExactly(7);
            }
        }
    }

    @Test
    void theNewestTwoAreKept() throws IOException {
        save(1);
        assertThat(names()).containsExactly("checkpoint-0000000001.safetensors");
        save(20);
        assertThat(names()).hasSize(2);
        save(300);
        assertThat(names()).containsExactly("checkpoint-0000000020.safetensors", "checkpoint-0000000300.safetensors");
        assertThat(store.all()).containsExactly(path(20), path(300));
        save(300);
        assertThat(store.all()).containsExactly(path(20), path(300));
    }

    @Test
    void theOrderIsThatOfTheSteps() {
        long large = 10_000_000_000L;
        save(9_999_999_999L);
        save(large);
        assertThat(store.all()).containsExactly(path(9_999_999_999L), path(large));
        save(large * 10 + 1);
        assertThat(store.all()).containsExactly(path(large), path(large * 10 + 1));
        save(999_999_999_999_999_999L);
        assertThat(store.newest()).contains(path(999_999_999_999_999_999L));
    }

    /** A clock that was wrong, or set back, says nothing about what is newest. */
    @Test
    void theTimesOfFilesDoNotMatter() throws IOException {
        save(10);
        save(20);
        Files.setLastModifiedTime(path(10), FileTime.from(Instant.parse("2099-12-31T23:59:59Z")));
        Files.setLastModifiedTime(path(20), FileTime.from(Instant.EPOCH));
        assertThat(store.newest()).contains(path(20));
        try (SafetensorsFile newest = store.openNewest()) {
            assertThat(newest.path()).isEqualTo(path(20));
        }
        save(30);
        assertThat(store.all()).containsExactly(path(20), path(30));
    }

    /** A run that is resumed from an earlier step must not lose its next checkpoint. */
    @Test
    void laterStepsAreLeftAlone() {
        save(100);
        save(200);
        save(30);
        save(40);
        save(50);
        assertThat(store.all()).containsExactly(path(40), path(50), path(100), path(200));
        save(150);
        assertThat(store.all()).containsExactly(path(100), path(150), path(200));
        save(200);
        assertThat(store.all()).containsExactly(path(150), path(200));
    }

    @Test
    void otherFilesAreNoCheckpoints() throws IOException {
        save(5);
        for (String other : List.of(
                "checkpoint-5.safetensors",
                "checkpoint-00000000050.safetensors",
                "checkpoint-0000000050.safetensors.bak",
                "checkpoint-9999999999999999999.safetensors",
                "Checkpoint-0000000050.safetensors",
                "notes.txt")) {
            Files.createFile(directory.resolve(other));
        }
        Files.createDirectory(directory.resolve("checkpoint-0000000099.safetensors"));
        assertThat(store.all()).containsExactly(path(5));
        save(6);
        save(7);
        assertThat(names()).hasSize(9);
    }

    @Test
    void nothingIsThereBeforeItIsCommitted() {
        save(1);
        try (CheckpointStore.Pending pending = store.begin(2, Map.of(), TENSORS)) {
            fill(pending, 2);
            assertThat(store.all()).containsExactly(path(1));
        }
        assertThat(store.all()).containsExactly(path(1));
        try (CheckpointStore.Pending pending = store.begin(2, Map.of(), TENSORS)) {
            assertThatThrownBy(pending::commit)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("'w'");
        }
        assertThat(store.all()).containsExactly(path(1));
    }

    @Test
    void whatACrashLeftIsDeletedButNothingThatIsBeingWritten() throws IOException {
        Files.createDirectories(directory);
        Path crashed = directory.resolve(".checkpoint-0000000004.safetensors.00ff00ff00ff00ff.safetensors-part");
        Path foreign = directory.resolve(".model.safetensors.00ff00ff00ff00ff.safetensors-part");
        Files.createFile(crashed);
        Files.createFile(foreign);
        try (CheckpointStore.Pending first = store.begin(5, Map.of(), TENSORS)) {
            assertThat(crashed).doesNotExist();
            fill(first, 5);
            Files.createFile(crashed);
            new CheckpointStore(directory.toRealPath())
                    .begin(6, Map.of(), TENSORS)
                    .close();
            assertThat(crashed).doesNotExist();
            try (CheckpointStore.Pending second = store.begin(7, Map.of(), TENSORS)) {
                fill(second, 7);
                Files.createFile(crashed);
                second.commit();
                assertThat(crashed).doesNotExist();
            }
            first.commit();
        }
        assertThat(names())
                .containsExactly(
                        "" + foreign.getFileName(),
                        "checkpoint-0000000005.safetensors",
                        "checkpoint-0000000007.safetensors");
        for (Path whole : store.all()) {
            store.open(whole).close();
        }
    }

    @Test
    void aDamagedCheckpointOffersTheOneBefore() throws IOException {
        Path older = save(1);
        Path newest = save(2);
        byte[] bytes = Files.readAllBytes(newest);
        for (int at = 0; at < bytes.length; at++) {
            byte[] damaged = bytes.clone();
            damaged[at] ^= 4;
            Files.write(newest, damaged);
            assertOffered(refusal(newest), "damaged: " + newest + ": ", older);
        }
        for (int length = 0; length < bytes.length; length += 7) {
            Files.write(newest, Arrays.copyOf(bytes, length));
            assertOffered(refusal(newest), "damaged: " + newest + ": ", older);
        }
        Files.delete(newest);
        assertOffered(refusal(newest), "unreadable: " + newest + ": no such file", older);
    }

    @Test
    void onlyAWholeOneIsOffered() throws IOException {
        Path oldest = save(1);
        Path older = save(2);
        byte[] kept = Files.readAllBytes(oldest);
        Path newest = save(3);
        flip(newest);
        flip(older);
        assertThat(refusal(newest).previous()).isEmpty();
        assertThat(refusal(newest)).hasMessageNotContaining("before it");
        assertThat(catchThrowableOfType(CheckpointException.class, store::openNewest))
                .hasMessageStartingWith("damaged: " + newest + ": the checksum is wrong");
        Files.write(oldest, kept);
        assertOffered(refusal(newest), "damaged: ", oldest);
        flip(older); // back again: of two whole ones, the newer
        assertOffered(refusal(newest), "damaged: ", older);
        flip(older);
        // What comes later is no way back.
        Files.write(path(4), kept);
        Files.delete(oldest);
        assertThat(refusal(newest).previous()).isEmpty();
    }

    @Test
    void foreignFilesAreRefused() throws IOException {
        Path older = save(1);
        Path foreign = path(2);
        write(foreign, Map.of());
        assertOffered(
                refusal(foreign),
                "foreign: " + foreign + ": the metadata has no 'format'; right would be 'fedcomuon-checkpoint'",
                older);
        write(foreign, Map.of("format", "pt" + '\n' + "x".repeat(1000)));
        assertOffered(refusal(foreign), "foreign: " + foreign + ": the metadata 'format' is 'pt\\u000ax", older);
        write(foreign, Map.of("format", "fedcomuon-checkpoint"));
        assertOffered(refusal(foreign), "foreign: " + foreign + ": the metadata has no 'version'", older);
        write(foreign, Map.of("format", "fedcomuon-checkpoint", "version", "2"));
        assertOffered(
                refusal(foreign), "foreign: " + foreign + ": the metadata 'version' is '2'; right would be '1'", older);
        // Of another program, without a checksum.
        Files.write(foreign, "\2\0\0\0\0\0\0\0{}".getBytes(StandardCharsets.US_ASCII));
        assertOffered(refusal(foreign), "foreign: " + foreign + ": the metadata has no 'format'", older);
        // Ours by its own words, but without the checksum that we write always.
        String header = "{\"__metadata__\":{\"format\":\"fedcomuon-checkpoint\",\"version\":\"1\"}}";
        Files.writeString(foreign, (char) header.length() + "\0\0\0\0\0\0\0" + header);
        assertOffered(refusal(foreign), "damaged: " + foreign + ": no checksum", older);
        // By its name, nothing comes before this one.
        Path elsewhere = directory.resolve("model.safetensors");
        write(elsewhere, Map.of());
        assertThat(refusal(elsewhere).previous()).isEmpty();
        assertThat(refusal(elsewhere)).hasMessageStartingWith("foreign: " + elsewhere);
    }

    @Test
    void aCheckpointMayBeElsewhereAndUnderAnotherName() throws IOException {
        Path moved = Files.move(save(1), temporary.resolve("best.safetensors"));
        try (SafetensorsFile checkpoint = store.open(moved)) {
            assertThat(checkpoint.longs("step")).containsExactly(1);
        }
    }

    @Test
    void whereThereAreNoCheckpointsIsSaid() throws IOException {
        assertThat(store.all()).isEmpty();
        assertThat(store.newest()).isEmpty();
        assertThatThrownBy(store::openNewest)
                .isInstanceOf(CheckpointException.class)
                .hasMessage(directory + " does not exist; name a directory that holds checkpoints");
        Files.createDirectories(directory);
        assertThat(store.newest()).isEmpty();
        assertThatThrownBy(store::openNewest)
                .isInstanceOf(CheckpointException.class)
                .hasMessageStartingWith(directory + " holds no checkpoint");
        assertThat(refusal(directory)).hasMessageContaining(directory + " is a directory");
        assertThat(refusal(path(3))).hasMessage("unreadable: " + path(3) + ": no such file");
        var inFile = new CheckpointStore(Files.createFile(directory.resolve("plain")));
        assertThatThrownBy(inFile::openNewest)
                .isInstanceOf(CheckpointException.class)
                .hasMessage(inFile.directory() + " cannot be read: there is a file of this name");
    }

    @Test
    void whereNothingCanBeWrittenIsSaidInOneLine() throws IOException {
        Path plain = Files.createFile(temporary.resolve("plain"));
        var inFile = new CheckpointStore(plain);
        assertThatThrownBy(() -> inFile.begin(1, Map.of(), TENSORS))
                .isInstanceOf(CheckpointException.class)
                .hasMessage(
                        "no checkpoint can be written: the directory %s cannot be made: there is a file of this name"
                                .formatted(plain));
        var belowFile = new CheckpointStore(plain.resolve("two\nlines"));
        assertThatThrownBy(() -> belowFile.begin(1, Map.of(), TENSORS))
                .isInstanceOf(CheckpointException.class)
                .hasMessageStartingWith("no checkpoint can be written: the directory " + plain)
                .hasMessageEndingWith("two\\u000alines cannot be made: Not a directory");
        Files.createDirectories(path(2).resolve("in the way"));
        assertThatThrownBy(() -> store.begin(2, Map.of(), TENSORS))
                .isInstanceOf(CheckpointException.class)
                .hasMessageStartingWith("no checkpoint can be written: %s is a directory".formatted(path(2)));
        CheckpointStore.Pending pending = store.begin(3, Map.of(), TENSORS);
        fill(pending, 3);
        Files.createDirectories(path(3).resolve("in the way"));
        assertThatThrownBy(pending::commit)
                .isInstanceOf(CheckpointException.class)
                .hasMessageStartingWith("no checkpoint can be written: %s: ".formatted(path(3)));
        pending.close();
    }

    @Test
    void aLockedDirectoryIsNamedInOneLine() throws IOException {
        Files.createDirectories(directory);
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("r-xr-xr-x"));
        assumeFalse(Files.isWritable(directory), "root writes everywhere");
        assertThatThrownBy(() -> store.begin(1, Map.of(), TENSORS))
                .isInstanceOf(CheckpointException.class)
                .hasMessage("no checkpoint can be written: %s: permission denied".formatted(path(1)));
    }

    @Test
    void impossibleCheckpointsAreRefused() {
        for (long step : new long[] {-1, Long.MIN_VALUE, 1_000_000_000_000_000_000L}) {
            assertThatThrownBy(() -> store.begin(step, Map.of(), TENSORS))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("step " + step);
        }
        for (String key : List.of("format", "version", "sha256")) {
            assertThatThrownBy(() -> store.begin(1, Map.of(key, ""), TENSORS))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("'" + key + "'");
        }
    }

    @Test
    void whatIsRefusedIsClosed() throws IOException {
        Path open = Path.of("/proc/self/fd");
        assumeTrue(Files.isDirectory(open), "no list of open files here");
        save(1);
        Path damaged = save(2);
        flip(damaged);
        Path foreign = path(3);
        write(foreign, Map.of());
        refusal(damaged);
        long before = count(open);
        for (int i = 0; i < 100; i++) {
            refusal(damaged);
            refusal(foreign);
        }
        assertThat(count(open)).isLessThan(before + 50);
    }

    // ---- helpers

    private Path save(long step) {
        try (CheckpointStore.Pending pending = store.begin(step, Map.of("lr", "0.1"), TENSORS)) {
            fill(pending, step);
            return pending.commit();
        }
    }

    private static void fill(CheckpointStore.Pending pending, long step) {
        pending.write("step", 0, MemorySegment.ofArray(new long[] {step}));
        pending.write("w", 0, MemorySegment.ofArray(new float[] {step}));
        pending.write("w", 4, MemorySegment.ofArray(new float[] {-step}));
    }

    private static void write(Path file, Map<String, String> metadata) throws IOException {
        try (SafetensorsWriter writer = SafetensorsWriter.create(file, metadata, List.of())) {
            writer.commit();
        }
    }

    private static void flip(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        bytes[bytes.length - 1] ^= 1;
        Files.write(file, bytes);
    }

    private Path path(long step) {
        return directory.resolve("checkpoint-%010d.safetensors".formatted(step));
    }

    private CheckpointException refusal(Path file) {
        return catchThrowableOfType(
                CheckpointException.class, () -> store.open(file).close());
    }

    private static void assertOffered(CheckpointException refusal, String start, Path offered) {
        assertThat(refusal).isNotNull();
        assertThat(refusal.getMessage())
                .startsWith(start)
                .endsWith("; the one before it is whole: " + offered)
                .doesNotContainPattern("\\R");
        assertThat(refusal.previous()).isEqualTo(Optional.of(offered));
    }

    private List<String> names() throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    private static long count(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.count();
        }
    }
}
