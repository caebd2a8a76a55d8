package org.fedcomuon.cli;

import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** JSON as scripts and people read it: indented, fields in the order given. */
final class Json {
    private static final JsonMapper MAPPER =
            JsonMapper.builder().enable(SerializationFeature.INDENT_OUTPUT).build();

    private Json() {}

    static String pretty(Object value) {
        return MAPPER.writeValueAsString(value);
    }
}
