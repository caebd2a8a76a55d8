package org.fedcomuon.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Numbers of every type, from files of their own and from archives. */
class NpyNumbersTest {
    private static final long SEED = Long.getLong("tests.seed", 18_11_2026L);
    private static final int MUTATIONS = Soak.mutations(5_000);

    /** What NumPy 2.4 writes as {@code savez_compressed(x=arange(6, dtype=int16).reshape(2, 3), y=array([1, 0]))}. */
    private static final String COMPRESSED =
            "504b03042d0000000800000021001a4e987effffffffffffffff05001400782e6e7079010010008c0000000000000052"
                    + "000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a4aea3a09e965f54529498179f5f94920a"
                    + "12774bcc294e058a17672416a402f91a463a0ac69a3a0ab50a64032e06064606260666061606560600504b03042d0000"
                    + "0008000000210071fb39abffffffffffffffff05001400792e6e70790100100090000000000000004800000000000000"
                    + "9bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f54529498179f5f94920a12774bcc294e05"
                    + "8a17672416a402f91a463a9a3a0ab50a14002e4606540000504b01022d032d0000000800000021001a4e987e52000000"
                    + "8c000000050000000000000000000000800100000000782e6e7079504b01022d032d00000008000000210071fb39ab48"
                    + "00000090000000050000000000000000000000800189000000792e6e7079504b05060000000002000200660000000801"
                    + "00000000";

    /** What NumPy 2.4 writes as {@code savez(a=array([0.5, -2, 65504], dtype=float16))}. */
    private static final String STORED =
            "504b03042d00000000000000210048ed2d4effffffffffffffff05001400612e6e707901001000860000000000000086"
                    + "00000000000000934e554d5059010076007b276465736372273a20273c6632272c2027666f727472616e5f6f72646572"
                    + "273a2046616c73652c20277368617065273a2028332c292c207d20202020202020202020202020202020202020202020"
                    + "20202020202020202020202020202020202020202020202020202020202020202020202020200a003800c0ff7b504b01"
                    + "022d032d00000000000000210048ed2d4e8600000086000000050000000000000000000000800100000000612e6e7079"
                    + "504b0506000000000100010033000000bd0000000000";

    @TempDir
    Path directory;

    // ---- what is read

