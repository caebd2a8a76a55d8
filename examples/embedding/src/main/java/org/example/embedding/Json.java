package org.example.embedding;

import static java.util.stream.Collectors.joining;

import java.util.regex.Pattern;
import tools.jackson.core.JacksonException;
import tools.jackson.core.StreamReadFeature;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.MapperFeature;
import tools.jackson.databind.cfg.EnumFeature;
import tools.jackson.databind.json.JsonMapper;

/**
 * JSON of requests and of files, which both may be anything. Nothing is guessed: a number that is null, a string or a
 * fraction, a field that is missing, unknown or there twice, and what follows the value are mistakes. Thread-safe.
 */
final class Json {
    private static final JsonMapper MAPPER = JsonMapper.builder()
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .enable(
                    DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES,
                    DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES,
                    DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES,
                    DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES,
                    DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
            .enable(EnumFeature.FAIL_ON_NUMBERS_FOR_ENUMS)
            .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
            .build();

    private static final Pattern FOR_PROGRAMMERS =
            Pattern.compile("(\\R| \\((set|but|token|bound|index) |: not allowed).*", Pattern.DOTALL);

    private Json() {}

    /**
     * Reads a record.
     *
     * @throws IllegalArgumentException when the text is not one; its message is a sentence
     */
    static <T> T read(byte[] text, Class<T> type) {
        T value;
        try {
            value = MAPPER.readValue(text, type);
        } catch (JacksonException e) {
            throw new IllegalArgumentException(sentence(e), e);
        }
        if (value == null) {
            throw new IllegalArgumentException("null is not an object");
        }
        return value;
    }

    /** Returns what is wrong and where, without what a programmer could set to allow it. */
    private static String sentence(JacksonException e) {
        if (e.getCause() instanceof IllegalArgumentException ours) {
            return ours.getMessage();
        }
        String where = e.getPath().stream().map(each -> each.getPropertyName() + ": ").collect(joining());
        return where + FOR_PROGRAMMERS.matcher(e.getOriginalMessage()).replaceFirst("");
    }

    static String write(Object value) {
        return MAPPER.writeValueAsString(value);
    }
}
