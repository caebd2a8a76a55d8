package org.fedcomuon.format;

import static java.util.Map.entry;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.assertj.core.api.AbstractThrowableAssert;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Files built byte by byte after the description of the format, what the writer makes, and everything else. */
class SafetensorsTest {
    private static final long SEED = Long.getLong("tests.seed", 25_07_2026L);
    private static final int MUTATIONS = Soak.mutations(2_000);

    private static final String SIX_FLOATS = "{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}";
    private static final String HEADER = "{\"w\":" + SIX_FLOATS + "}";
    private static final byte[] SIX = floats(1, 2, 3, 4, 5, 6);
    private static final String ZEROS = "0".repeat(64);

    @TempDir
    Path directory;

    // ---- what is read

    @Test
    void everythingInAFileIsRead() throws IOException {
        String header = """
                {"a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
                 "__metadata__": {"z": "1", "a": "zwei \\u00e9\\n"},
                 "b/c.d": {"shape": [], "data_offsets": [8, 16], "dtype": "I64"}}  \t\r
                """;
        byte[] data = concat(floats(1.5f, -0.0f), longs(Long.MIN_VALUE));
        try (SafetensorsFile file = SafetensorsFile.open(file(raw(header, data)))) {
            assertThat(file.path()).isEqualTo(directory.resolve("file.safetensors"));
            assertThat(file.metadata()).containsExactly(entry("z", "1"), entry("a", "zwei \u00e9\n"));
            assertThat(file.tensors())
                    .containsExactly(
                            entry("a", new SafetensorsFile.Tensor("a", Dtype.F32, List.of(2L, 1L), 0, 8)),
                            entry("b/c.d", new SafetensorsFile.Tensor("b/c.d", Dtype.I64, List.of(), 8, 8)));
            assertThat(file.floats("a")).containsExactly(1.5f, -0.0f);
            assertThat(file.longs("b/c.d")).containsExactly(Long.MIN_VALUE);
            assertThat(file.hasChecksum()).isFalse();
            assertThatThrownBy(() -> file.tensors().clear()).isInstanceOf(UnsupportedOperationException.class);
            assertThatThrownBy(() -> file.metadata().clear()).isInstanceOf(UnsupportedOperationException.class);
        }
    }

    @Test
    void aFileWithoutTensorsIsRead() throws IOException {
        try (SafetensorsFile file = SafetensorsFile.open(file(raw("{}", new byte[0])))) {
            assertThat(file.tensors()).isEmpty();
            assertThat(file.metadata()).isEmpty();
        }
    }

    @Test
    void tensorsComeInTheOrderOfTheirData() throws IOException {
        String header = """
                {"last": {"dtype": "U8", "shape": [3], "data_offsets": [2, 5]},
                 "none": {"dtype": "F64", "shape": [4, 0], "data_offsets": [2, 2]},
                 "end": {"dtype": "F16", "shape": [0], "data_offsets": [5, 5]},
                 "first": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}""";
        try (SafetensorsFile file = SafetensorsFile.open(file(raw(header, new byte[] {1, 2, 3, 4, 5})))) {
            assertThat(file.tensors().keySet()).containsExactly("first", "none", "last", "end");
            var last = new byte[3];
            file.read("last", 0, MemorySegment.ofArray(last));
            assertThat(last).containsExactly(3, 4, 5);
        }
    }

    @ParameterizedTest
    @CsvSource({"F32,4", "F64,8", "I64,8", "I32,4", "U8,1", "BF16,2", "F16,2"})
    void everyTypeHasItsSize(Dtype dtype, int bytes) throws IOException {
        String header = "{\"w\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%d]}}".formatted(dtype, 3 * bytes);
        try (SafetensorsFile file = SafetensorsFile.open(file(raw(header, new byte[3 * bytes])))) {
            assertThat(file.tensors())
                    .containsEntry("w", new SafetensorsFile.Tensor("w", dtype, List.of(3L), 0, 3L * bytes));
        }
        assertThat(SafetensorsWriter.Tensor.of("w", dtype, 3).bytes()).isEqualTo(3L * bytes);
    }

    @Test
    void piecesAreReadIntoAnyMemory() throws IOException {
        try (SafetensorsFile file = SafetensorsFile.open(file(raw(HEADER, SIX)));
                Arena arena = Arena.ofConfined()) {
            MemorySegment whole = arena.allocate(24);
            file.read("w", 0, whole);
            assertThat(whole.mismatch(MemorySegment.ofArray(SIX))).isEqualTo(-1);
            MemorySegment piece = arena.allocate(9).asSlice(2, 5); // at no alignment at all
            file.read("w", 3, piece);
            assertThat(piece.mismatch(MemorySegment.ofArray(SIX).asSlice(3, 5))).isEqualTo(-1);
            var last = new float[2];
            file.read("w", 16, MemorySegment.ofArray(last));
            assertThat(last).containsExactly(5, 6);
            file.read("w", 24, MemorySegment.ofArray(new byte[0]));
        }
    }