    /** The bytes of four elements, little-endian, and the numbers that they are. */
    @ParameterizedTest
    @CsvSource({
        "|b1, 00010100, 0 1 1 0",
        "|i1, 00017f80, 0 1 127 -128",
        "|u1, 00017f80, 0 1 127 128",
        "<i2, 00000100ff7f0080, 0 1 32767 -32768",
        "<u2, 00000100ff7fffff, 0 1 32767 65535",
        "<i4, 0000000001000000ffffff7f00000080, 0 1 2147483647 -2147483648",
        "<u4, 0000000001000000ffffff7fffffffff, 0 1 2147483647 4294967295",
        "<i8, 00000000000000000100000000000000ffffffffffff1f000000000000000080,"
                + " 0 1 9007199254740991 -9223372036854775808",
        "<u8, 00000000000000000100000000000000ffffffffffff1f000000000000000080,"
                + " 0 1 9007199254740991 9223372036854775808",
        "<f2, 0000003c00c0ff7b, 0 1 -2 65504",
        "<f4, 000000000000803f0000c0bf0000c07f, 0 1 -1.5 NaN",
        "<f8, 0000000000000000000000000000f03f000000000000f8bf000000000000f07f, 0 1 -1.5 Infinity",
    })
    void everyTypeIsRead(String descr, String hex, String values) throws IOException {
        Path file = write("a.npy", npy(descr, "(2, 2)", HexFormat.of().parseHex(hex)));
        double[] right = Arrays.stream(values.split(" "))
                .mapToDouble(Double::parseDouble)
                .toArray();
        try (Arena arena = Arena.ofConfined()) {
            Npy.Numbers numbers = Npy.readNumbers(file, arena);
            assertThat(numbers.shape()).containsExactly(2L, 2L);
            assertThat(numbers.elements()).isEqualTo(4);
            assertThat(numbers.type().bytes()).isEqualTo(hex.length() / 8);
            assertThat(numbers.type().isFloat()).isEqualTo(descr.charAt(1) == 'f');
            for (int i = 0; i < 4; i++) {
                assertThat(numbers.get(i)).isEqualTo(Double.valueOf(right[i]));
            }
            assertThatThrownBy(() -> numbers.get(4)).isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    /** To the nearest double, and to the even one of two. */
    @Test
    void largeIntegersAreRoundedOnce() throws IOException {
        long[] values = {-1, -2, Long.MIN_VALUE, Long.MIN_VALUE + 1024, Long.MIN_VALUE + 1025, -1024, -1025, -3071};
        ByteBuffer data = ByteBuffer.allocate(8 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        Arrays.stream(values).forEach(data::putLong);
        Path file = write("a.npy", npy("<u8", "(8,)", data.array()));
        try (Arena arena = Arena.ofConfined()) {
            Npy.Numbers numbers = Npy.readNumbers(file, arena);
            for (int i = 0; i < values.length; i++) {
                assertThat(numbers.get(i)).isEqualTo(new BigInteger(Long.toUnsignedString(values[i])).doubleValue());
            }
        }
    }

    @Test
    void archivesThatNumPyWritesAreRead() throws IOException {
        Path compressed = write("c.npz", HexFormat.of().parseHex(COMPRESSED));
        Path stored = write("s.NPZ", HexFormat.of().parseHex(STORED));
        try (Arena arena = Arena.ofConfined()) {
            Npy.Numbers x = Npy.readNumbers(directory.resolve("c.npz#x"), arena);
            assertThat(x.type()).isEqualTo(Npy.NumberType.INT16);
            assertThat(x.shape()).containsExactly(2L, 3L);
            assertThat(x.get(5)).isEqualTo(5);
            Npy.Numbers y = Npy.readNumbers(directory.resolve("c.npz#y.npy"), arena);
            assertThat(y.type()).isEqualTo(Npy.NumberType.INT64);
            assertThat(y.get(0)).isOne();
            Npy.Numbers only = Npy.readNumbers(stored, arena);
            assertThat(only.type()).isEqualTo(Npy.NumberType.FLOAT16);
            assertThat(only.get(1)).isEqualTo(-2);
            assertThatThrownBy(() -> Npy.readNumbers(compressed, arena))
                    .isInstanceOf(MalformedFileException.class)
                    .hasMessage(compressed + ": 2 arrays (x, y); name one, as c.npz#x");
            assertThatThrownBy(() -> Npy.readNumbers(directory.resolve("c.npz#z"), arena))
                    .isInstanceOf(MalformedFileException.class)
                    .hasMessage(compressed + ": no array 'z'; it has x, y");
        }
    }

    // ---- what is refused

    @ParameterizedTest
    @ValueSource(strings = {"|O", "<c8", "<U5", "|S3", "<M8[ns]", "<f16", "=f4", "|u2", ""})
    void otherTypesAreRefused(String descr) throws IOException {
        refused("a.npy", npy(descr, "(2,)", new byte[8]), "element type '" + descr + "'", "x.astype('<f4')");
    }

    @ParameterizedTest
    @ValueSource(strings = {"i2", "u4", "i8", "f2", "f8"})
    void bigEndianIsRefusedByName(String type) throws IOException {
        refused("a.npy", npy(">" + type, "(1,)", new byte[8]), "big-endian ('>" + type + "')", "x.astype('<" + type);
    }

    @Test
    void archivesThatAreNoneOrDamagedAreRefused() throws IOException {
        refused("a.npz", new byte[0], "not a zip archive of arrays");
        refused("a.npz", "no archive".getBytes(StandardCharsets.US_ASCII), "not a zip archive of arrays");
        refused("a.npz", zip(true, Map.of("readme.txt", new byte[3])), "0 arrays; name one, as a.npz#x");
        refused("a.npz", zip(true, Map.of("x.npy", new byte[3])), "a.npz#x: not an NPY file");
        byte[] array = npy("<f4", "(1000,)", new byte[4000]);
        byte[] whole = zip(false, Map.of("x.npy", array));
        assertThat(numbers(write("a.npz", whole))).isEqualTo(1000);
        byte[] damaged = whole.clone();
        damaged[2000] ^= 1;
        refused("a.npz", damaged, "a.npz#x: the data do not have the length and the checksum");
        refused("a.npz", Arrays.copyOf(whole, whole.length - 30), "not a zip archive of arrays");
        refused("a.npz", zip(true, Map.of("x.npy", Arrays.copyOf(array, 100))), "a.npz#x: truncated header");
        refused("a.npz", zip(true, Map.of("x.npy", Arrays.copyOf(array, 1000))), "a.npz#x: truncated data");
    }

    /** The directory says how long an entry is; nothing is allocated before that has been found to be true. */
    @Test
    void lengthsThatTheArchiveDoesNotHaveAreRefused() throws IOException {
        byte[] whole = zip(false, Map.of("x.npy", npy("<f4", "(1000,)", new byte[4000])));
        int central = indexOf(whole, new byte[] {'P', 'K', 1, 2});
        for (int length : new int[] {Integer.MAX_VALUE, 4127, 4129, 1}) {
            byte[] wrong = whole.clone();
            ByteBuffer.wrap(wrong).order(ByteOrder.LITTLE_ENDIAN).putInt(central + 24, length);
            refused("a.npz", wrong, "a.npz");
        }
        byte[] bomb = npy("<f4", "(1000000000,)", new byte[4 << 20]);
        refused("a.npz", zip(true, Map.of("x.npy", bomb)), "truncated data");
    }

    @Test
    void whatIsNoFileIsNamed() {
        try (Arena arena = Arena.ofConfined()) {
            for (String name : List.of("none.npy", "none.npz#x", "none.npz")) {
                assertThatThrownBy(() -> Npy.readNumbers(directory.resolve(name), arena))
                        .isInstanceOf(NoSuchFileException.class)
                        .hasMessageStartingWith(directory.resolve(name.replace("#x", "")) + ": no such file");
            }
        }
    }

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() throws IOException {
        var random = new Random(SEED);
        byte[] floats = npy("<f4", "(2, 3)", new byte[24]);
        byte[] labels = npy("|u1", "(5,)", new byte[] {1, 2, 3, 4, 5});
        List<byte[]> archives = List.of(
                zip(true, Map.of("x.npy", floats, "y.npy", labels)),
                zip(false, Map.of("x.npy", floats, "y.npy", labels)));
        Path file = directory.resolve("a.npz");
        try (var mutations = new Mutations("NPZ", SEED, MalformedFileException.class).allocating(2064, 1 << 20)) {
            for (int i = 0; i < MUTATIONS; i++) {
                byte[] bytes = mutate(archives.get(i % archives.size()), random);
                Files.write(file, bytes);
                mutations.feed(bytes, file.toString(), () -> {
                    try (Arena arena = mutations.arena()) {
                        return Npy.readNumbers(directory.resolve("a.npz#x"), arena)
                                .elements();
                    }
                });
            }
            mutations.end(0.05, 0.8);
        }
    }

    // ---- tools

    private static byte[] mutate(byte[] original, Random random) {
        byte[] bytes = original.clone();
        for (int changes = 1 + random.nextInt(2); changes > 0; changes--) {
            int at = random.nextInt(Math.max(bytes.length, 1));
            if (bytes.length == 0 || random.nextInt(8) == 0) {
                bytes = Arrays.copyOf(bytes, at + random.nextInt(9));
            } else if (random.nextBoolean()) {
                bytes[at] = (byte) random.nextInt(256);
            } else {
                bytes[at] ^= (byte) (1 << random.nextInt(8));
            }
        }
        return bytes;
    }

    private static int indexOf(byte[] bytes, byte[] part) {
        for (int i = 0; ; i++) {
            if (Arrays.equals(bytes, i, i + part.length, part, 0, part.length)) {
                return i;
            }
        }
    }

    private static long numbers(Path file) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            return Npy.readNumbers(file, arena).elements();
        }
    }

    private void refused(String name, byte[] bytes, String... words) throws IOException {
        Path file = write(name, bytes);
        assertThatThrownBy(() -> numbers(file))
                .isInstanceOf(MalformedFileException.class)
                .hasMessageStartingWith(file.toString())
                .hasMessageContainingAll(words)
                .satisfies(e -> assertThat(e.getMessage()).doesNotContainPattern("\\R"));
    }

    private Path write(String name, byte[] bytes) throws IOException {
        return Files.write(directory.resolve(name), bytes);
    }

    private static byte[] npy(String descr, String shape, byte[] data) {
        String text = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }".formatted(descr, shape);
        byte[] header = (text + " ".repeat(117 - text.length()) + "\n").getBytes(StandardCharsets.US_ASCII);
        return ByteBuffer.allocate(10 + header.length + data.length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .put((byte) 0x93)
                .put("NUMPY\1\0".getBytes(StandardCharsets.US_ASCII))
                .putShort((short) header.length)
                .put(header)
                .put(data)
                .array();
    }

    static byte[] zip(boolean deflated, Map<String, byte[]> entries) throws IOException {
        var bytes = new ByteArrayOutputStream();
        try (var out = new ZipOutputStream(bytes)) {
            for (Map.Entry<String, byte[]> each : new TreeMap<>(entries).entrySet()) {
                var entry = new ZipEntry(each.getKey());
                entry.setTime(0);
                if (!deflated) {
                    var checksum = new CRC32();
                    checksum.update(each.getValue());
                    entry.setMethod(ZipEntry.STORED);
                    entry.setSize(each.getValue().length);
                    entry.setCrc(checksum.getValue());
                }
                out.putNextEntry(entry);
                out.write(each.getValue());
                out.closeEntry();
            }
        }
        return bytes.toByteArray();
    }
}
