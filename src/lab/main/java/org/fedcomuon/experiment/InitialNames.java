package org.fedcomuon.experiment;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.UnaryOperator;

/** The names that the blocks of a model have in the file of its initial weights. */
final class InitialNames {
    /** Which tensor is for which block; blocks that are not listed have the same name in the file. */
    static final Setting SETTING = new Setting(
                    "initNames", "a list such as conv1.weight=features.0.weight,conv1.bias=features.0.bias", text -> {
                        parse(text);
                        return text;
                    })
            .optional();

    private InitialNames() {}

    /** Returns the name in the file of a block. */
    static UnaryOperator<String> of(Configuration c) {
        Map<String, String> names = c.has(SETTING.name()) ? parse(c.text(SETTING.name())) : Map.of();
        return block -> names.getOrDefault(block, block);
    }

    private static Map<String, String> parse(String text) {
        var names = new LinkedHashMap<String, String>();
        for (String pair : text.split(",", -1)) {
            int equals = pair.indexOf('=');
            if (equals < 1 || equals == pair.length() - 1) {
                throw new IllegalArgumentException("no pair: " + pair);
            }
            if (names.put(
                            pair.substring(0, equals).strip(),
                            pair.substring(equals + 1).strip())
                    != null) {
                throw new IllegalArgumentException("named twice: " + pair);
            }
        }
        return names;
    }
}
