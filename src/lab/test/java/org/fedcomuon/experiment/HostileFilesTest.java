package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that malicious presets and directories of runs are refused or harmless, in a short time. */
@Timeout(20)
class HostileFilesTest {
    private static final int DEEP = 100_000;

    @TempDir
    private Path directory;

    /** A billion laughs: ten times ten times ... of a word. Jackson takes an alias for a text, and nothing expands. */
    @Test
    void aliasesDoNotExpand() {
        var text = new StringBuilder("a0: &a0 lol\n");
        for (int i = 1; i < 30; i++) {
            text.append(
                    "a%d: &a%d [%s]\n".formatted(i, i, "*a%d, ".formatted(i - 1).repeat(10)));
        }
        refusedPreset(text.toString());
        refusedPreset("a: &a [*a]\n"); // within itself
    }

    @Test
    void nestingHasAnEnd() {
        refusedPreset("a: " + "[".repeat(DEEP));
        refusedPreset("a: " + "{b: ".repeat(DEEP));
        refusedPreset("a: " + "[".repeat(DEEP) + "]".repeat(DEEP));
    }

    @Test
    void tagsMakeNoObjects() {
        refusedPreset(
                "a: !!javax.script.ScriptEngineManager [!!java.net.URLClassLoader [[!!java.net.URL [\"http://x\"]]]]");
        Preset preset = Preset.parse("x.yaml", "a: !!java.lang.ProcessBuilder text");
        assertThat(preset.settings()).containsExactly(Map.entry("a", "text"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"1e1000000000", "-1e-1000000000", "0x7fffffffffffffffffff", ".inf", "1_0_0_0e999999999"})
    void hugeNumbersAreOutOfRange(String number) {
        refusedPreset("lambda: " + number);
        refusedPreset("seed: " + number);
    }

    @Test
    void aNumberOfAMillionDigitsIsRefused() {
        refusedPreset("seed: " + "9".repeat(1_000_000));
    }

    /** On top of one that is right, so that it is the text that is refused. */
    private static void refusedPreset(String text) {
        assertThatThrownBy(() -> {
                    Preset hostile = Preset.parse("hostile.yaml", "extends: mnist-robust\n" + text);
                    Configuration.of(hostile, Map.of());
                })
                .isInstanceOf(ConfigurationException.class)
                .satisfies(e -> assertThat(e.getMessage()).doesNotContain("\n"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "../../etc/passwd",
                "/etc/passwd",
                "mnist-robust/../../x",
                "presets/mnist-robust",
                "",
                "..",
                "a\0.yaml"
            })
    void whatIsNoPresetsNameIsNoPath(String name) {
        assertThatThrownBy(() -> Preset.load(name)).isInstanceOf(ConfigurationException.class);
    }

    @Test
    void whatHasNoEndIsNoPreset() throws IOException {
        Path link = Files.createSymbolicLink(directory.resolve("zero.yaml"), Path.of("/dev/zero"));
        assertThatThrownBy(() -> Preset.load(link.toString())).hasMessageContaining("is not a regular file");
        Path large = Files.writeString(directory.resolve("large.yaml"), " ".repeat((1 << 20) + 1));
        assertThatThrownBy(() -> Preset.load(large.toString())).hasMessageContaining("is larger than 1048576 bytes");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "../../../etc/cron.d/x",
                "/",
                "..",
                ".",
                "//",
                "a/../..",
                "-rf",
                "~/.bashrc",
                "a\0b",
                "a\nb",
                "$(reboot)",
                "C:\\x",
                "\u202egnp"
            })
    void theNameOfADirectoryStaysWithinItsParent(String preset) throws IOException {
        String name = named(preset);
        assertThat(name).matches("[\\p{L}\\p{N}_][\\p{L}\\p{N}._-]*-fedcomuon-[0-9]+");
        assertThat(directory.resolve(name).normalize().getParent()).isEqualTo(directory);
        Files.createDirectory(directory.resolve(name));
    }

    @Test
    void theNameOfADirectoryIsShortEnough() throws IOException {
        Files.createDirectory(directory.resolve(named("\uD83D\uDE00\u5B57".repeat(500))));
        Files.createDirectory(directory.resolve(named("\uD840\uDC00".repeat(500))));
        assertThat(named("/home/me/my preset.yaml"))
                .isEqualTo("my-preset.yaml-fedcomuon-" + named("x").replaceFirst(".*-", ""));
    }

    /** Whatever a preset calls itself. */
    private static String named(String name) {
        Preset usual = Preset.load("mnist-robust");
        var preset = new Preset(
                name, usual.settings(), usual.methods(), usual.cases(), Optional.empty(), List.of(), Set.of());
        return Configuration.of(preset, Map.of()).directoryName();
    }

    // ---- directories of runs

    private void run(String config, String metrics, String summary) throws IOException {
        Files.writeString(directory.resolve("config.yaml"), config);
        Files.writeString(directory.resolve("metrics.jsonl"), metrics);
        Files.writeString(directory.resolve("summary.json"), summary);
    }

    private void refusedRun() {
        assertThatThrownBy(() -> RunRecord.read(directory)).isInstanceOf(RunRecordException.class);
    }

    @Test
    void deepFilesOfARunAreRefused() throws IOException {
        run("a: " + "[".repeat(DEEP), "{\"step\": 1}\n", "{}");
        refusedRun();
        run("a: 1", "{\"step\": " + "[".repeat(DEEP) + "\n", "{}");
        refusedRun();
        run("a: 1", "{\"step\": 1}\n", "{\"a\": " + "[".repeat(DEEP) + "]".repeat(DEEP) + "}");
        refusedRun();
        run("a: 1", "{\"step\": 1}\n", "{\"a\":".repeat(DEEP));
        refusedRun();
    }

    @Test
    void hugeNumbersOfARunAreReadOrRefused() throws IOException {
        run("a: 1e1000000000", "{\"step\": 1, \"x\": 1e999999999}\n", "{\"y\": 1e-999999999}");
        RunRecord run = RunRecord.read(directory);
        assertThat(run.config())
                .hasEntrySatisfying("a", text -> assertThat(text).hasSizeLessThan(20));
        assertThat(run.last("x")).hasValue(Double.POSITIVE_INFINITY);
        run("a: 1", "{\"step\": 1e999999999}\n", "{}");
        refusedRun();
        run("a: 1", "{\"step\": " + "9".repeat(1_000_000) + "}\n", "{}");
        refusedRun();
    }

    /** The page that is made of a run is shown to others; what the reader of a link may see, they may not. */
    @ParameterizedTest
    @ValueSource(strings = {"config.yaml", "metrics.jsonl", "summary.json"})
    void linksInARunsDirectoryAreNotFollowed(String name) throws IOException {
        run("a: 1", "{\"step\": 1}\n", "{}");
        RunRecord.read(directory);
        Path secret = Files.move(directory.resolve(name), directory.resolve("secret"));
        Files.createSymbolicLink(directory.resolve(name), secret);
        assertThatThrownBy(() -> RunRecord.read(directory))
                .isInstanceOf(RunRecordException.class)
                .hasMessageContaining(name)
                .hasMessageContaining("is a link");
    }
}
