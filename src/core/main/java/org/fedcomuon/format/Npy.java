package org.fedcomuon.format;

import static java.util.stream.Collectors.joining;
import static org.fedcomuon.internal.file.FileTransfer.clip;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.file.FileTransfer;

/**
 * Reads and writes NPY files, to exchange arrays with NumPy without conversion.
 *
 * <p>For example: {@snippet file="org/fedcomuon/SnippetsIT.java" region="npy"}
 *
 * <p>Files are not trusted: the header is parsed without evaluating anything in it, no more memory is allocated than
 * the file itself fills, and a file that is not exactly in the format is refused. {@link #read} reads float32 and
 * float64, which are computed with; {@link #readNumbers} reads every type of number, for data that are converted. All
 * are little-endian: big-endian files are refused with the line of Python that converts them.
 *
 * <p>Thread-safe.
 */
public final class Npy {
    private static final byte[] MAGIC = {(byte) 0x93, 'N', 'U', 'M', 'P', 'Y'};
    /** Magic and version; the length of the header follows. */
    private static final int PREAMBLE = MAGIC.length + 2;
    /** NumPy's own headers are of some hundred bytes; longer ones are refused. */
    private static final int MAX_HEADER = 1 << 20;

    /** The alignment of the data in the file, which NumPy may map, and in memory. */
    private static final int ALIGNMENT = 64;
    /** NumPy reserves this many digits for the dimension that grows when data is appended. */
    private static final int GROWTH_DIGITS = 21;

    /** What {@link #read} accepts. */
    private static final List<NumberType> COMPUTED = List.of(NumberType.FLOAT32, NumberType.FLOAT64);

    private static final String KIND = "an NPY file";
    private static final int LONGEST_REFUSAL = 240;
    private static final String EXAMPLE = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

    private Npy() {}

    /**
     * Reads a whole array into memory of {@code arena}.
     *
     * @throws MalformedFileException when the file is not an NPY file, is damaged, or contains something other than
     *     float32 or float64
     * @throws IOException when it cannot be read; like all messages here, this one is a line that names the file
     */
    public static Array read(Path file, Arena arena) throws IOException {
        FileTransfer.requireRegular(file, KIND);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            Numbers numbers = numbers(file, new FileSource(channel), arena, COMPUTED);
            ElementType type = numbers.type() == NumberType.FLOAT32 ? ElementType.FLOAT32 : ElementType.FLOAT64;
            return new Array(type, numbers.shape(), numbers.fortranOrder(), numbers.data());
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }

    /** Returns the file that holds an array: of {@code archive.npz#name}, the archive. */
    public static Path file(Path array) {
        return NpzEntry.Name.of(array).map(NpzEntry.Name::archive).orElse(array);
    }

