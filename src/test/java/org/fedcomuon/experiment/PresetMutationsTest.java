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
import org.fedcomuon.Soak;
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
        int read = 0;
        for (int i = 0; i < MUTATIONS; i++) {
            String text = mutate(presets.get(random.nextInt(presets.size())), random);
            byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            if (bytes.length > 0 && random.nextInt(8) == 0) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
            }
            Files.write(file, bytes);
            try {
                Configuration.of(Preset.read(file), Map.of());
                read++;
            } catch (ConfigurationException e) {
                assertThat(e.getMessage()).as(text).isNotBlank().doesNotContainPattern("\\R");
            } catch (RuntimeException | Error e) {
                throw new AssertionError(
                        "%s; mutation %d, replay with -Dtests.seed=%d: %s".formatted(e, i, SEED, text), e);
            }
        }
        assertThat(read).isBetween(MUTATIONS / 100, MUTATIONS * 9 / 10); // or else they are too wild, or too tame
    }

    private static String mutate(String original, Random random) {
        var text = new StringBuilder(original);
        for (int changes = 1 + random.nextInt(3); changes > 0; changes--) {
            int at = random.nextInt(text.length() + 1);
            String piece = PIECES.get(random.nextInt(PIECES.size()));
            switch (random.nextInt(5)) {
                case 0 -> text.setLength(at);
                case 1 -> text.insert(at, piece);
                case 2 -> text.replace(at, Math.min(text.length(), at + piece.length()), piece);
                case 3 -> text.delete(at, Math.min(text.length(), at + 1 + random.nextInt(12)));
                default -> text.insert(at, piece.repeat(1 + random.nextInt(2000)));
            }
        }
        return text.toString();
    }
}