    @Test
    void readingOutsideOfATensorIsRefused() throws IOException {
        try (SafetensorsFile file = SafetensorsFile.open(file(raw(HEADER, SIX)))) {
            for (long offset : new long[] {-1, 5, 24, 25, Long.MAX_VALUE, Long.MIN_VALUE}) {
                assertThatThrownBy(() -> file.read("w", offset, MemorySegment.ofArray(new byte[20])))
                        .isInstanceOf(IndexOutOfBoundsException.class)
                        .hasMessage("20 bytes from %d on are not within the 24 bytes of tensor 'w'".formatted(offset));
            }
            assertThatThrownBy(() -> file.read("w", 0, MemorySegment.ofArray(new byte[25])))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    @Test
    void whatIsNotInTheFileIsAFaultOfTheFile() throws IOException {
        Path path = file(raw(HEADER, SIX));
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            assertOneLine(catchThrowable(() -> file.floats("v")), path, "no tensor 'v'", "'w'")
                    .isInstanceOf(MalformedFileException.class);
            assertOneLine(catchThrowable(() -> file.read("", 0, MemorySegment.NULL)), path, "no tensor ''")
                    .isInstanceOf(MalformedFileException.class);
            assertOneLine(catchThrowable(() -> file.longs("w")), path, "'w' is of F32", "right would be I64")
                    .isInstanceOf(MalformedFileException.class);
        }
    }

    @Test
    void aClosedFileIsNotRead() throws IOException {
        SafetensorsFile file = SafetensorsFile.open(write(Map.of(), six()));
        file.close();
        file.close();
        assertThatThrownBy(() -> file.floats("w"))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
        assertThatThrownBy(file::verify)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
        assertThat(file.tensors()).containsKey("w");
    }

    @Test
    void aFileThatBecomesShorterIsNoticed() throws IOException {
        Path path = write(Map.of(), six());
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
                channel.truncate(channel.size() - 1);
            }
            assertOneLine(catchThrowable(() -> file.floats("w")), path, "became shorter");
            assertOneLine(catchThrowable(file::verify), path, "became shorter");
        }
    }

    // ---- what is refused

    @Test
    void whatIsNoSafetensorsFileIsRefused() throws IOException {
        refused(new byte[0], "the file is empty");
        for (int length = 1; length < 8; length++) {
            refused(new byte[length], "truncated: the whole file is " + length + " bytes");
        }
        refused(new byte[8], "has to start with '{' but is empty");
        refused("PK\3\4 and so on".getBytes(StandardCharsets.US_ASCII), "not a safetensors file", "100000000");
        refused(raw(-1, HEADER, SIX), "first 8 bytes say 18446744073709551615", "at most 100000000");
        refused(raw(Long.MIN_VALUE, HEADER, SIX), "first 8 bytes say 9223372036854775808");
        refused(raw(100_000_001, HEADER, SIX), "first 8 bytes say 100000001");
        refused(raw(100_000_000, HEADER, SIX), "truncated header: it claims 100000000 bytes, but only 81 are there");
    }

    @Test
    void aHugeHeaderIsRefusedEvenIfItIsThere() throws IOException {
        Path path = file(raw(100_000_001, HEADER, SIX));
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(new byte[1]), 200_000_000); // sparse
        }
        assertOneLine(openFailure(path), path, "at most 100000000 can be right")
                .isInstanceOf(MalformedFileException.class);
    }

    @Test
    void headersInOtherEncodingsAreRefused() throws IOException {
        refused(raw(HEADER.getBytes(StandardCharsets.UTF_16LE), SIX), "not JSON");
        refused(raw(HEADER.getBytes(StandardCharsets.UTF_16BE), SIX), "starts with byte 0x00");
        refused(raw("\ufeff" + HEADER, SIX), "has to start with '{' but starts with byte 0xef");
        refused(raw(" " + HEADER, SIX), "has to start with '{' but starts with byte 0x20");
        refused(raw(HEADER.replace("w", "\u00e9").getBytes(StandardCharsets.ISO_8859_1), SIX), "not UTF-8");
        // A surrogate in UTF-8, and a slash of two bytes.
        refused(raw(HEADER.replace("w", "\u00ed\u00a0\u0080").getBytes(StandardCharsets.ISO_8859_1), SIX), "UTF-8");
        refused(raw(HEADER.replace("w", "\u00c0\u00af").getBytes(StandardCharsets.ISO_8859_1), SIX), "UTF-8");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{                                    | the header is not JSON",
                "{]                                   | the header is not JSON",
                "{'w': 1}                             | the header is not JSON",
                "{w: 1}                               | the header is not JSON",
                "{\"w\"}                              | the header is not JSON",
                "{\"w\" 1}                            | the header is not JSON",
                "{\"w\": }                            | the header is not JSON",
                "{\"w\": NaN}                         | the header is not JSON",
                "{\"w\": @,}                          | the header is not JSON",
                "{,}                                  | the header is not JSON",
                "{} // no comments                    | the header is not JSON",
                "{}{}                                 | after the last '}' comes more than spaces",
                "{} 1                                 | after the last '}' comes more than spaces",
                "{} }                                 | the header is not JSON",
                "{\"w\": null}                        | tensor 'w' has to be an object",
                "{\"w\": []}                          | tensor 'w' has to be an object",
                "{\"w\": {}}                          | tensor 'w' has no dtype",
                "{\"w\": {\"dtype\": \"F32\"}}        | tensor 'w' has no shape",
                "{\"w\": {\"dtype\": \"F32\", \"shape\": []}}             | tensor 'w' has no data_offsets",
                "{\"w\": {\"data_offsets\": [0, 4], \"shape\": []}}       | tensor 'w' has no dtype",
                "{\"w\": {\"dtype\": 1}}              | dtype of tensor 'w' has to be a string",
                "{\"w\": {\"dtype\": null}}           | dtype of tensor 'w' has to be a string",
                "{\"w\": {\"Dtype\": \"F32\"}}        | tensor 'w' has an unknown field 'Dtype'",
                "{\"w\": {\"x\": [[[[[[[[[[[[[[[[[[[  | tensor 'w' has an unknown field 'x'",
                "{\"w\": {\"shape\": 3}}              | shape of tensor 'w' has to be a list of integers",
                "{\"w\": {\"shape\": {}}}             | shape of tensor 'w' has to be a list of integers",
                "{\"w\": {\"shape\": [[3]]}}          | an entry in shape of tensor 'w' has to be an integer",
                "{\"w\": {\"shape\": [\"3\"]}}        | an entry in shape of tensor 'w' has to be an integer",
                "{\"w\": {\"shape\": [3.0]}}          | an entry in shape of tensor 'w' has to be an integer",
                "{\"w\": {\"shape\": [3e0]}}          | an entry in shape of tensor 'w' has to be an integer",
                "{\"w\": {\"shape\": [null]}}         | an entry in shape of tensor 'w' has to be an integer",
                "{\"w\": {\"shape\": [3,]}}           | the header is not JSON",
                "{\"w\": {\"shape\": [03]}}           | the header is not JSON",
                "{\"w\": {\"shape\": [+3]}}           | the header is not JSON",
                "{\"w\": {\"data_offsets\": 0}}       | data_offsets of tensor 'w' has to be a list of integers",
                "{\"w\": {\"dtype\": \"F32\", \"dtype\": \"F32\"}}        | dtype of tensor 'w' is there twice",
                "{\"w\": {\"shape\": [], \"\\u0073hape\": []}}            | shape of tensor 'w' is there twice",
                "{\"w\": {\"data_offsets\": [0, 4], \"data_offsets\": 1}} | data_offsets of tensor 'w' has to be",
                "{\"w\": {\"data_offsets\": [], \"data_offsets\": []}}    | data_offsets of tensor 'w' is there twice",
                "{\"__metadata__\": null}             | __metadata__ has to be an object of strings",
                "{\"__metadata__\": []}               | __metadata__ has to be an object of strings",
                "{\"__metadata__\": {\"a\": 1}}       | the metadata 'a' has to be a string",
                "{\"__metadata__\": {\"a\": null}}    | the metadata 'a' has to be a string",
                "{\"__metadata__\": {\"a\": {}}}      | the metadata 'a' has to be a string",
                "{\"__metadata__\": {\"a\": [[[[[[[[  | the metadata 'a' has to be a string",
                "{\"__metadata__\": {\"a\": \"\", \"\\u0061\": \"\"}}     | the metadata 'a' is there twice",
                "{\"__metadata__\": {}, \"__metadata__\": {}}             | the name '__metadata__' is there twice",
                "{\"__metadata__\": {\"a\": \"\\ud800\"}}                 | half a surrogate pair",
                "{\"\\udc00\\ud800\": {}}             | surrogate",
            })
    void headersThatAreNotTheRightJsonAreRefused(String header, String problem) throws IOException {
        refused(raw(header, SIX), problem, "right would be {\"w\": {\"dtype\": \"F32\"");
    }

    @Test
    void nestingHasAnEnd() throws IOException {
        refused(raw("[".repeat(1_000_000), SIX));
        refused(raw("{\"w\": {\"shape\": " + "[".repeat(1_000_000), SIX));
        refused(raw("{\"w\":".repeat(1_000_000), SIX));
    }

    @Test
    void namesThatAreThereTwiceAreRefused() throws IOException {
        String other = SIX_FLOATS.replace("[0,24]", "[24,48]");
        refused(raw("{\"w\":%s,\"w\":%s}".formatted(SIX_FLOATS, other), new byte[48]), "the name 'w' is there twice");
        refused(
                raw("{\"w\":%s,\"\\u0077\":%s}".formatted(SIX_FLOATS, other), new byte[48]),
                "the name 'w' is there twice");
    }

    @ParameterizedTest
    @ValueSource(strings = {"BOOL", "I8", "U64", "F8_E4M3", "C64", "f32", "F32 ", ""})
    void otherTypesAreRefused(String dtype) throws IOException {
        refused(
                raw(HEADER.replace("F32", dtype), SIX),
                "dtype '%s' of tensor 'w' is not supported".formatted(dtype),
                "F32, F64, I64, I32, U8, BF16, F16");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "[-1]|shape of tensor 'w' has the negative entry -1; every one is 0 or more",
                "[2, -3]|the negative entry -3",
                "[-0]|the negative entry -0",
                "[0, -9223372036854775809]|the negative entry",
                "[9223372036854775808]|shape of tensor 'w' overflows by 9223372036854775808; entries stay below 2^63",
                "[99999999999999999999999999999999999999]|overflows",
                "[4294967296, 4294967296]|overflows; the product of the dimensions has to stay below 2^63 bytes",
                "[4294967296, 4294967296, 0]|overflows",
                "[0, 4294967296, 4294967296]|overflows",
                "[2305843009213693952]|overflows", // 2^61 elements of four bytes
                "[2305843009213693951]|are 24 bytes; shape [2305843009213693951] of F32 needs 9223372036854775804",
                "[5]|data_offsets [0, 24] of tensor 'w' are 24 bytes; shape [5] of F32 needs 20",
                "[7]|are 24 bytes; shape [7] of F32 needs 28",
                "[]|are 24 bytes; shape [] of F32 needs 4",
                "[2, 0]|are 24 bytes; shape [2, 0] of F32 needs 0",
            })
    void shapesThatDoNotFitAreRefused(String shape, String problem) throws IOException {
        refused(raw(HEADER.replace("[2,3]", shape), SIX), problem);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "[]|data_offsets [] of tensor 'w' are wrong; they have to be two, the start and the end",
                "[24]|data_offsets [24] of tensor 'w' are wrong",
                "[0, 12, 24]|data_offsets [0, 12, 24] of tensor 'w' are wrong",
                "[24, 0]|data_offsets [24, 0] of tensor 'w' are wrong",
                "[-24, 0]|data_offsets of tensor 'w' has the negative entry -24",
                "[0, 18446744073709551616]|data_offsets of tensor 'w' overflows",
                "[0, 23]|are 23 bytes; shape [2, 3] of F32 needs 24",
                "[1, 25]|the data of tensor 'w' starts at 1 after a gap; it has to start at 0",
                "[9223372036854775783, 9223372036854775807]|starts at 9223372036854775783 after a gap",
            })
    void offsetsThatDoNotFitAreRefused(String offsets, String problem) throws IOException {
        refused(raw(HEADER.replace("[0,24]", offsets), SIX), problem);
    }

    @Test
    void gapsAndOverlapsAreRefused() throws IOException {
        String two = "{\"a\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]},"
                + "\"b\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}";
        refused(
                raw(two.formatted(3, 0, 3, 4, 4, 8), new byte[8]),
                "the data of tensor 'b' starts at 4 after a gap; it has to start at 3, where the one before ends");
        refused(
                raw(two.formatted(4, 4, 8, 5, 0, 5), new byte[8]),
                "the data of tensor 'a' starts at 4 and overlaps; it has to start at 5");
        refused(raw(two.formatted(4, 0, 4, 4, 0, 4), new byte[4]), "'b' starts at 0 and overlaps");
        refused(raw(two.formatted(4, 0, 4, 0, 2, 2), new byte[4]), "'b' starts at 2 and overlaps");
        refused(raw(two.formatted(4, 0, 4, 0, 5, 5), new byte[4]), "'b' starts at 5 after a gap");
    }

    @Test
    void truncatedAndTrailingDataIsRefused() throws IOException {
        refused(raw(HEADER, Arrays.copyOf(SIX, 23)), "truncated data: 23 bytes are there, the tensors need 24");
        refused(raw(HEADER, Arrays.copyOf(SIX, 25)), "1 trailing bytes", "the tensors need 24 bytes");
        refused(raw("{}", SIX), "24 trailing bytes", "the tensors need 0 bytes");
        // Would be petabytes, and nothing of that is allocated.
        refused(
                raw(HEADER.replace("[2,3]", "[1000000000000000]").replace("24", "4000000000000000"), SIX),
                "truncated data: 24 bytes are there, the tensors need 4000000000000000");
    }

    @Test
    void everyTruncationIsRefused() throws IOException {
        byte[] whole = Files.readAllBytes(write(Map.of("k", "v"), six()));
        for (int length = 0; length < whole.length; length++) {
            refused(Arrays.copyOf(whole, length), length == 0 ? "empty" : "truncated");
        }
    }

    @Test
    void messagesStayShortAndOnALine() throws IOException {
        String longName = "x\\n\\u2028\\u001b".repeat(5_000);
        for (String header : List.of(
                HEADER.replace("w", longName).replace("24", "25"),
                HEADER.replace("w", longName).replace("F32", "F8"),
                HEADER.replace("F32", longName),
                HEADER.replace("shape", longName),
                HEADER.replace("[2,3]", "[" + "1,".repeat(10_000) + "7]"),
                HEADER.replace("[0,24]", "[" + "1,".repeat(10_000) + "7]"),
                HEADER.replace("2,3", "9".repeat(900)),
                HEADER.replace("2,3", "9".repeat(10_000)),
                "{\"w\":" + "x".repeat(10_000),
                "{\"" + "x".repeat(10_000),
                "{\"__metadata__\":{\"" + longName + "\":1}}")) {
            Path path = file(raw(header, SIX));
            assertOneLine(openFailure(path), path).isExactlyInstanceOf(MalformedFileException.class);
            assertThat(openFailure(path).getMessage().length())
                    .isLessThan(path.toString().length() + 600);
        }
    }

    @Test
    void whatIsNoFileIsRefused() throws IOException {
        Path missing = directory.resolve("missing.safetensors");
        assertOneLine(openFailure(missing), missing, missing + ": no such file")
                .isInstanceOf(NoSuchFileException.class);
        assertOneLine(openFailure(directory), directory, directory + " is a directory; name a safetensors file");
        Path below = file(new byte[0]).resolve("below");
        assertOneLine(openFailure(below), below, "Not a directory");
        Path nothing = Path.of("/dev/null");
        assertOneLine(openFailure(nothing), nothing, nothing + " is not a regular file");
    }

    @Test
    void unreadableFilesAreRefused() throws IOException {
        Path path = file(raw(HEADER, SIX));
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("---------"));
        assumeFalse(Files.isReadable(path), "root reads everything");
        assertOneLine(openFailure(path), path, path + ": permission denied").isInstanceOf(AccessDeniedException.class);
    }

    // ---- the checksum

    @Test
    void everyFlipIsNoticed() throws IOException {
        byte[] whole = Files.readAllBytes(write(Map.of("k", "v"), six()));
        for (int at = 0; at < whole.length; at++) {
            for (int change : new int[] {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
                byte[] bytes = whole.clone();
                bytes[at] ^= (byte) change;
                Path path = file(bytes);
                assertOneLine(verifyFailure(path), path)
                        .as("%d on byte %d", change, at)
                        .isExactlyInstanceOf(MalformedFileException.class);
            }
        }
    }

    @Test
    void aFileWithoutAChecksumIsReadButNotVerified() throws IOException {
        Path path = file(raw(HEADER, SIX));
        assertOneLine(verifyFailure(path), path, "no checksum: the metadata has no 'sha256'")
                .isExactlyInstanceOf(MalformedFileException.class);
        for (String digits : List.of(
                "", "abc", ZEROS + "0", "A".repeat(64), "g".repeat(64), "\\u0030" + ZEROS.substring(1), "0x" + ZEROS)) {
            path = file(raw("{\"__metadata__\":{\"sha256\":\"%s\"}}".formatted(digits), new byte[0]));
            assertOneLine(verifyFailure(path), path, "no checksum: the metadata 'sha256' is", "64 small hexadecimal")
                    .isExactlyInstanceOf(MalformedFileException.class);
        }
    }

    @Test
    void aWrongChecksumIsNamed() throws IOException {
        Path path = file(raw("{\"__metadata__\":{\"sha256\":\"%s\"}}".formatted(ZEROS), new byte[0]));
        String right = sha256(Files.readAllBytes(path));
        assertOneLine(verifyFailure(path), path, "the checksum is wrong", "is " + right, "right would be " + ZEROS)
                .isExactlyInstanceOf(MalformedFileException.class);
    }

    @Test
    void theChecksumIsFoundBehindWhatLooksLikeIt() throws IOException {
        String decoys = "\"x\\\"sha256\" : \"%s\" , \"y\":\"\\\"sha256\\\":\\\"%s\", \"\u00e9\ud83d\ude00\" : \"\""
                .formatted(ZEROS, ZEROS);
        String header = "{\"sha256\":{\"dtype\":\"U8\",\"shape\":[64],\"data_offsets\":[0,64]}, \"__metadata__\" : "
                + "{ " + decoys + " , \"\\u0073ha256\" : \n\"%s\"}}";
        byte[] data = ZEROS.getBytes(StandardCharsets.US_ASCII);
        String right = sha256(raw(header.formatted(ZEROS), data));
        try (SafetensorsFile file = SafetensorsFile.open(file(raw(header.formatted(right), data)))) {
            assertThat(file.hasChecksum()).isTrue();
            file.verify();
        }
    }

    @Test
    void theChecksumIsFoundAcrossChunks() throws IOException {
        int chunk = 1 << 20;
        int before = new String(Files.readAllBytes(write(Map.of("p", ""), List.of())), StandardCharsets.UTF_8)
                        .indexOf("\"sha256\":\"")
                + 10;
        for (int digitsInFirst : new int[] {0, 1, 31, 63, 64}) {
            Path path = write(Map.of("p", "x".repeat(chunk - before - digitsInFirst)), six());
            byte[] bytes = Files.readAllBytes(path);
            String digits = new String(bytes, chunk - digitsInFirst, 64, StandardCharsets.US_ASCII);
            Arrays.fill(bytes, chunk - digitsInFirst, chunk - digitsInFirst + 64, (byte) '0');
            assertThat(digits).isEqualTo(sha256(bytes));
            try (SafetensorsFile file = SafetensorsFile.open(path)) {
                file.verify();
            }
        }
    }

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() throws IOException {
        var random = new Random(SEED);
        byte[] sealed = Files.readAllBytes(write(
                Map.of("step", "7", "caf\u00e9", "\u2603"),
                List.of(
                        SafetensorsWriter.Tensor.of("w", Dtype.F32, 2, 3),
                        SafetensorsWriter.Tensor.of("counter", Dtype.I64),
                        SafetensorsWriter.Tensor.of("none", Dtype.U8, 0, 5))));
        List<byte[]> originals = List.of(sealed, raw(HEADER, SIX));
        try (var mutations = new Mutations("safetensors", SEED, MalformedFileException.class)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] bytes = mutate(originals.get(random.nextInt(originals.size())), random);
                Path path = file(bytes);
                boolean read = mutations.feed(bytes, "" + path, () -> {
                    try (SafetensorsFile file = SafetensorsFile.open(path)) {
                        long total = 0;
                        for (SafetensorsFile.Tensor tensor : file.tensors().values()) {
                            file.read(tensor.name(), 0, MemorySegment.ofArray(new byte[(int) tensor.bytes()]));
                            total += tensor.bytes();
                        }
                        return assertThat(total).isLessThan(bytes.length);
                    }
                });
                assertThat(read && isWhole(path)).isEqualTo(Arrays.equals(bytes, sealed));
            }
            mutations.end(0.01, 0.5);
        }
    }

    private static boolean isWhole(Path path) throws IOException {
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            file.verify();
            return true;
        } catch (MalformedFileException e) {
            assertOneLine(e, path);
            return false;
        }
    }

    private static byte[] mutate(byte[] original, Random random) {
        byte[] bytes = original.clone();
        String alphabet = "{}[]\":,-.0123456789eFIUshapedtyp_ \n\\\0\u0093\u00ff";
        for (int changes = 1 + random.nextInt(3) * random.nextInt(2); changes > 0; changes--) {
            int at = random.nextInt(Math.max(bytes.length, 1));
            char c = alphabet.charAt(random.nextInt(alphabet.length()));
            switch (random.nextInt(7)) {
                case 0 -> bytes = Arrays.copyOf(bytes, at);
                case 1 -> bytes = Arrays.copyOf(bytes, bytes.length + random.nextInt(20));
                case 2 -> bytes = splice(bytes, at, 0, new byte[] {(byte) random.nextInt(256)});
                case 3 -> bytes = splice(bytes, at, 1 + random.nextInt(4), new byte[0]);
                case 4 -> bytes = splice(bytes, at, 1, new byte[] {(byte) c});
                case 5 -> bytes = splice(bytes, Math.min(random.nextInt(8), bytes.length), 1, new byte[] {(byte) c});
                default -> {
                    if (bytes.length > 0) {
                        bytes[at] ^= (byte) (1 << random.nextInt(8));
                    }
                }
            }
        }
        return bytes;
    }

    private static byte[] splice(byte[] bytes, int at, int removed, byte[] inserted) {
        int rest = Math.min(at + removed, bytes.length);
        return concat(Arrays.copyOf(bytes, at), inserted, Arrays.copyOfRange(bytes, rest, bytes.length));
    }

    // ---- what is written

    @Test
    void writesTheBytesThatTheFormatDescribes() throws IOException {
        Path path = directory.resolve("file.safetensors");
        var metadata = new LinkedHashMap<String, String>();
        metadata.put("z", "\"1\"");
        metadata.put("a", "\u00e9");
        List<SafetensorsWriter.Tensor> tensors = List.of(
                SafetensorsWriter.Tensor.of("\u03b1", Dtype.F32, 2, 3),
                SafetensorsWriter.Tensor.of("none", Dtype.U8, 3, 0),
                SafetensorsWriter.Tensor.of("n", Dtype.I64));
        try (SafetensorsWriter writer = SafetensorsWriter.create(path, metadata, tensors)) {
            assertThat(writer.target()).isEqualTo(path);
            writer.write("n", 0, MemorySegment.ofArray(new long[] {-2}));
            writer.write("\u03b1", 0, MemorySegment.ofArray(SIX));
            writer.commit();
        }
        String header = "{\"__metadata__\":{\"z\":\"\\\"1\\\"\",\"a\":\"\u00e9\",\"sha256\":\"" + ZEROS + "\"},"
                + "\"\u03b1\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                + "\"none\":{\"dtype\":\"U8\",\"shape\":[3,0],\"data_offsets\":[24,24]},"
                + "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[24,32]}}";
        while (header.getBytes(StandardCharsets.UTF_8).length % 8 != 0) {
            header += " ";
        }
        String seal = sha256(raw(header, concat(SIX, longs(-2))));
        assertThat(Files.readAllBytes(path)).isEqualTo(raw(header.replace(ZEROS, seal), concat(SIX, longs(-2))));
    }

    @Test
    void theDataIsAlwaysAligned() throws IOException {
        for (int length = 0; length < 17; length++) {
            byte[] bytes = Files.readAllBytes(write(Map.of("k", "v".repeat(length)), six()));
            assertThat((bytes.length - SIX.length) % 8).isZero();
            assertThat(ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong())
                    .isEqualTo(bytes.length - SIX.length - 8);
        }
    }

    @Test
    void whatIsWrittenIsReadAgain() throws IOException {
        List<String> names =
                List.of("w", "", " ", "\u4f60\u597d", "\ud83d\ude00", "a\n\t\0\"\\/b", "sha256", "x".repeat(99_999));
        List<Dtype> types = List.of(Dtype.values());
        List<SafetensorsWriter.Tensor> tensors = IntStream.range(0, names.size())
                .mapToObj(i -> SafetensorsWriter.Tensor.of(names.get(i), types.get(i % types.size()), i, 3))
                .toList();
        Path path = write(Map.of("\ud83d\ude00\0", "a\n\u2028b"), tensors);
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            file.verify();
            assertThat(file.metadata())
                    .containsEntry("\ud83d\ude00\0", "a\n\u2028b")
                    .containsOnlyKeys("\ud83d\ude00\0", "sha256");
            assertThat(file.tensors().keySet()).containsExactlyElementsOf(names);
            for (SafetensorsWriter.Tensor spec : tensors) {
                SafetensorsFile.Tensor tensor = file.tensors().get(spec.name());
                assertThat(tensor.dtype()).isEqualTo(spec.dtype());
                assertThat(tensor.shape()).isEqualTo(spec.shape());
                var bytes = new byte[(int) tensor.bytes()];
                file.read(spec.name(), 0, MemorySegment.ofArray(bytes));
                assertThat(bytes).isEqualTo(contents(spec));
            }
        }
    }

    @Test
    void tensorsOfManyChunksComeFromAnyMemory() throws IOException {
        Path path = directory.resolve("file.safetensors");
        var values = new int[1_000_003]; // a bit less than four chunks
        Arrays.setAll(values, i -> i * 0x9e3779b9);
        long bytes = 4L * values.length;
        try (Arena arena = Arena.ofConfined();
                SafetensorsWriter writer = SafetensorsWriter.create(
                        path,
                        Map.of(),
                        List.of(
                                SafetensorsWriter.Tensor.of("heap", Dtype.I32, values.length),
                                SafetensorsWriter.Tensor.of("native", Dtype.I32, values.length)))) {
            MemorySegment heap = MemorySegment.ofArray(values);
            writer.write("heap", 0, heap);
            writer.write("native", 0, arena.allocate(bytes).copyFrom(heap));
            writer.commit();
            try (SafetensorsFile file = SafetensorsFile.open(path)) {
                file.verify();
                var back = new int[values.length];
                file.read("native", 0, MemorySegment.ofArray(back));
                assertThat(back).isEqualTo(values);
                MemorySegment segment = arena.allocate(bytes);
                file.read("heap", 0, segment);
                assertThat(segment.mismatch(heap)).isEqualTo(-1);
            }
        }
    }

    @Test
    @Timeout(120)
    void severalThreadsWriteAtOnce() throws Exception {
        Path path = directory.resolve("file.safetensors");
        int piece = 40_004; // of no alignment
        int pieces = 50;
        List<SafetensorsWriter.Tensor> tensors = List.of(
                SafetensorsWriter.Tensor.of("a", Dtype.U8, piece, pieces),
                SafetensorsWriter.Tensor.of("b", Dtype.U8, pieces, piece));
        try (SafetensorsWriter writer = SafetensorsWriter.create(path, Map.of(), tensors);
                var threads = Executors.newFixedThreadPool(4)) {
            List<Callable<Void>> tasks = IntStream.range(0, pieces)
                    .boxed()
                    .flatMap(i -> tensors.stream().<Callable<Void>>map(tensor -> () -> {
                        long at = (long) i * piece;
                        byte[] part = Arrays.copyOfRange(contents(tensor), (int) at, (int) at + piece);
                        writer.write(tensor.name(), at, MemorySegment.ofArray(part));
                        return null;
                    }))
                    .toList();
            for (Future<Void> done : threads.invokeAll(tasks)) {
                done.get();
            }
            writer.commit();
        }
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            file.verify();
            for (SafetensorsWriter.Tensor tensor : tensors) {
                var bytes = new byte[piece * pieces];
                file.read(tensor.name(), 0, MemorySegment.ofArray(bytes));
                assertThat(bytes).isEqualTo(contents(tensor));
            }
        }
    }

    @Test
    void nothingIsVisibleBeforeItIsWhole() throws IOException {
        Path path = file(new byte[] {1, 2, 3});
        try (SafetensorsWriter writer = SafetensorsWriter.create(path, Map.of(), six())) {
            writer.write("w", 0, MemorySegment.ofArray(SIX));
            assertThat(path).hasBinaryContent(new byte[] {1, 2, 3});
            assertThat(names()).hasSize(2);
        }
        assertThat(path).hasBinaryContent(new byte[] {1, 2, 3});
        assertThat(names()).containsExactly("file.safetensors");
        try (SafetensorsWriter writer = SafetensorsWriter.create(path, Map.of(), six())) {
            writer.write("w", 0, MemorySegment.ofArray(SIX));
            writer.commit();
        }
        assertThat(names()).containsExactly("file.safetensors");
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            assertThat(file.floats("w")).containsExactly(1, 2, 3, 4, 5, 6);
        }
        Path plain = Files.createFile(directory.resolve("plain"));
        assertThat(Files.getPosixFilePermissions(path)).isEqualTo(Files.getPosixFilePermissions(plain));
    }

    @Test
    void aFinishedWriterIsOfNoUse() throws IOException {
        SafetensorsWriter committed = SafetensorsWriter.create(directory.resolve("a"), Map.of(), List.of());
        committed.commit();
        SafetensorsWriter closed = SafetensorsWriter.create(directory.resolve("b"), Map.of(), six());
        closed.close();
        SafetensorsWriter both = SafetensorsWriter.create(directory.resolve("c"), Map.of(), six());
        both.write("w", 0, MemorySegment.ofArray(SIX));
        both.commit();
        both.close();
        both.close();
        for (SafetensorsWriter writer : List.of(committed, closed, both)) {
            assertThatThrownBy(writer::commit)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("committed or closed");
        }
        for (SafetensorsWriter writer : List.of(closed, both)) {
            assertThatThrownBy(() -> writer.write("w", 0, MemorySegment.ofArray(SIX)))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("committed or closed");
        }
        assertThat(names()).containsExactly("a", "c");
    }

    /** Ranges in any order, touching, overlapping and within one another, until there is no byte left. */
    @Test
    void onlyWhatIsCompleteIsCommitted() throws IOException {
        var random = new Random(SEED);
        List<SafetensorsWriter.Tensor> tensors = List.of(
                SafetensorsWriter.Tensor.of("none", Dtype.U8, 0),
                SafetensorsWriter.Tensor.of("a", Dtype.U8, 20),
                SafetensorsWriter.Tensor.of("between", Dtype.F64, 0),
                SafetensorsWriter.Tensor.of("b", Dtype.U8, 11));
        for (int run = 0; run < 50; run++) {
            Path path = directory.resolve("run" + run);
            var written = new BitSet();
            try (SafetensorsWriter writer = SafetensorsWriter.create(path, Map.of(), tensors)) {
                while (written.cardinality() < 31) {
                    int missing = written.nextClearBit(0);
                    assertThatThrownBy(writer::commit)
                            .isInstanceOf(IllegalStateException.class)
                            .hasMessageContaining(
                                    missing < 20
                                            ? "tensor 'a' of %s is not complete: byte %d of 20".formatted(path, missing)
                                            : "tensor 'b' of %s is not complete: byte %d of 11"
                                                    .formatted(path, missing - 20));
                    assertThat(path).doesNotExist();
                    boolean first = random.nextBoolean();
                    int from = random.nextInt(first ? 20 : 11);
                    int length = random.nextInt(Math.min(6, (first ? 20 : 11) - from) + 1);
                    writer.write(first ? "a" : "b", from, MemorySegment.ofArray(new byte[length]));
                    written.set((first ? 0 : 20) + from, (first ? 0 : 20) + from + length);
                }
                writer.commit();
            }
            assertThat(path).exists();
        }
    }

    @Test
    void aFailedWriteCanBeRepeated() throws IOException {
        Path path = directory.resolve("file.safetensors");
        Arena arena = Arena.ofConfined();
        MemorySegment freed = arena.allocate(24);
        arena.close();
        try (SafetensorsWriter writer = SafetensorsWriter.create(path, Map.of(), six())) {
            assertThatThrownBy(() -> writer.write("w", 0, freed)).isInstanceOf(IllegalStateException.class);
            assertThatThrownBy(writer::commit)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("not complete");
            writer.write("w", 0, MemorySegment.ofArray(SIX));
            writer.commit();
        }
        assertThat(verifyFailure(path)).isNull();
    }

    @Test
    void aCommitThatFailsLeavesNoTrace() throws IOException {
        Path path = directory.resolve("file.safetensors");
        try (SafetensorsWriter writer = SafetensorsWriter.create(path, Map.of(), six())) {
            writer.write("w", 0, MemorySegment.ofArray(SIX));
            Files.createDirectories(path.resolve("in the way"));
            assertOneLine(catchThrowable(writer::commit), path, "file.safetensors: ");
        }
        assertThat(names()).containsExactly("file.safetensors");
        assertThat(path).isDirectory();
    }

    @Test
    void anInterruptIsForLater() throws IOException {
        Path path = directory.resolve("file.safetensors");
        Thread.currentThread().interrupt();
        try (SafetensorsWriter writer = SafetensorsWriter.create(path, Map.of(), six())) {
            writer.write("w", 0, MemorySegment.ofArray(SIX));
            writer.commit();
        }
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            file.verify();
            file.floats("w");
        }
        assertThat(Thread.interrupted()).isTrue();
        assertThat(names()).containsExactly("file.safetensors");
    }

    @Test
    void whoIsInterruptedWhileItWritesLosesNothingForAnybody() throws Exception {
        Path path = directory.resolve("file.safetensors");
        int threads = 4;
        int each = 1 << 14;
        var started = new ArrayList<Thread>();
        var failures = new ConcurrentLinkedQueue<Throwable>();
        var ended = new AtomicBoolean();
        try (SafetensorsWriter writer = SafetensorsWriter.create(
                path, Map.of(), List.of(SafetensorsWriter.Tensor.of("x", Dtype.I64, threads, each)))) {
            for (int t = 0; t < threads; t++) {
                long row = t;
                started.add(Thread.ofPlatform().start(() -> {
                    try {
                        for (long i = 0; i < each; i += 16) {
                            long[] values = LongStream.range(row * each + i, row * each + i + 16)
                                    .toArray();
                            writer.write("x", (row * each + i) * Long.BYTES, MemorySegment.ofArray(values));
                        }
                    } catch (IOException | RuntimeException e) {
                        failures.add(e);
                    }
                }));
            }
            Thread main = Thread.currentThread();
            Thread nuisance = Thread.ofPlatform().start(() -> {
                while (!ended.get()) {
                    started.forEach(Thread::interrupt);
                    main.interrupt();
                    LockSupport.parkNanos(100_000);
                }
            });
            for (Thread thread : started) {
                while (thread.isAlive()) {
                    Thread.onSpinWait(); // join would be interrupted
                }
            }
            writer.commit();
            ended.set(true);
            while (nuisance.isAlive()) {
                Thread.onSpinWait();
            }
            Thread.interrupted();
        }
        assertThat(failures).isEmpty();
        try (SafetensorsFile file = SafetensorsFile.open(path)) {
            file.verify();
            assertThat(file.longs("x"))
                    .isEqualTo(LongStream.range(0, (long) threads * each).toArray());
        }
    }

    @Test
    void impossibleFilesAreRefused() throws IOException {
        Path path = directory.resolve("file.safetensors");
        SafetensorsWriter.Tensor w = SafetensorsWriter.Tensor.of("w", Dtype.F32, 2, 3);
        unwritable(() -> SafetensorsWriter.create(path, Map.of(), List.of(w, w)), "two tensors are called 'w'");
        unwritable(() -> SafetensorsWriter.create(path, Map.of("sha256", ""), List.of(w)), "'sha256' is the checksum");
        unwritable(() -> SafetensorsWriter.create(path, Map.of("\ud800", ""), List.of()), "half a surrogate pair");
        unwritable(() -> SafetensorsWriter.create(path, Map.of("k", "\udc00x"), List.of()), "metadata 'k' has half");
        SafetensorsWriter.Tensor huge = SafetensorsWriter.Tensor.of("huge", Dtype.U8, Long.MAX_VALUE);
        unwritable(() -> SafetensorsWriter.create(path, Map.of(), List.of(huge)), "'huge' the file would reach 2^63");
        SafetensorsWriter.Tensor half = SafetensorsWriter.Tensor.of("half", Dtype.U8, 1L << 62);
        unwritable(
                () -> SafetensorsWriter.create(
                        path, Map.of(), List.of(half, SafetensorsWriter.Tensor.of("x", Dtype.I64, 1L << 59))),
                "'x' the file would reach 2^63");
        String long1 = "x".repeat(50_000_000);
        unwritable(
                () -> SafetensorsWriter.create(path, Map.of("a", long1, "b", long1), List.of()), "at most 100000000");
        assertThat(names()).isEmpty();
        unwritable(
                () -> SafetensorsWriter.Tensor.of("__metadata__", Dtype.F32), "no tensor can be called __metadata__");
        unwritable(() -> SafetensorsWriter.Tensor.of("\ud800", Dtype.F32), "half a surrogate pair");
        unwritable(
                () -> SafetensorsWriter.Tensor.of("w", Dtype.F32, 2, -1),
                "tensor 'w' with shape [2, -1] of F32",
                "negative");
        unwritable(() -> SafetensorsWriter.Tensor.of("w", Dtype.F32, 1L << 61), "overflows");
        unwritable(() -> SafetensorsWriter.Tensor.of("w", Dtype.F32, 0, 1L << 61), "overflows");
    }

    @Test
    void writingOutsideOfATensorIsRefused() throws IOException {
        Path path = directory.resolve("file.safetensors");
        try (SafetensorsWriter writer = SafetensorsWriter.create(path, Map.of(), six())) {
            unwritable(() -> writer.write("v", 0, MemorySegment.ofArray(SIX)), "no tensor 'v' was announced");
            for (long offset : new long[] {-1, 5, 24, Long.MAX_VALUE, Long.MIN_VALUE}) {
                assertThatThrownBy(() -> writer.write("w", offset, MemorySegment.ofArray(new byte[20])))
                        .isInstanceOf(IndexOutOfBoundsException.class)
                        .hasMessageContaining("the 24 bytes of tensor 'w'");
            }
        }
    }

    @Test
    void writingWhereNoFileCanBeIsRefused() throws IOException {
        Path missing = directory.resolve("missing").resolve("file");
        assertOneLine(createFailure(missing), missing, missing + ": the directory does not exist")
                .isInstanceOf(NoSuchFileException.class);
        Path taken = Files.createDirectory(directory.resolve("taken"));
        assertOneLine(createFailure(taken), taken, "is a directory; name a safetensors file");
        Path below = Files.createFile(directory.resolve("plain")).resolve("file");
        assertOneLine(createFailure(below), below, "Not a directory");
        assertThat(names()).containsExactly("plain", "taken");
    }

    @Test
    void writingWhereItIsForbiddenIsRefused() throws IOException {
        Path locked = Files.createDirectory(directory.resolve("locked"));
        Files.setPosixFilePermissions(locked, PosixFilePermissions.fromString("r-xr-xr-x"));
        assumeFalse(Files.isWritable(locked), "root writes everywhere");
        Path within = locked.resolve("file");
        assertOneLine(createFailure(within), within, within + ": permission denied");
    }

    @Test
    void onlyWhatCrashedWritersLeftIsDeleted() throws IOException {
        String random = ".0123456789abcdef.safetensors-part";
        for (String other : List.of("a", ".a.part", ".a.0123.safetensors-part", "a" + random, ".b" + random)) {
            Files.createFile(directory.resolve(other));
        }
        List<String> others = names();
        Files.createFile(directory.resolve(".a" + random));
        Path path = directory.resolve("a");
        try (SafetensorsWriter writer = SafetensorsWriter.create(path, Map.of(), six())) {
            SafetensorsWriter.deleteAbandoned(directory, "a"::equals);
            assertThat(names()).containsAll(others).hasSize(others.size() + 1);
            writer.write("w", 0, MemorySegment.ofArray(SIX));
            writer.commit();
        }
        assertThat(names()).isEqualTo(others);
        assertThat(verifyFailure(path)).isNull();
        // The name of one that is finished is no longer that of a live one.
        Path part;
        try (SafetensorsWriter _ = SafetensorsWriter.create(path, Map.of(), List.of())) {
            part = names().stream()
                    .filter(name -> !others.contains(name))
                    .map(directory::resolve)
                    .findFirst()
                    .orElseThrow();
        }
        Files.createFile(part);
        SafetensorsWriter.deleteAbandoned(directory, "a"::equals);
        assertThat(part).doesNotExist();
        SafetensorsWriter.deleteAbandoned(directory.resolve("missing"), name -> true);
    }

    // ---- helpers

    private static void unwritable(ThrowingCallable code, String... messageParts) {
        assertThatThrownBy(code)
                .isExactlyInstanceOf(IllegalArgumentException.class)
                .hasMessageContainingAll(messageParts);
    }

    private void refused(byte[] bytes, String... messageParts) throws IOException {
        Path path = file(bytes);
        assertOneLine(openFailure(path), path, messageParts).isExactlyInstanceOf(MalformedFileException.class);
    }

    private static AbstractThrowableAssert<?, ? extends Throwable> assertOneLine(
            Throwable failure, Path path, String... messageParts) {
        assertThat(failure).isInstanceOf(IOException.class);
        assertThat(failure.getMessage()).startsWith(path.toString()).doesNotContainPattern("\\R");
        for (String part : messageParts) {
            assertThat(failure).hasMessageContaining(part);
        }
        return assertThat(failure);
    }

    private static Throwable openFailure(Path path) {
        return catchThrowable(() -> SafetensorsFile.open(path).close());
    }

    private static Throwable createFailure(Path path) {
        return catchThrowable(
                () -> SafetensorsWriter.create(path, Map.of(), six()).close());
    }

    private static Throwable verifyFailure(Path path) {
        return catchThrowable(() -> {
            try (SafetensorsFile file = SafetensorsFile.open(path)) {
                file.verify();
            }
        });
    }

    private Path file(byte[] bytes) throws IOException {
        return Files.write(directory.resolve("file.safetensors"), bytes);
    }

    private List<String> names() throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    private static List<SafetensorsWriter.Tensor> six() {
        return List.of(SafetensorsWriter.Tensor.of("w", Dtype.F32, 2, 3));
    }

    private Path write(Map<String, String> metadata, List<SafetensorsWriter.Tensor> tensors) throws IOException {
        Path path = directory.resolve("file.safetensors");
        try (SafetensorsWriter writer = SafetensorsWriter.create(path, metadata, tensors)) {
            for (SafetensorsWriter.Tensor tensor : tensors) {
                writer.write(tensor.name(), 0, MemorySegment.ofArray(contents(tensor)));
            }
            writer.commit();
        }
        return path;
    }

    /** Other bytes for every tensor. */
    private static byte[] contents(SafetensorsWriter.Tensor tensor) {
        var bytes = new byte[(int) tensor.bytes()];
        new Random(tensor.name().hashCode()).nextBytes(bytes);
        return bytes;
    }

    private static byte[] raw(String header, byte[] data) {
        return raw(header.getBytes(StandardCharsets.UTF_8), data);
    }

    private static byte[] raw(byte[] header, byte[] data) {
        return concat(longs(header.length), header, data);
    }

    private static byte[] raw(long claimedLength, String header, byte[] data) {
        return concat(longs(claimedLength), header.getBytes(StandardCharsets.UTF_8), data);
    }

    private static String sha256(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (GeneralSecurityException e) {
            throw new AssertionError(e);
        }
    }

    private static byte[] concat(byte[]... parts) {
        ByteBuffer all = ByteBuffer.allocate(
                Arrays.stream(parts).mapToInt(part -> part.length).sum());
        for (byte[] part : parts) {
            all.put(part);
        }
        return all.array();
    }

    private static byte[] floats(float... values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (float value : values) {
            bytes.putFloat(value);
        }
        return bytes.array();
    }

    private static byte[] longs(long... values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.length * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (long value : values) {
            bytes.putLong(value);
        }
        return bytes.array();
    }
}