    /**
     * Reads a whole array of numbers of any type into new memory, from an NPY file or from an archive as
     * {@code numpy.savez} and {@code numpy.savez_compressed} write it.
     *
     * <p>An array of an archive is verified as a whole, with its checksum, before memory is allocated for it, and its
     * name is never used as a path.
     *
     * @param file an NPY file; or {@code archive.npz#name}, an array of an archive; or an archive, {@code .npz}, with
     *     only one array
     * @param memory is asked once, when it is known how much is needed
     * @throws MalformedFileException when the file is neither, is damaged, contains something other than numbers, or an
     *     archive has no array of this name
     * @throws IOException when it cannot be read; like all messages here, this one is a line that names the file
     */
    public static Numbers readNumbers(Path file, SegmentAllocator memory) throws IOException {
        Optional<NpzEntry.Name> inArchive = NpzEntry.Name.of(file);
        Path opened = inArchive.map(NpzEntry.Name::archive).orElse(file);
        FileTransfer.requireRegular(opened, KIND);
        List<NumberType> types = List.of(NumberType.values());
        if (inArchive.isPresent()) {
            try (NpzEntry entry = NpzEntry.open(inArchive.get())) {
                return numbers(entry.path(), entry, memory, types);
            } catch (IOException e) {
                throw FileTransfer.explainRead(opened, e);
            }
        }
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            return numbers(file, new FileSource(channel), memory, types);
        } catch (IOException e) {
            throw FileTransfer.explainRead(file, e);
        }
    }

    /**
     * Writes {@code array} as NumPy itself would, in version 1.0 and in the order it is in. Another process sees the
     * previous file or the complete new one: the file is written under another name in the same directory, then
     * renamed. A symbolic link is replaced, not followed.
     *
     * @throws IOException when it cannot be written; the previous file is unchanged
     * @throws IllegalArgumentException when there are more dimensions, some thousands, than fit into a header
     */
    public static void write(Path file, Array array) throws IOException {
        byte[] header = header(array);
        FileTransfer.refuseDirectory(file, KIND);
        // Not by Files.createTempFile, whose files are for their owner only.
        Path part = file.resolveSibling(
                ".npy-%016x.part".formatted(ThreadLocalRandom.current().nextLong()));
        try {
            FileChannel channel = FileChannel.open(part, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
            try {
                try (channel) {
                    FileTransfer.write(channel, 0, MemorySegment.ofArray(header));
                    FileTransfer.write(channel, header.length, array.data());
                    channel.force(true); // or else a crash may leave the new name without the data
                }
                Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
            } finally {
                Files.deleteIfExists(part); // not there any more if all went well
            }
        } catch (IOException e) {
            throw FileTransfer.explainWrite(file, e);
        }
    }

    /** Returns a shape as a Python tuple. */
    static String tuple(List<Long> shape) {
        return shape.size() == 1
                ? "(" + shape.getFirst() + ",)"
                : shape.stream().map(String::valueOf).collect(joining(", ", "(", ")"));
    }

    /** Returns NumPy's name of the type. */
    static String name(ElementType type) {
        return type.name().toLowerCase(Locale.ROOT);
    }

    private static String descr(ElementType type) {
        return switch (type) {
            case FLOAT32 -> "<f4";
            case FLOAT64 -> "<f8";
            case UINT8, INT64 -> throw new IllegalArgumentException("arrays hold no %s here".formatted(name(type)));
        };
    }

    /** The bytes of an NPY file, from the first to the last. */
    interface Source {
        /** Returns the number of all bytes. */
        long size();

        /** Fills {@code into} with the bytes that follow; there are that many. */
        void next(MemorySegment into) throws IOException;

        /** Returns the bytes that follow, for a header; little-endian. */
        default ByteBuffer next(int length) throws IOException {
            var bytes = new byte[length];
            next(MemorySegment.ofArray(bytes));
            return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        }
    }

    /** A file of its own. */
    private static final class FileSource implements Source {
        private final FileChannel channel;
        private final long size;
        private long at;

        FileSource(FileChannel channel) throws IOException {
            this.channel = channel;
            size = channel.size();
        }

        @Override
        public long size() {
            return size;
        }

        @Override
        public void next(MemorySegment into) throws IOException {
            FileTransfer.read(channel, at, into);
            at += into.byteSize();
        }
    }

    private static Numbers numbers(Path file, Source source, SegmentAllocator memory, List<NumberType> types)
            throws IOException {
        long size = source.size();
        ByteBuffer start = source.next((int) Math.min(size, PREAMBLE));
        requireMagic(file, start);
        if (size < PREAMBLE) {
            throw truncatedHeader(file, size);
        }
        int major = Byte.toUnsignedInt(start.get(MAGIC.length));
        int minor = Byte.toUnsignedInt(start.get(MAGIC.length + 1));
        if (major < 1 || major > 3 || minor != 0) {
            throw new MalformedFileException(
                    file, "NPY version %d.%d is unknown; 1.0, 2.0 and 3.0 can be read".formatted(major, minor));
        }
        int headerAt = PREAMBLE + (major == 1 ? Short.BYTES : Integer.BYTES);
        if (size < headerAt) {
            throw truncatedHeader(file, size);
        }
        ByteBuffer claimed = source.next(headerAt - PREAMBLE);
        long length = major == 1 ? Short.toUnsignedLong(claimed.getShort()) : Integer.toUnsignedLong(claimed.getInt());
        if (length > MAX_HEADER) {
            throw new MalformedFileException(
                    file, "huge header: it claims %d bytes; at most %d can be right".formatted(length, MAX_HEADER));
        }
        if (length > size - headerAt) {
            throw new MalformedFileException(
                    file,
                    "truncated header: it claims %d bytes, but only %d are there".formatted(length, size - headerAt));
        }
        Header header = parse(file, source.next((int) length), major);
        NumberType type = type(file, header.descr(), types);
        long needed;
        try {
            needed = Numbers.byteSize(type, header.shape());
        } catch (IllegalArgumentException e) {
            throw new MalformedFileException(file, clip(Objects.toString(e.getMessage()), LONGEST_REFUSAL), e);
        }
        requireData(file, size - headerAt - length, needed, type, header.shape());
        MemorySegment data = allocate(memory, needed);
        source.next(data);
        return new Numbers(type, header.shape(), header.fortranOrder(), data);
    }

    private static void requireMagic(Path file, ByteBuffer start) throws MalformedFileException {
        int known = Math.min(start.limit(), MAGIC.length);
        if (known == 0) {
            throw new MalformedFileException(file, "the file is empty; an NPY file starts with \\x93NUMPY");
        }
        if (start.slice(0, known).equals(ByteBuffer.wrap(MAGIC, 0, known))) {
            return;
        }
        boolean zip = start.limit() >= 4 && start.get(0) == 'P' && start.get(1) == 'K';
        throw new MalformedFileException(
                file,
                zip
                        ? "not an NPY file but a zip archive; if it is an .npz file, unzip it and name one of its arrays"
                        : "not an NPY file; one starts with \\x93NUMPY, as numpy.save writes it");
    }

    private static MalformedFileException truncatedHeader(Path file, long size) {
        return new MalformedFileException(
                file, "truncated header: the whole file is %d bytes; copy or save it again".formatted(size));
    }

    private static void requireData(Path file, long present, long needed, NumberType type, List<Long> shape)
            throws MalformedFileException {
        if (present < needed) {
            throw new MalformedFileException(
                    file,
                    "truncated data: %d bytes are there, %d are needed for shape %s of %s"
                            .formatted(present, needed, clip(tuple(shape)), type));
        }
        if (present > needed) {
            throw new MalformedFileException(
                    file,
                    "%d trailing bytes after the data; shape %s of %s needs %d bytes, and there the file has to end"
                            .formatted(present - needed, clip(tuple(shape)), type, needed));
        }
    }

    private static NumberType type(Path file, String descr, List<NumberType> types) throws MalformedFileException {
        for (NumberType type : types) {
            if (descr.equals(type.descr)) {
                return type;
            }
            if (type.bytes() > 1 && descr.equals(type.descr.replace('<', '>'))) {
                throw new MalformedFileException(
                        file,
                        "the data is big-endian ('%s'); save it as little-endian, with x.astype('%s')"
                                .formatted(descr, type.descr));
            }
        }
        String what = "element type '%s'".formatted(clip(descr));
        if (descr.matches("[<>|=]?O.*")) {
            what += ", Python objects,";
        } else if (descr.matches("[<>|=]?[iu]\\d+")) {
            what += ", integers,";
        }
        throw new MalformedFileException(
                file,
                what
                        + (types.equals(COMPUTED)
                                ? " is not supported; float32 and float64 are: save x.astype('<f4') or x.astype('<f8')"
                                : " is not supported; bool, integers and floats of up to 8 bytes are: save"
                                        + " x.astype('<f4')"));
    }

    private static void requireBytes(long needed, MemorySegment data, List<Long> shape, String type) {
        if (data.byteSize() != needed) {
            throw new IllegalArgumentException("shape %s of %s needs %d bytes of data, not %d"
                    .formatted(tuple(shape), type, needed, data.byteSize()));
        }
    }

    private static MemorySegment allocate(SegmentAllocator memory, long bytes) throws IOException {
        try {
            return memory.allocate(bytes, ALIGNMENT);
        } catch (OutOfMemoryError e) {
            throw new IOException(
                    "%d bytes of memory are needed for the data, more than there are".formatted(bytes), e);
        }
    }

    static byte[] header(Array array) {
        List<Long> shape = array.shape();
        var text = new StringBuilder("{'descr': '")
                .append(descr(array.type()))
                .append("', 'fortran_order': ")
                .append(array.fortranOrder() ? "True" : "False")
                .append(", 'shape': ")
                .append(tuple(shape))
                .append(", }");
        if (!shape.isEmpty()) {
            long growing = array.fortranOrder() ? shape.getLast() : shape.getFirst();
            text.repeat(' ', GROWTH_DIGITS - Long.toString(growing).length());
        }
        int textAt = PREAMBLE + Short.BYTES;
        int end = textAt + text.length() + 1;
        text.repeat(' ', ALIGNMENT - end % ALIGNMENT).append('\n');
        if (text.length() > 0xffff) {
            throw new IllegalArgumentException(
                    "%d dimensions are too many for an NPY file of version 1.0".formatted(shape.size()));
        }
        return ByteBuffer.allocate(textAt + text.length())
                .order(ByteOrder.LITTLE_ENDIAN)
                .put(MAGIC)
                .put((byte) 1)
                .put((byte) 0)
                .putShort((short) text.length())
                .put(text.toString().getBytes(StandardCharsets.US_ASCII))
                .array();
    }

    private static Header parse(Path file, ByteBuffer bytes, int major) throws MalformedFileException {
        String text;
        try {
            text = (major < 3 ? StandardCharsets.ISO_8859_1 : StandardCharsets.UTF_8)
                    .newDecoder()
                    .decode(bytes)
                    .toString();
        } catch (CharacterCodingException e) {
            throw new MalformedFileException(file, "the header is not UTF-8, as in version 3.0 it has to be", e);
        }
        if (!text.endsWith("\n")) {
            throw new MalformedFileException(file, "unterminated header: it has to end with a newline");
        }
        return new Parser(file, text).header();
    }

    /** The header as text. */
    private record Header(String descr, boolean fortranOrder, List<Long> shape) {}

    /**
     * Understands as much Python as a header of numbers may contain: a dict with three known keys, a string, a bool and
     * a tuple of ints.
     */
    private static final class Parser {
        private final Path file;
        private final String text;
        private int at;

        Parser(Path file, String text) {
            this.file = file;
            this.text = text;
        }

        Header header() throws MalformedFileException {
            String descr = null;
            Boolean fortranOrder = null;
            List<Long> shape = null;
            var seen = new HashSet<String>();
            expect('{');
            while (!accept('}')) {
                String key = string("a key in quotes");
                expect(':');
                if (!seen.add(key)) {
                    throw unfit("the key '%s' is there twice".formatted(clip(key)));
                }
                switch (key) {
                    case "descr" -> descr = descr();
                    case "fortran_order" -> fortranOrder = bool();
                    case "shape" -> shape = shape();
                    default -> throw unfit("the key '%s' is unknown".formatted(clip(key)));
                }
                if (!accept(',') && peek() != '}') {
                    throw unexpected("',' or '}'");
                }
            }
            peek();
            if (at < text.length()) {
                throw unexpected("nothing but spaces after '}'");
            }
            if (descr == null || fortranOrder == null || shape == null) {
                var missing = new ArrayList<>(List.of("descr", "fortran_order", "shape"));
                missing.removeAll(seen);
                throw unfit("the key '%s' is missing".formatted(missing.getFirst()));
            }
            return new Header(descr, fortranOrder, shape);
        }

        private String descr() throws MalformedFileException {
            if (peek() == '[' || peek() == '(') {
                throw new MalformedFileException(
                        file,
                        "a structured element type is not supported; float32 and float64 are:"
                                + " save each field by itself, as x['field'].astype('<f4')");
            }
            return string("an element type in quotes");
        }

        private boolean bool() throws MalformedFileException {
            peek();
            for (String word : List.of("True", "False")) {
                if (text.startsWith(word, at)) {
                    at += word.length();
                    return word.equals("True");
                }
            }
            throw unexpected("True or False");
        }

        private List<Long> shape() throws MalformedFileException {
            var shape = new ArrayList<Long>();
            expect('(');
            while (!accept(')')) {
                shape.add(integer());
                boolean single = shape.size() == 1; // (3) is no tuple, (3,) is
                if (!accept(',') && (single || peek() != ')')) {
                    throw unexpected(single ? "','" : "',' or ')'");
                }
            }
            return shape;
        }

        private long integer() throws MalformedFileException {
            int start = peek() == '-' ? at + 1 : at;
            int end = start;
            while (end < text.length() && text.charAt(end) >= '0' && text.charAt(end) <= '9') {
                end++;
            }
            if (end == start || (text.charAt(start) == '0' && end > start + 1)) {
                throw unexpected("a dimension");
            }
            String digits = text.substring(at, end);
            try {
                long value = Long.parseLong(digits);
                at = end;
                return value;
            } catch (NumberFormatException e) {
                throw new MalformedFileException(
                        file, "the dimension %s overflows; dimensions stay below 2^63".formatted(clip(digits)), e);
            }
        }

        private String string(String what) throws MalformedFileException {
            char quote = peek();
            if (quote != '\'' && quote != '"') {
                throw unexpected(what);
            }
            int end = at + 1;
            while (end < text.length() && text.charAt(end) != quote) {
                if (text.charAt(end) == '\\' || text.charAt(end) < ' ') {
                    at = end;
                    throw unexpected("only plain characters in quotes");
                }
                end++;
            }
            if (end == text.length()) {
                at = end;
                throw unexpected("a closing quote");
            }
            String string = text.substring(at + 1, end);
            at = end + 1;
            return string;
        }

        private void expect(char wanted) throws MalformedFileException {
            if (!accept(wanted)) {
                throw unexpected("'" + wanted + "'");
            }
        }

        private boolean accept(char wanted) {
            if (peek() != wanted) {
                return false;
            }
            at++;
            return true;
        }

        /** Goes to the next character that is not blank; NUL, which is never right, stands for the end. */
        private char peek() {
            while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            return at < text.length() ? text.charAt(at) : '\0';
        }

        private MalformedFileException unexpected(String wanted) {
            String found =
                    at < text.length() ? "'" + Character.toString(text.codePointAt(at)) + "' is there" : "it ends";
            return unfit("expected %s at character %d, where %s".formatted(wanted, at + 1, found));
        }

        private MalformedFileException unfit(String what) {
            return new MalformedFileException(
                    file, "the header cannot be parsed: %s; right would be %s".formatted(what, EXAMPLE));
        }
    }

    /** The types of numbers that {@link #readNumbers} reads, by NumPy's names. */
    public enum NumberType {
        /** A byte, 0 for False and 1 for True. */
        BOOL("|b1"),
        /** Labels, small counts. */
        INT8("|i1"),
        /** Pixels. */
        UINT8("|u1"),
        /** Samples of sound. */
        INT16("<i2"),
        /** Pixels of more than 8 bits. */
        UINT16("<u2"),
        /** Labels. */
        INT32("<i4"),
        /** Counts. */
        UINT32("<u4"),
        /** Labels, as NumPy makes them by default. */
        INT64("<i8"),
        /** Counts. */
        UINT64("<u8"),
        /** IEEE 754 half precision. */
        FLOAT16("<f2"),
        /** Features. */
        FLOAT32("<f4"),
        /** Features, as NumPy makes them by default. */
        FLOAT64("<f8");

        private final String descr;

        NumberType(String descr) {
            this.descr = descr;
        }

        /** Returns the bytes per element. */
        public int bytes() {
            return descr.charAt(2) - '0';
        }

        /** Returns whether it has a fraction. */
        public boolean isFloat() {
            return descr.charAt(1) == 'f';
        }

        /** Returns NumPy's name of the type. */
        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * An array of numbers of any type. Any number of dimensions is possible; one without dimensions is a single number.
     *
     * <p>Two are equal if they share their memory; contents are not compared. Immutable, except for that memory.
     *
     * @param type of the elements
     * @param shape the number of elements along each dimension
     * @param fortranOrder whether the first index runs fastest; otherwise the last one does
     * @param data the elements, little-endian and without gaps; read-only, and valid as long as the memory it views
     */
    public record Numbers(NumberType type, List<Long> shape, boolean fortranOrder, MemorySegment data) {
        private static final ValueLayout.OfShort SHORT =
                ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
        private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
        private static final ValueLayout.OfLong LONG =
                ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

        /**
         * Checks that the length of the data matches the shape.
         *
         * @throws IllegalArgumentException when it does not, or when no data could be that long
         */
        public Numbers {
            shape = List.copyOf(shape);
            requireBytes(byteSize(type, shape), data, shape, type.toString());
            data = data.asReadOnly();
        }

        /** Returns the number of elements, in all dimensions together. */
        public long elements() {
            return data.byteSize() / type.bytes();
        }

        /**
         * Returns an element as a double: exactly, except for integers beyond 2^53, which are rounded.
         *
         * @param index of the element in the order in which they are stored
         */
        public double get(long index) {
            long at = index * type.bytes();
            return switch (type) {
                case BOOL -> data.get(ValueLayout.JAVA_BYTE, at) == 0 ? 0 : 1;
                case INT8 -> data.get(ValueLayout.JAVA_BYTE, at);
                case UINT8 -> Byte.toUnsignedInt(data.get(ValueLayout.JAVA_BYTE, at));
                case INT16 -> data.get(SHORT, at);
                case UINT16 -> Short.toUnsignedInt(data.get(SHORT, at));
                case INT32 -> data.get(INT, at);
                case UINT32 -> Integer.toUnsignedLong(data.get(INT, at));
                case INT64 -> data.get(LONG, at);
                case UINT64 -> unsigned(data.get(LONG, at));
                case FLOAT16 -> Float.float16ToFloat(data.get(SHORT, at));
                case FLOAT32 -> Float.intBitsToFloat(data.get(INT, at));
                case FLOAT64 -> Double.longBitsToDouble(data.get(LONG, at));
            };
        }

        /** Halves large numbers for the conversion; the lowest bit is kept for the rounding. */
        private static double unsigned(long value) {
            return value >= 0 ? value : ((value >>> 1) | (value & 1)) * 2.0;
        }

        /** Returns the length of the data of such an array in bytes. */
        static long byteSize(NumberType type, List<Long> shape) {
            return Shapes.byteSize(type.bytes(), shape, () -> "shape %s of %s".formatted(tuple(shape), type));
        }
    }

    /**
     * An array of an NPY file. Any number of dimensions is possible; one without dimensions is a single number.
     *
     * <p>Two arrays are equal if they share their memory; contents are not compared. Immutable, except for that memory.
     *
     * @param type of the elements
     * @param shape the number of elements along each dimension
     * @param fortranOrder whether the first index runs fastest; otherwise the last one does
     * @param data the elements, little-endian and without gaps; read-only, and valid as long as the memory it views
     */
    public record Array(ElementType type, List<Long> shape, boolean fortranOrder, MemorySegment data) {
        /**
         * Checks that the length of the data matches the shape.
         *
         * @throws IllegalArgumentException when it is not, or when no data could be
         */
        public Array {
            shape = List.copyOf(shape);
            descr(type); // refuses a type that is not written
            requireBytes(byteSize(type, shape), data, shape, name(type));
            data = data.asReadOnly();
        }

        /** Returns the number of elements, in all dimensions together. */
        public long elements() {
            return data.byteSize() / type.bytes();
        }

        /** Returns the length of the data of such an array in bytes. */
        static long byteSize(ElementType type, List<Long> shape) {
            Objects.requireNonNull(type);
            return Shapes.byteSize(
                    type.bytes(), shape, () -> "shape %s of %s".formatted(Npy.tuple(shape), Npy.name(type)));
        }
    }
}
