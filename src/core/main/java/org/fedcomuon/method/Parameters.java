package org.fedcomuon.method;

import java.util.LinkedHashMap;
import java.util.Map;

/** Hyper-parameters by name, in the order they were given. */
final class Parameters extends LinkedHashMap<String, Object> {
    private static final long serialVersionUID = 1L;

    private Parameters() {}

    /** Names and values in turns. */
    static Parameters of(Object... namesAndValues) {
        var all = new Parameters();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            all.and(namesAndValues[i].toString(), namesAndValues[i + 1]);
        }
        return all;
    }

    Parameters and(String name, Object value) {
        put(name, value);
        return this;
    }

    Parameters and(Map<String, Object> others) {
        putAll(others);
        return this;
    }
}
