package org.fedcomuon.format;

import static org.fedcomuon.internal.file.FileTransfer.clip;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.regex.Pattern;
import org.fedcomuon.file.MalformedFileException;
import org.fedcomuon.internal.file.FileTransfer;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.ObjectWriteContext;
import tools.jackson.core.StreamReadConstraints;
import tools.jackson.core.TokenStreamFactory;
import tools.jackson.core.json.JsonFactory;

/**
 * The layout of a safetensors file: eight bytes of length, JSON of that length, then the data of all tensors without
 * gaps. Read token by token, so that nothing grows beyond what the file itself fills.
 *
 * @param dataAt where the data starts in the file, and the header ends
 * @param metadata in the order of the header
 * @param tensors in the order of their data
 * @param sealAt where the digits of the checksum are in the file, or {@link #UNSEALED}
 */
record SafetensorsHeader(
        long dataAt,
        SequencedMap<String, String> metadata,
        SequencedMap<String, SafetensorsFile.Tensor> tensors,
        long sealAt) {
    static final String METADATA = "__metadata__";
    static final String SEAL = "sha256";
    static final long UNSEALED = -1;

    /** The limit of the reference implementation. */
    private static final int MAX_LENGTH = 100_000_000;

    /** The alignment of the data in the file, which other programs may map. */
    private static final int ALIGNMENT = 8;

    private static final int DIGITS = 64;
    /** Small letters only: with both, a flipped bit could turn a checksum into an equal one. */
    private static final Pattern SEALED = Pattern.compile("[0-9a-f]{" + DIGITS + "}");

    private static final int DIGEST_CHUNK = 1 << 20;
    private static final String EXAMPLE = "{\"w\": {\"dtype\": \"F32\", \"shape\": [2, 3], \"data_offsets\": [0, 24]}}";

    /**
     * Names are kept apart for each file: a table of all that were ever seen would grow for ever. What is long enough
     * for a header is no attack on this parser, which keeps one token at a time.
     */
    private static final JsonFactory JSON = JsonFactory.builder()
            .disable(TokenStreamFactory.Feature.CANONICALIZE_PROPERTY_NAMES)
            .streamReadConstraints(StreamReadConstraints.builder()
                    .maxNameLength(MAX_LENGTH)
                    .maxStringLength(MAX_LENGTH)
                    .build())
            .build();

    long dataBytes() {
        return tensors.isEmpty() ? 0 : tensors.lastEntry().getValue().end();
    }

    long fileBytes() {
        return dataAt + dataBytes();
    }

    // ---- reading

    static SafetensorsHeader read(Path file, FileChannel channel) throws IOException {
        long size = channel.size();
        if (size < Long.BYTES) {
            throw new MalformedFileException(
                    file,
                    size == 0
                            ? "the file is empty; a safetensors file starts with the length of its header"
                            : "truncated: the whole file is %d bytes; the length of the header alone is 8"
                                    .formatted(size));
        }
        long length = FileTransfer.bytes(channel, 0, Long.BYTES).getLong();
        if (Long.compareUnsigned(length, MAX_LENGTH) > 0) {
            throw new MalformedFileException(
                    file,
                    "not a safetensors file: as the length of a header, its first 8 bytes say %s; at most %d can be right"
                            .formatted(Long.toUnsignedString(length), MAX_LENGTH));
        }
        long dataAt = Long.BYTES + length;
        if (dataAt > size) {
            throw new MalformedFileException(
                    file,
                    "truncated header: it claims %d bytes, but only %d are there".formatted(length, size - Long.BYTES));
        }
        SafetensorsHeader header = parse(file, FileTransfer.bytes(channel, Long.BYTES, (int) length));
        long present = size - dataAt;
        long needed = header.dataBytes();
        if (present < needed) {
            throw new MalformedFileException(
                    file, "truncated data: %d bytes are there, the tensors need %d".formatted(present, needed));
        }
        if (present > needed) {
            throw new MalformedFileException(
                    file,
                    "%d trailing bytes after the data; the tensors need %d bytes, and there the file has to end"
                            .formatted(present - needed, needed));
        }
        return header;
    }

    private static SafetensorsHeader parse(Path file, ByteBuffer json) throws MalformedFileException {
        int length = json.remaining();
        // Ahead of JSON, which may begin with spaces; and of Unicode, to tell what is no text at all.
        if (length == 0 || json.get(0) != '{') {
            throw new MalformedFileException(
                    file,
                    "not a safetensors file: the header has to start with '{' but %s"
                            .formatted(length == 0 ? "is empty" : "starts with byte 0x%02x".formatted(json.get(0))));
        }
        CharBuffer text;
        try {
            text = StandardCharsets.UTF_8.newDecoder().decode(json);
        } catch (CharacterCodingException e) {
            throw new MalformedFileException(file, "the header is not UTF-8, as it has to be", e);
        }
        try (JsonParser parser =
                JSON.createParser(ObjectReadContext.empty(), text.array(), text.arrayOffset(), text.remaining())) {
            return new Parser(file, text, parser).header(Long.BYTES + (long) length);
        } catch (JacksonException e) {
            // The message proper has no second line with the place, which is one in the text and not in the file.
            throw new MalformedFileException(
                    file,
                    "the header is not JSON: %s; right would be %s"
                            .formatted(clip(Objects.toString(e.getOriginalMessage()), 160), EXAMPLE),
                    e);
        }
    }

    /** Understands exactly the JSON that the format allows; each method starts on the first token of its value. */
    private static final class Parser {
        private final Path file;
        private final CharBuffer text;
        private final JsonParser json;

        private final SequencedMap<String, String> metadata = new LinkedHashMap<>();
        private long sealAt = UNSEALED;

        Parser(Path file, CharBuffer text, JsonParser json) {
            this.file = file;
            this.text = text;
            this.json = json;
        }

        SafetensorsHeader header(long dataAt) throws MalformedFileException {
            var tensors = new LinkedHashMap<String, SafetensorsFile.Tensor>();
            boolean described = false;
            json.nextToken(); // '{', as was checked before
            while (json.nextToken() != JsonToken.END_OBJECT) {
                String name = unicode(json.currentName());
                boolean isMetadata = name.equals(METADATA);
                if (isMetadata ? described : tensors.containsKey(name)) {
                    throw unfit("the name '%s' is there twice".formatted(clip(name)));
                }
                json.nextToken();
                if (isMetadata) {
                    described = true;
                    metadata();
                } else {
                    tensors.put(name, tensor(name));
                }
            }
            if (json.nextToken() != null) {
                throw unfit("after the last '}' comes more than spaces");
            }
            return new SafetensorsHeader(
                    dataAt, Collections.unmodifiableSequencedMap(metadata), inOrder(tensors.values()), sealAt);
        }

        private void metadata() throws MalformedFileException {
            require(JsonToken.START_OBJECT, METADATA, "an object of strings");
            while (json.nextToken() != JsonToken.END_OBJECT) {
                String key = unicode(json.currentName());
                json.nextToken();
                require(JsonToken.VALUE_STRING, "the metadata '%s'".formatted(clip(key)), "a string");
                String value = unicode(json.getString());
                if (metadata.put(key, value) != null) {
                    throw unfit("the metadata '%s' is there twice".formatted(clip(key)));
                }
                if (key.equals(SEAL)) {
                    seal(value);
                }
            }
        }

        /** Finds the digits in the file; written with escapes, they are none that could be taken as zeros. */
        private void seal(String value) {
            int start = (int) json.currentTokenLocation().getCharOffset() + 1; // behind the quote
            if (SEALED.matcher(value).matches()
                    && text.subSequence(start, start + DIGITS).toString().equals(value)) {
                sealAt = (long) Long.BYTES
                        + StandardCharsets.UTF_8
                                .encode(text.subSequence(0, start))
                                .remaining();
            }
        }

        private SafetensorsFile.Tensor tensor(String name) throws MalformedFileException {
            String tensor = "tensor '%s'".formatted(clip(name));
            require(JsonToken.START_OBJECT, tensor, "an object");
            var fields = new LinkedHashMap<String, List<Long>>();
            Dtype dtype = null;
            while (json.nextToken() != JsonToken.END_OBJECT) {
                String field = json.currentName();
                json.nextToken();
                List<Long> value = List.of();
                switch (field) {
                    case "dtype" -> dtype = dtype(tensor);
                    case "shape", "data_offsets" -> value = integers("%s of %s".formatted(field, tensor));
                    default -> throw unfit("%s has an unknown field '%s'".formatted(tensor, clip(field)));
                }
                if (fields.put(field, value) != null) {
                    throw unfit("%s of %s is there twice".formatted(field, tensor));
                }
            }
            List<Long> shape = fields.get("shape");
            List<Long> offsets = fields.get("data_offsets");
            if (dtype == null || shape == null || offsets == null) {
                var missing = new ArrayList<>(List.of("dtype", "shape", "data_offsets"));
                missing.removeAll(fields.keySet());
                throw unfit("%s has no %s".formatted(tensor, missing.getFirst()));
            }
            return tensor(name, tensor, dtype, shape, offsets);
        }

        private SafetensorsFile.Tensor tensor(
                String name, String tensor, Dtype dtype, List<Long> shape, List<Long> offsets)
                throws MalformedFileException {
            if (offsets.size() != 2 || offsets.getFirst() > offsets.getLast()) {
                throw new MalformedFileException(
                        file,
                        "data_offsets %s of %s are wrong; they have to be two, the start and the end"
                                .formatted(Shapes.list(offsets), tensor));
            }
            long needed;
            try {
                needed = SafetensorsWriter.Tensor.byteSize(name, dtype, shape);
            } catch (IllegalArgumentException e) {
                throw new MalformedFileException(file, Objects.toString(e.getMessage()), e);
            }
            long start = offsets.getFirst();
            long bytes = offsets.getLast() - start;
            if (bytes != needed) {
                throw new MalformedFileException(
                        file,
                        "data_offsets %s of %s are %d bytes; shape %s of %s needs %d"
                                .formatted(Shapes.list(offsets), tensor, bytes, Shapes.list(shape), dtype, needed));
            }
            return new SafetensorsFile.Tensor(name, dtype, shape, start, bytes);
        }

        private Dtype dtype(String tensor) throws MalformedFileException {
            require(JsonToken.VALUE_STRING, "dtype of " + tensor, "a string");
            String name = json.getString();
            for (Dtype dtype : Dtype.values()) {
                if (dtype.name().equals(name)) {
                    return dtype;
                }
            }
            throw new MalformedFileException(
                    file,
                    "dtype '%s' of %s is not supported; these are: %s"
                            .formatted(clip(name), tensor, Arrays.toString(Dtype.values())));
        }

        private List<Long> integers(String what) throws MalformedFileException {
            require(JsonToken.START_ARRAY, what, "a list of integers");
            var integers = new ArrayList<Long>();
            while (json.nextToken() != JsonToken.END_ARRAY) {
                require(JsonToken.VALUE_NUMBER_INT, "an entry in " + what, "an integer");
                String digits = json.getString();
                if (digits.startsWith("-")) {
                    throw new MalformedFileException(
                            file, "%s has the negative entry %s; every one is 0 or more".formatted(what, clip(digits)));
                }
                try {
                    integers.add(Long.parseLong(digits));
                } catch (NumberFormatException e) {
                    throw new MalformedFileException(
                            file, "%s overflows by %s; entries stay below 2^63".formatted(what, clip(digits)), e);
                }
            }
            return integers;
        }

        /**
         * Returns the tensors in order, without gaps or overlap; an empty tensor lies between two others, or at an end.
         */
        private SequencedMap<String, SafetensorsFile.Tensor> inOrder(Iterable<SafetensorsFile.Tensor> tensors)
                throws MalformedFileException {
            var sorted = new ArrayList<SafetensorsFile.Tensor>();
            tensors.forEach(sorted::add);
            sorted.sort(Comparator.comparingLong(SafetensorsFile.Tensor::offset)
                    .thenComparingLong(SafetensorsFile.Tensor::end));
            var inOrder = new LinkedHashMap<String, SafetensorsFile.Tensor>();
            long end = 0;
            for (SafetensorsFile.Tensor tensor : sorted) {
                if (tensor.offset() != end) {
                    throw new MalformedFileException(
                            file,
                            "the data of tensor '%s' starts at %d %s; it has to start at %d, where the one before ends"
                                    .formatted(
                                            clip(tensor.name()),
                                            tensor.offset(),
                                            tensor.offset() > end ? "after a gap" : "and overlaps",
                                            end));
                }
                end = tensor.end();
                inOrder.put(tensor.name(), tensor);
            }
            return Collections.unmodifiableSequencedMap(inOrder);
        }

        private void require(JsonToken token, String what, String right) throws MalformedFileException {
            if (json.currentToken() != token) {
                throw unfit("%s has to be %s".formatted(what, right));
            }
        }

        private String unicode(String string) throws MalformedFileException {
            if (!isUnicode(string)) {
                throw unfit("the string '%s' has half a surrogate pair".formatted(clip(string)));
            }
            return string;
        }

        private MalformedFileException unfit(String problem) {
            return new MalformedFileException(
                    file, "the header is wrong: %s; right would be %s".formatted(problem, EXAMPLE));
        }
    }

    // ---- writing

    /**
     * Returns the bytes of a file up to its data, with zeros for the checksum.
     *
     * @throws IllegalArgumentException when no such file can be
     */
    static byte[] compose(Map<String, String> metadata, List<SafetensorsWriter.Tensor> tensors) {
        var names = new LinkedHashMap<String, SafetensorsWriter.Tensor>();
        for (SafetensorsWriter.Tensor tensor : tensors) {
            if (names.put(tensor.name(), tensor) != null) {
                throw new IllegalArgumentException("two tensors are called '%s'".formatted(clip(tensor.name())));
            }
        }
        if (metadata.containsKey(SEAL)) {
            throw new IllegalArgumentException(
                    "the metadata '%s' is the checksum, which is written always".formatted(SEAL));
        }
        var out = new ByteArrayOutputStream();
        try (JsonGenerator json = JSON.createGenerator(ObjectWriteContext.empty(), out)) {
            json.writeStartObject();
            json.writeObjectPropertyStart(METADATA);
            metadata.forEach((key, value) -> {
                requireUnicode(key, "a key of the metadata");
                requireUnicode(value, "the metadata '%s'".formatted(clip(key)));
                json.writeStringProperty(key, value);
            });
            json.writeStringProperty(SEAL, "0".repeat(DIGITS));
            json.writeEndObject();
            long offset = 0;
            for (SafetensorsWriter.Tensor tensor : tensors) {
                long end = end(offset, tensor);
                json.writeObjectPropertyStart(tensor.name());
                json.writeStringProperty("dtype", tensor.dtype().name());
                writeIntegers(json, "shape", tensor.shape());
                writeIntegers(json, "data_offsets", List.of(offset, end));
                json.writeEndObject();
                offset = end;
            }
            json.writeEndObject();
        }
        int length = Math.ceilDiv(out.size(), ALIGNMENT) * ALIGNMENT;
        if (length > MAX_LENGTH) {
            throw new IllegalArgumentException(
                    "%d tensors with their metadata need a header of %d bytes; at most %d can be"
                            .formatted(tensors.size(), length, MAX_LENGTH));
        }
        byte[] header = new byte[Long.BYTES + length];
        Arrays.fill(header, (byte) ' ');
        ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).putLong(length).put(out.toByteArray());
        return header;
    }

    /** Parses what {@link #compose} made, as a reader of the file will. */
    static SafetensorsHeader composed(Path file, byte[] header) throws MalformedFileException {
        return parse(
                file,
                ByteBuffer.wrap(header, Long.BYTES, header.length - Long.BYTES).slice());
    }

    private static long end(long offset, SafetensorsWriter.Tensor tensor) {
        try {
            long end = Math.addExact(offset, tensor.bytes());
            Math.addExact(end, Long.BYTES + MAX_LENGTH); // the header is part of the file as well
            return end;
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(
                    "with tensor '%s' the file would reach 2^63 bytes".formatted(clip(tensor.name())), e);
        }
    }

    private static void writeIntegers(JsonGenerator json, String name, List<Long> values) {
        json.writeArrayPropertyStart(name);
        values.forEach(json::writeNumber);
        json.writeEndArray();
    }

    static void requireUnicode(String string, String what) {
        if (!isUnicode(string)) {
            throw new IllegalArgumentException(
                    "%s has half a surrogate pair: '%s'".formatted(what, MalformedFileException.oneLine(clip(string))));
        }
    }

    private static boolean isUnicode(String string) {
        return StandardCharsets.UTF_8.newEncoder().canEncode(string);
    }

    // ---- the checksum

    /** Returns the checksum of the whole file, with zeros in place of the checksum itself. */
    String seal(FileChannel channel) throws IOException {
        MessageDigest digest;
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
        byte[] chunk = new byte[(int) Math.min(DIGEST_CHUNK, fileBytes())];
        for (long at = 0; at < fileBytes(); at += chunk.length) {
            int length = (int) Math.min(chunk.length, fileBytes() - at);
            FileTransfer.fill(channel, at, ByteBuffer.wrap(chunk, 0, length));
            // The digits that lie in this chunk.
            int from = Math.clamp(sealAt - at, 0, length);
            int to = Math.clamp(sealAt + DIGITS - at, 0, length);
            Arrays.fill(chunk, from, to, (byte) '0');
            digest.update(chunk, 0, length);
        }
        return HexFormat.of().formatHex(digest.digest());
    }
}
