package org.fedcomuon.cli;

import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** JSON that scripts and people can read: indented, fields in the order given. */
public final class Json {
    private static final JsonMapper MAPPER =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

    private Json() {}

    public static String pretty(Object value) {
        return MAPPER.writeValueAsString(value);
    }
}
