package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Schedule;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Presets and what may be changed in them. */
class ConfigurationTest {
    private static final Preset MNIST = Preset.load("mnist-robust");

    static Stream<String> methods() {
        return MethodChoice.ALL.keySet().stream();
    }

    @ParameterizedTest
    @MethodSource("methods")
    void everyMethodHasAllItNeeds(String method) {
        Configuration configuration = Configuration.of(MNIST, Map.of("method", method));
        assertThat(configuration.method().name()).isEqualTo(method);
        assertThat(configuration.values())
                .containsKeys("eta", "seed", "iterations")
                .doesNotContainValue("");
    }

    @Test
    void thePresetHasThePapersSettings() {
        Configuration c = Configuration.of(MNIST, Map.of("method", "fedcomuon-vr"));
        assertThat(c.iterations()).isEqualTo(500);
        assertThat(c.integer("tau")).isEqualTo(5);
        assertThat(c.integer("batch")).isEqualTo(20);
        assertThat(c.number("lambda")).isEqualTo(0.5);
        assertThat(c.method()).isInstanceOfSatisfying(FedCoMuonVr.class, vr -> {
            assertThat(vr.eta()).isEqualTo(Schedule.constant(0.01));
            assertThat(vr.alpha()).isEqualTo(Schedule.constant(0.2));
            assertThat(vr.beta()).isEqualTo(Schedule.constant(0.8));
            assertThat(vr.gamma()).isEqualTo(Schedule.constant(0.9));
            assertThat(vr.rho()).isEqualTo(Schedule.constant(0.2));
        });
        assertThat(Configuration.of(MNIST, Map.of("method", "comfedl")).number("exponentCap"))
                .isEqualTo(2);
    }

    @Test
    void whatIsWrittenReadsBackAsTheSame() {
        var changes = new LinkedHashMap<String, String>();
        changes.put("method", "ef21-muon");
        changes.put("eta", "cosine(0.1,  .01)");
        changes.put("up", "low-rank(2)");
        changes.put("lambda", ".25");
        Configuration first = Configuration.of(MNIST, changes);
        assertThat(first.text("eta")).isEqualTo("cosine(0.1, 0.01)");
        assertThat(first.text("lambda")).isEqualTo("0.25");
        var text = new StringBuilder();
        first.values()
                .forEach((name, value) ->
                        text.append(name).append(": ").append(value).append('\n'));
        Configuration second = Configuration.of(Preset.parse("config.yaml", text.toString()), Map.of());
        assertThat(second.values()).isEqualTo(first.values());
        assertThat(second.text("preset")).isEqualTo("mnist-robust");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "iteration;5;did you mean 'iterations'?",
                "Tau;5;did you mean 'tau'?",
                "learning_rate;0.1;these are: ",
                "gamma;0.1;method 'fedcomuon' has no gamma; it has eta, alpha, beta",
                "iterations;0;iterations = 0; a whole number from 1",
                "iterations;many;iterations = many; a whole number",
                "iterations;1.5;iterations = 1.5",
                "lambda;0;lambda = 0; a number more than 0.0",
                "lambda;NaN;lambda = NaN",
                "participation;1.01;participation = 1.01; a number more than 0.0 and up to 1.0",
                "orthogonalizer;svd;one of exact, newton-schulz, gram, auto",
                "precision;fp16;one of fp32, tf32, bf16",
                "eta;fast;eta = fast; a number, power(FACTOR, EXPONENT) or cosine(FIRST, LAST)",
                "eta;-0.1;eta = -0.1",
                "alpha;1;alpha = 1.0",
                "method;fedcomoun;did you mean 'fedcomuon'?",
                "coefficients;jordon;coefficients = jordon",
                "vectorRate;-1;vectorRate = -1; a number that is not negative"
            })
    void whatIsUnknownOrOutOfRangeIsRefusedWithWhatWouldBeRight(String name, String value, String words) {
        assertThatThrownBy(() -> Configuration.of(MNIST, Map.of(name, value)))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining(words)
                .satisfies(e -> assertThat(e.getMessage().lines()).hasSize(1));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "'[1, 2]';not a preset",
                "'eta: [1]';eta is not a single value",
                "'a: b: c';is not YAML",
                "'methods: {fedsomething: {eta: 1}}';no method is called 'fedsomething'"
            })
    void whatIsNoPresetIsRefused(String text, String words) {
        assertThatThrownBy(() -> Preset.parse("mine.yaml", text))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining(words);
    }

    @Test
    void aMissingPresetIsNamed() {
        assertThatThrownBy(() -> Preset.load("mnist-robus")).hasMessageContaining("did you mean 'mnist-robust'?");
        assertThatThrownBy(() -> Preset.load("missing.yaml")).hasMessageContaining("missing.yaml cannot be read");
    }

    @Test
    void aSettingThatNobodyGivesIsAskedFor() {
        Preset bare = Preset.parse("bare.yaml", "seed: 1");
        assertThatThrownBy(() -> Configuration.of(bare, Map.of()))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("is not set")
                .hasMessageContaining("--set ");
    }
}
