package org.fedcomuon.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
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
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.assertj.core.api.AbstractThrowableAssert;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Files built byte by byte after NumPy's description of the format, and everything that is not such a file. */
class NpyTest {
    private static final long SEED = Long.getLong("tests.seed", 25_07_2026L);
    private static final int MUTATIONS = Soak.mutations(20_000);

    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfDouble DOUBLE =
            ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final String DICT = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    private static final byte[] SIX = floats(1, 2, 3, 4, 5, 6);

    @TempDir
    Path directory;

    // ---- what is read

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void everyVersionIsRead(int version) throws IOException {
        Path file = file(npy(version, DICT, SIX));
        try (Arena arena = Arena.ofConfined()) {
            Npy.Array array = Npy.read(file, arena);
            assertThat(array.type()).isEqualTo(ElementType.FLOAT32);
            assertThat(array.shape()).containsExactly(2L, 3L);
            assertThat(array.fortranOrder()).isFalse();
            assertThat(array.elements()).isEqualTo(6);
            assertThat(array.data().isReadOnly()).isTrue();
            assertThat(array.data().toArray(FLOAT)).containsExactly(1, 2, 3, 4, 5, 6);
        }
    }

    @Test
    void doublesInFortranOrderAreReadAsTheyLie() throws IOException {
        Path file = file(npy(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }", doubles(1, 3, 2, 4)));
        try (Arena arena = Arena.ofConfined()) {
            Npy.Array array = Npy.read(file, arena);
            assertThat(array.type()).isEqualTo(ElementType.FLOAT64);
            assertThat(array.fortranOrder()).isTrue();
            assertThat(array.data().toArray(DOUBLE)).containsExactly(1, 3, 2, 4);
            assertThat(array.data().address() % 64).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2, 3), }",
                "{\"descr\": '<f4', 'fortran_order': False, \"shape\": (2, 3)}",
                "{'shape':(2,3),'fortran_order':False,'descr':'<f4'}",
                "{'fortran_order': False, 'shape': (2, 3,), 'descr': '<f4',}",
                "  {  'shape'  :  (  2  ,  3  )  ,  'descr'  :  '<f4'  ,  'fortran_order'  :  False  ,  }  ",
                "{'descr': '<f4',\n\t'fortran_order': False,\r\n\t'shape': (2, 3)}\n\n",
            })
    void everyWayToWriteTheSameHeaderIsRead(String dict) throws IOException {
        for (int version = 1; version <= 3; version++) {
            Path file = file(npy(version, dict, SIX));
            try (Arena arena = Arena.ofConfined()) {
                Npy.Array array = Npy.read(file, arena);
                assertThat(array.shape()).containsExactly(2L, 3L);
                assertThat(array.data().toArray(FLOAT)).containsExactly(1, 2, 3, 4, 5, 6);
            }
        }
    }

    @Test
    void headersNeedNotBePadded() throws IOException {
        byte[] text = (DICT + "\n").getBytes(StandardCharsets.US_ASCII);
        Path file = file(raw(1, 0, text.length, text, SIX));
        try (Arena arena = Arena.ofConfined()) {
            assertThat(Npy.read(file, arena).data().toArray(FLOAT)).containsExactly(1, 2, 3, 4, 5, 6);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"()|1", "(5,)|5", "(0,)|0", "(3, 0)|0", "(0, 9)|0", "(1, 2, 1, 3, 1)|6", "(2, 1, 1, 1)|2"})
    void anyNumberOfDimensionsIsRead(String shape, int elements) throws IOException {
        var values = new float[elements];
        for (int i = 0; i < elements; i++) {
            values[i] = i + 0.5f;
        }
        Path file = file(npy(1, DICT.replace("(2, 3)", shape), floats(values)));
        try (Arena arena = Arena.ofConfined()) {
            Npy.Array array = Npy.read(file, arena);
            assertThat(Npy.tuple(array.shape())).isEqualTo(shape);
            assertThat(array.elements()).isEqualTo(elements);
            assertThat(array.data().toArray(FLOAT)).containsExactly(values);
        }
    }

    // ---- what is written

    /** The expected bytes are what {@code numpy.save} of NumPy 2.4 writes for these arrays. */
    @Test
    void writesTheBytesThatNumPyWrites() throws IOException {
        byte[] four = doubles(1, 2, 3, 4);
        assertThat(written(ElementType.FLOAT32, List.of(2L, 3L), false, SIX)).isEqualTo(asNumPy(DICT, 118, SIX));
        assertThat(written(ElementType.FLOAT64, List.of(2L, 2L), true, four))
                .isEqualTo(asNumPy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }", 118, four));
        assertThat(written(ElementType.FLOAT64, List.of(), false, doubles(7)))
                .isEqualTo(asNumPy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 118, doubles(7)));
        assertThat(written(ElementType.FLOAT32, List.of(6L), false, SIX))
                .isEqualTo(asNumPy("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", 118, SIX));
        // The spaces into which the first dimension may grow are what needs another 64 bytes here.
        List<Long> ones = Collections.nCopies(15, 1L);
        assertThat(written(ElementType.FLOAT32, ones.subList(0, 14), false, floats(1)))
                .isEqualTo(asNumPy(DICT.replace("(2, 3)", Npy.tuple(ones.subList(0, 14))), 118, floats(1)));
        assertThat(written(ElementType.FLOAT32, ones, false, floats(1)))
                .isEqualTo(asNumPy(DICT.replace("(2, 3)", Npy.tuple(ones)), 182, floats(1)));
    }

    @Test
    void everyBitSurvivesARoundTrip() throws IOException {
        int[] floatBits = {
            0x7fc00000, // NaN
            0xffc12345, // negative, with a payload
            0x7f800001, // signalling
            0x80000000, // -0
            0,
            1, // the smallest denormal
            0x807fffff, // the largest denormal, negative
            0x00800000, // the smallest normal number
            0x7f7fffff, // the largest
            0xff800000, // -infinity
        };
        long[] doubleBits = {
            0x7ff8000000000000L, // in the same order
            0xfff8123456789abcL,
            0x7ff0000000000001L,
            0x8000000000000000L,
            0,
            1,
            0x800fffffffffffffL,
            0x0010000000000000L,
            0x7fefffffffffffffL,
            0xfff0000000000000L,
        };
        ByteBuffer floats = ByteBuffer.allocate(floatBits.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        Arrays.stream(floatBits).forEach(floats::putInt);
        ByteBuffer doubles =
                ByteBuffer.allocate(doubleBits.length * Double.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        Arrays.stream(doubleBits).forEach(doubles::putLong);
        for (boolean fortran : new boolean[] {false, true}) {
            assertRoundTrip(new Npy.Array(
                    ElementType.FLOAT32, List.of(5L, 2L), fortran, MemorySegment.ofArray(floats.array())));
            assertRoundTrip(new Npy.Array(
                    ElementType.FLOAT64, List.of(2L, 5L), fortran, MemorySegment.ofArray(doubles.array())));
        }
    }

    @Test
    void arraysOfManyChunksSurviveARoundTrip() throws IOException {
        var values = new int[1_000_003]; // a bit less than four chunks
        Arrays.setAll(values, i -> i * 0x9e3779b9);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment data = arena.allocateFrom(ValueLayout.JAVA_INT, values);
            assertRoundTrip(new Npy.Array(ElementType.FLOAT32, List.of((long) values.length), false, data));
        }
        // A heap segment that is not of bytes.
        assertRoundTrip(new Npy.Array(
                ElementType.FLOAT32, List.of((long) values.length), false, MemorySegment.ofArray(values)));
    }

    @Test
    void emptyAndDimensionlessArraysSurviveARoundTrip() throws IOException {
        assertRoundTrip(new Npy.Array(ElementType.FLOAT64, List.of(0L, 5L), false, MemorySegment.ofArray(new byte[0])));
        assertRoundTrip(new Npy.Array(ElementType.FLOAT64, List.of(), false, MemorySegment.ofArray(doubles(-0.0))));
    }

    @Test
    void writingReplacesWhatWasThere() throws IOException {
        Path file = file("something longer than a header ".repeat(100).getBytes(StandardCharsets.US_ASCII));
        Npy.write(file, six());
        assertThat(Files.size(file)).isEqualTo(128 + 24);
        assertThat(names()).containsExactly("array.npy");
    }

    @Test
    void aFailedWriteLeavesEverythingAsItWas() throws IOException {
        Path file = file(new byte[] {1, 2, 3});
        Arena arena = Arena.ofConfined();
        var array = new Npy.Array(ElementType.FLOAT32, List.of(2L, 3L), false, arena.allocate(24));
        arena.close();
        assertThatThrownBy(() -> Npy.write(file, array)).isInstanceOf(IllegalStateException.class);
        assertThat(file).hasBinaryContent(new byte[] {1, 2, 3});
        assertThat(names()).containsExactly("array.npy");
    }

    @Test
    void writingWhereNoFileCanBeIsRefused() throws IOException {
        Path missing = directory.resolve("missing").resolve("array.npy");
        assertOneLine(catchThrowable(() -> Npy.write(missing, six())), missing, "the directory does not exist")
                .isInstanceOf(NoSuchFileException.class);
        Path taken = Files.createDirectory(directory.resolve("taken.npy"));
        assertOneLine(catchThrowable(() -> Npy.write(taken, six())), taken, "is a directory");
        Path plain = Files.createFile(directory.resolve("plain"));
        Path below = plain.resolve("array.npy");
        assertOneLine(catchThrowable(() -> Npy.write(below, six())), below, "Not a directory")
                .isInstanceOf(IOException.class);
        assertThat(names()).containsExactly("plain", "taken.npy");
    }

    @Test
    void moreDimensionsThanAHeaderHoldsAreRefused() throws IOException {
        List<Long> shape = Collections.nCopies(30_000, 1L);
        var array = new Npy.Array(ElementType.FLOAT32, shape, false, MemorySegment.ofArray(floats(1)));
        assertThatThrownBy(() -> Npy.write(directory.resolve("array.npy"), array))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("30000 dimensions");
        assertThat(names()).isEmpty();
    }

    // ---- what is refused

    @Test
    void whatIsNoNpyFileIsRefused() throws IOException {
        refused(new byte[0], "the file is empty", "\\x93NUMPY");
        refused("a,b\n1,2\n".getBytes(StandardCharsets.US_ASCII), "not an NPY file", "\\x93NUMPY");
        refused("x".getBytes(StandardCharsets.US_ASCII), "not an NPY file");
        refused("\u0093NUMPZ\1\0".getBytes(StandardCharsets.ISO_8859_1), "not an NPY file");
        refused("PK\3\4and so on".getBytes(StandardCharsets.US_ASCII), "zip archive", ".npz");
    }

    @ParameterizedTest
    @CsvSource({"0,0", "1,1", "2,1", "3,255", "4,0", "255,0"})
    void unknownVersionsAreRefused(int major, int minor) throws IOException {
        byte[] text = (DICT + "\n").getBytes(StandardCharsets.US_ASCII);
        refused(
                raw(major, minor, text.length, text, SIX),
                "version " + major + "." + minor + " is unknown",
                "1.0, 2.0 and 3.0");
    }

    @Test
    void everyTruncationIsRefused() throws IOException {
        for (int version = 1; version <= 3; version++) {
            byte[] whole = npy(version, DICT, SIX);
            int headerAt = version == 1 ? 10 : 12;
            for (int length = 1; length < headerAt; length++) {
                refused(Arrays.copyOf(whole, length), "truncated header", length + " bytes");
            }
            for (int length = headerAt; length < whole.length - SIX.length; length++) {
                int there = length - headerAt;
                refused(
                        Arrays.copyOf(whole, length),
                        "truncated header: it claims " + (whole.length - SIX.length - headerAt) + " bytes",
                        "only " + there + " are there");
            }
            for (int length = whole.length - SIX.length; length < whole.length; length++) {
                int there = length - whole.length + SIX.length;
                refused(
                        Arrays.copyOf(whole, length),
                        "truncated data: " + there + " bytes are there, 24 are needed for shape (2, 3) of float32");
            }
        }
    }

    @Test
    void trailingBytesAreRefused() throws IOException {
        byte[] whole = npy(1, DICT, SIX);
        refused(Arrays.copyOf(whole, whole.length + 1), "1 trailing bytes", "needs 24 bytes");
        refused(npy(1, DICT.replace("(2, 3)", "(0, 3)"), SIX), "24 trailing bytes", "needs 0 bytes");
    }

    @Test
    void hugeHeadersAreRefused() throws IOException {
        for (int version = 2; version <= 3; version++) {
            refused(raw(version, 0, 0xffffffff, new byte[100]), "huge header", "4294967295 bytes", "1048576");
            byte[] text = (DICT + " ".repeat(1 << 20) + "\n").getBytes(StandardCharsets.US_ASCII);
            refused(raw(version, 0, text.length, text, SIX), "huge header", text.length + " bytes", "1048576");
            refused(raw(version, 0, 1 << 20, new byte[100]), "truncated header: it claims 1048576 bytes", "only 100");
        }
        refused(raw(1, 0, 0xffff, new byte[100]), "truncated header: it claims 65535 bytes", "only 100");
    }

    @Test
    void theLargestHeaderThatIsNotHugeIsRead() throws IOException {
        byte[] text = (DICT + " ".repeat((1 << 20) - DICT.length() - 1) + "\n").getBytes(StandardCharsets.US_ASCII);
        Path file = file(raw(2, 0, text.length, text, SIX));
        try (Arena arena = Arena.ofConfined()) {
            assertThat(Npy.read(file, arena).elements()).isEqualTo(6);
        }
    }

    @Test
    void headersWithoutANewlineAreRefused() throws IOException {
        byte[] text = DICT.getBytes(StandardCharsets.US_ASCII);
        refused(raw(1, 0, text.length, text, SIX), "unterminated header", "newline");
        refused(raw(1, 0, 0, SIX), "unterminated header", "newline");
    }

    @Test
    void headersThatAreNotUtf8AreRefusedInVersion3() throws IOException {
        byte[] text = (DICT.replace("descr", "d\u00e9scr") + "\n").getBytes(StandardCharsets.ISO_8859_1);
        refused(raw(3, 0, text.length, text, SIX), "not UTF-8");
        refused(raw(1, 0, text.length, text, SIX), "the key 'd\u00e9scr' is unknown");
        byte[] utf8 = (DICT.replace("descr", "d\u00e9scr") + "\n").getBytes(StandardCharsets.UTF_8);
        refused(raw(3, 0, utf8.length, utf8, SIX), "the key 'd\u00e9scr' is unknown");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "                                                                    | expected '{'",
                "{                                                                   | expected a key in quotes",
                "{}                                                                  | the key 'descr' is missing",
                "{,}                                                                 | expected a key in quotes",
                "[]                                                                  | expected '{'",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)            | expected ',' or '}'",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),           | expected a key",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x         | nothing but spaces after '}'",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}}          | nothing but spaces after '}'",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),,}         | expected a key",
                "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}            | expected ',' or '}'",
                "{'descr' '<f4', 'fortran_order': False, 'shape': (2, 3)}            | expected ':'",
                "{'descr: '<f4', 'fortran_order': False, 'shape': (2, 3)}            | expected ':'",
                "{'descr\": '<f4'}                                                   | expected ':'",
                "{'descr': '<f4}                                                     | plain characters",
                "{descr: '<f4', 'fortran_order': False, 'shape': (2, 3)}             | expected a key in quotes",
                "{u'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}          | expected a key in quotes",
                "{'\\x64escr': '<f4', 'fortran_order': False, 'shape': (2, 3)}       | plain characters",
                "{'descr': f4, 'fortran_order': False, 'shape': (2, 3)}              | an element type in quotes",
                "{'descr': None, 'fortran_order': False, 'shape': (2, 3)}            | an element type in quotes",
                "{'descr': '<f4', 'fortran_order': false, 'shape': (2, 3)}           | expected True or False",
                "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}               | expected True or False",
                "{'descr': '<f4', 'fortran_order': 'False', 'shape': (2, 3)}         | expected True or False",
                "{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (2, 3)}       | expected ',' or '}'",
                "{'descr': '<f4', 'fortran_order': False, 'shape': 6}                | expected '('",
                "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3]}           | expected '('",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}              | expected ','",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}              | expected a dimension",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}            | expected ','",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,,)}         | expected a dimension",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}         | expected ','",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3.0)}         | expected ',' or ')'",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 03)}          | expected a dimension",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -)}           | expected a dimension",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, +3)}          | expected a dimension",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, (3))}         | expected a dimension",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3             | expected ',' or ')'",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1+2)}         | expected ',' or ')'",
                "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} | 'descr' is there twice",
                "{'shape': (2, 3), 'descr': '<f4', 'fortran_order': False, \"shape\": (2, 3)} | 'shape' is there twice",
                "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}   | the key 'x' is unknown",
                "{'Descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}           | the key 'Descr' is unknown",
                "{'fortran_order': False, 'shape': (2, 3)}                           | the key 'descr' is missing",
                "{'descr': '<f4', 'shape': (2, 3)}                             | the key 'fortran_order' is missing",
                "{'descr': '<f4', 'fortran_order': False}                            | the key 'shape' is missing",
            })
    void headersThatAreNotTheRightDictAreRefused(String dict, String problem) throws IOException {
        for (int version = 1; version <= 3; version++) {
            refused(
                    npy(version, dict == null ? "" : dict, SIX),
                    "the header cannot be parsed: ",
                    problem,
                    "right would be {'descr': '<f4'");
        }
    }

    @Test
    void controlCharactersInAHeaderStayOutOfTheMessage() throws IOException {
        refused(npy(1, "{'descr': '<f4', \0", SIX), "\\u0000");
        refused(npy(1, "{'a\u0085b': '<f4'}", SIX), "'a\\u0085b' is unknown");
        refused(npy(3, "{'a\u2028b\u202e': '<f4'}", SIX), "'a\\u2028b\\u202e' is unknown");
        Path odd = Files.write(directory.resolve("two\nlines.npy"), new byte[1]);
        assertThat(readFailure(odd)).isInstanceOf(MalformedFileException.class);
        assertThat(readFailure(odd).getMessage())
                .contains("two\\u000alines.npy")
                .doesNotContain("\n");
    }

    @Test
    void messagesStayShort() throws IOException {
        String longShape = "(" + "1, ".repeat(10_000) + "7, )";
        byte[] file = npy(2, DICT.replace("(2, 3)", longShape), SIX);
        refused(file, "truncated data", "(1, 1, 1,", "...");
        for (String dict : List.of(
                DICT.replace("(2, 3)", longShape),
                DICT.replace("(2, 3)", longShape.replace("7", "-7")),
                DICT.replace("2", "9".repeat(10_000)),
                DICT.replace("<f4", "x".repeat(10_000)),
                DICT.replace("descr", "x".repeat(10_000)))) {
            Path written = file(npy(2, dict, new byte[0]));
            assertThat(readFailure(written).getMessage().length())
                    .isLessThan(written.toString().length() + 320);
        }
    }

    @Test
    void otherElementTypesAreRefused() throws IOException {
        refused(npy(1, DICT.replace("<f4", "|O"), SIX), "'|O'", "Python objects", "float32 and float64");
        refused(npy(1, DICT.replace("<f4", "O"), SIX), "'O'", "Python objects", "float32 and float64");
        refused(npy(1, DICT.replace("<f4", ">f4"), SIX), "big-endian ('>f4')", "little-endian", "'<f4'");
        refused(npy(1, DICT.replace("<f4", ">f8"), SIX), "big-endian ('>f8')", "little-endian", "'<f8'");
        for (String integer : List.of("<i8", "<i4", ">i2", "|u1", "<u8")) {
            refused(npy(1, DICT.replace("<f4", integer), SIX), "'" + integer + "', integers,", "float32 and float64");
        }
        for (String other : List.of("<f2", "=f4", "|f4", "f4", "<c8", "|b1", "<U5", "|S3", "<M8[ns]", "", "<f4 ")) {
            refused(npy(1, DICT.replace("<f4", other), SIX), "'" + other + "' is not supported", "float32 and float64");
        }
        refused(
                npy(1, DICT.replace("'<f4'", "[('x', '<f4'), ('y', '<f4')]"), SIX),
                "structured element type",
                "float32 and float64");
        refused(npy(1, DICT.replace("'<f4'", "('<f4', (2,))"), SIX), "structured element type", "float32 and float64");
        refused(
                npy(3, DICT.replace("'<f4'", "[('\u03b1\u2028', '<f4')]"), SIX),
                "structured element type",
                "float32 and float64");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "(-1,)|negative dimension",
                "(2, -3)|negative dimension",
                "(-2, -3)|negative dimension",
                "(0, -3)|negative dimension",
                "(-9223372036854775808,)|negative dimension",
                "(4294967296, 4294967296)|overflow",
                "(4294967296, 4294967296, 0)|overflow",
                "(0, 4294967296, 4294967296)|overflow",
                "(2305843009213693952,)|overflow", // 2^61 elements of four bytes
                "(9223372036854775807,)|overflow",
                "(9223372036854775808,)|overflow",
                "(-9223372036854775809,)|overflow",
                "(3, 99999999999999999999999999999999999999)|overflow",
                // Would be petabytes, and is refused before anything is allocated.
                "(1000000000000000,)|truncated data: 24 bytes are there, 4000000000000000 are needed",
                "(100000000, 10000000)|truncated data: 24 bytes are there, 4000000000000000 are needed",
                "(2305843009213693951,)|truncated data: 24 bytes are there, 9223372036854775804 are needed",
            })
    void shapesThatNoFileHasAreRefused(String shape, String problem) throws IOException {
        refused(npy(1, DICT.replace("(2, 3)", shape), SIX), problem);
    }

    @Test
    void whatIsNoFileIsRefused() throws IOException {
        Path missing = directory.resolve("missing.npy");
        assertOneLine(readFailure(missing), missing, missing + ": no such file")
                .isInstanceOf(NoSuchFileException.class);
        assertOneLine(readFailure(directory), directory, directory + " is a directory");
        Path below = file(new byte[0]).resolve("array.npy");
        assertOneLine(readFailure(below), below, "Not a directory");
        Path nothing = Path.of("/dev/null");
        assertOneLine(readFailure(nothing), nothing, nothing + " is not a regular file");
    }

    @Test
    void unreadableFilesAreRefused() throws IOException {
        Path file = file(npy(1, DICT, SIX));
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("---------"));
        assumeFalse(Files.isReadable(file), "root reads everything");
        assertOneLine(readFailure(file), file, file + ": permission denied").isInstanceOf(AccessDeniedException.class);
    }

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() throws IOException {
        var random = new Random(SEED);
        List<byte[]> originals = List.of(
                npy(1, DICT, SIX),
                npy(2, "{'descr': '<f8', 'fortran_order': True, 'shape': (3,), }", doubles(1, 2, 3)),
                npy(3, "{\"shape\": (), \"descr\": \"<f8\", \"fortran_order\": False}", doubles(1)),
                npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 0, 12)}", new byte[0]));
        Path file = directory.resolve("array.npy");
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                var mutations = new Mutations("NPY", SEED, MalformedFileException.class)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] bytes = mutate(originals.get(random.nextInt(originals.size())), random);
                channel.write(ByteBuffer.wrap(bytes), 0); // in place: a new file every time takes longer than the test
                channel.truncate(bytes.length);
                mutations.feed(bytes, file + ": ", () -> {
                    try (Arena arena = mutations.arena()) {
                        return assertThat(Npy.read(file, arena).data().byteSize())
                                .isLessThan(bytes.length);
                    }
                });
            }
            mutations.end(0.005, 0.5);
        }
    }

    private static byte[] mutate(byte[] original, Random random) {
        byte[] bytes = original.clone();
        String alphabet = "{}()[]'\":,-0123456789<>|=fiOTrueFals \n\\\0\u0093\u00ff";
        for (int changes = 1 + random.nextInt(3) * random.nextInt(2); changes > 0; changes--) {
            int at = random.nextInt(Math.max(bytes.length, 1));
            switch (random.nextInt(7)) {
                case 0 -> bytes = Arrays.copyOf(bytes, at);
                case 1 -> bytes = Arrays.copyOf(bytes, bytes.length + random.nextInt(20));
                case 2 -> bytes = splice(bytes, at, 0, new byte[] {(byte) random.nextInt(256)});
                case 3 -> bytes = splice(bytes, at, 1 + random.nextInt(4), new byte[0]);
                case 4 -> {
                    // Into the dict, where it hurts most.
                    int within = Math.min(10 + random.nextInt(64), bytes.length);
                    char c = alphabet.charAt(random.nextInt(alphabet.length()));
                    bytes = splice(bytes, within, random.nextInt(2), new byte[] {(byte) c});
                }
                case 5 -> {
                    // Into the preamble.
                    int within = Math.min(random.nextInt(12), bytes.length);
                    bytes = splice(bytes, within, 1, new byte[] {(byte) random.nextInt(256)});
                }
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

    // ---- the array itself

    @Test
    void anArrayThatDoesNotFitItsShapeIsRefused() {
        MemorySegment data = MemorySegment.ofArray(new float[6]);
        assertThatThrownBy(() -> new Npy.Array(ElementType.FLOAT32, List.of(7L), false, data))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("shape (7,) of float32 needs 28 bytes of data, not 24");
        assertThatThrownBy(() -> new Npy.Array(ElementType.FLOAT64, List.of(2L, 3L), false, data))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("needs 48 bytes");
        assertThatThrownBy(() -> new Npy.Array(ElementType.FLOAT32, List.of(-2L, -3L), false, data))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("negative dimension");
        assertThatThrownBy(() -> new Npy.Array(ElementType.FLOAT32, List.of(1L << 32, 1L << 32), false, data))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("overflow");
    }

    @Test
    void anArrayCannotBeChanged() {
        MemorySegment data = MemorySegment.ofArray(new float[6]);
        var array = new Npy.Array(ElementType.FLOAT32, List.of(2L, 3L), false, data);
        assertThat(array.elements()).isEqualTo(6);
        assertThatThrownBy(() -> array.data().set(FLOAT, 0, 1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> array.shape().set(0, 1L)).isInstanceOf(UnsupportedOperationException.class);
    }

    // ---- helpers

    private void refused(byte[] bytes, String... messageParts) throws IOException {
        Path file = file(bytes);
        assertOneLine(readFailure(file), file, messageParts).isExactlyInstanceOf(MalformedFileException.class);
    }

    private static AbstractThrowableAssert<?, ? extends Throwable> assertOneLine(
            Throwable failure, Path file, String... messageParts) {
        assertThat(failure).isInstanceOf(IOException.class);
        assertThat(failure.getMessage())
                .startsWith(file.toString())
                .contains(messageParts)
                .doesNotContainPattern("\\R");
        return assertThat(failure);
    }

    private static Throwable readFailure(Path file) {
        try (Arena arena = Arena.ofConfined()) {
            return catchThrowable(() -> Npy.read(file, arena));
        }
    }

    private Path file(byte[] bytes) throws IOException {
        return Files.write(directory.resolve("array.npy"), bytes);
    }

    private List<String> names() throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    private static Npy.Array six() {
        return new Npy.Array(ElementType.FLOAT32, List.of(2L, 3L), false, MemorySegment.ofArray(SIX));
    }

    private byte[] written(ElementType type, List<Long> shape, boolean fortranOrder, byte[] data) throws IOException {
        Path file = directory.resolve("written.npy");
        Npy.write(file, new Npy.Array(type, shape, fortranOrder, MemorySegment.ofArray(data)));
        return Files.readAllBytes(file);
    }

    private void assertRoundTrip(Npy.Array array) throws IOException {
        Path file = directory.resolve("array.npy");
        Npy.write(file, array);
        try (Arena arena = Arena.ofConfined()) {
            Npy.Array back = Npy.read(file, arena);
            assertThat(back.type()).isEqualTo(array.type());
            assertThat(back.shape()).isEqualTo(array.shape());
            assertThat(back.fortranOrder()).isEqualTo(array.fortranOrder());
            assertThat(back.data().mismatch(array.data())).isEqualTo(-1);
        }
    }

    /** A file as the description of the format has it: padded with spaces to a multiple of 64, ended by a newline. */
    private static byte[] npy(int version, String dict, byte[] data) {
        byte[] text = dict.getBytes(version < 3 ? StandardCharsets.ISO_8859_1 : StandardCharsets.UTF_8);
        int before = 8 + (version == 1 ? 2 : 4);
        int total = Math.ceilDiv(before + text.length + 1, 64) * 64;
        byte[] header = Arrays.copyOf(text, total - before);
        Arrays.fill(header, text.length, header.length - 1, (byte) ' ');
        header[header.length - 1] = '\n';
        return raw(version, 0, header.length, header, data);
    }

    private static byte[] asNumPy(String dict, int headerLength, byte[] data) {
        byte[] header =
                (dict + " ".repeat(headerLength - dict.length() - 1) + "\n").getBytes(StandardCharsets.US_ASCII);
        return raw(1, 0, header.length, header, data);
    }

    private static byte[] raw(int major, int minor, int claimedLength, byte[]... rest) {
        ByteBuffer start = ByteBuffer.allocate(major == 1 ? 10 : 12)
                .order(ByteOrder.LITTLE_ENDIAN)
                .put((byte) 0x93)
                .put("NUMPY".getBytes(StandardCharsets.US_ASCII))
                .put((byte) major)
                .put((byte) minor);
        if (major == 1) {
            start.putShort((short) claimedLength);
        } else {
            start.putInt(claimedLength);
        }
        return concat(start.array(), concat(rest));
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

    private static byte[] doubles(double... values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.length * Double.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (double value : values) {
            bytes.putDouble(value);
        }
        return bytes.array();
    }
}
