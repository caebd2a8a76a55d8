package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.fedcomuon.testing.Mutations;
import org.fedcomuon.testing.Soak;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whatever a user's YAML says: a configuration, or a line that names what is wrong. */
class PresetMutationsTest {
    private static final long SEED = Long.getLong("tests.seed", 17_11_2026L);
    private static final int MUTATIONS = Soak.mutations(3_000);

    private static final List<String> PIECES = List.of(
            ":",
            ": ",
            "\n",
            "- ",
            "  ",
            "{",
            "}",
            "[",
            "]",
            "&a ",
            "*a",
            "!!java.lang.String ",
            "|",
            ">",
            "\"",
            "'",
            "#",
            "~",
            "null",
            "true",
            ".nan",
            ".inf",
            "-1",
            "0",
            "1e999",
            "9223372036854775808",
            "0x10",
            "../../etc/passwd",
            "\t",
            "\u0000",
            "\ud83d\ude00",
            "---\n",
            "...\n",
            "%TAG ! x\n",
            "<<: *a",
            "? ",
            "methods:\n",
            "where:\n");

    @TempDir
    private Path directory;

    private static List<String> presets() throws IOException {
        var texts = new ArrayList<String>();
        for (String name : Preset.NAMES) {
            try (InputStream in = Preset.class.getResourceAsStream("presets/%s.yaml".formatted(name))) {
                texts.add(new String(in.readAllBytes(), StandardCharsets.UTF_8));
            }
        }
        return texts;
    }

    /** The library that reads YAML trips over one that lies across the end of its buffer. */
    @Test
    void aCharacterOfTwoHalvesMayBeAnywhere() throws IOException {
        String preset = presets().getFirst();
        for (int before = 900; before < 2200; before++) {
            String text = "#%s\ud83d\ude00\n%s".formatted("x".repeat(before), preset);
            assertThat(Preset.parse("mine.yaml", text).settings()).containsEntry("data", "mnist");
        }
    }

    @Test
    @Tag(Soak.TAG)
    void mutationsAreReadOrRefused() throws IOException {
        var random = new Random(SEED);
        List<String> presets = presets();
        Path file = directory.resolve("mine.yaml");
        try (var mutations =
                new Mutations("YAML presets", SEED, ConfigurationException.class).allocating(256, 4 << 20)) {
            for (int i = 0; i < MUTATIONS; i++) {
                String text = Mutations.text(presets.get(random.nextInt(presets.size())), PIECES, random);
                byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
                if (bytes.length > 0 && random.nextInt(8) == 0) {
                    bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
                }
                Files.write(file, bytes);
                mutations.feed(bytes, "", () -> Configuration.of(Preset.read(file), Map.of()));
            }
            mutations.end(0.01, 0.9);
        }
    }
}
