package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.fedcomuon.device.NewtonSchulzSpec;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.linalg.NewtonSchulz;
import org.fedcomuon.method.FedCoMuonVr;
import org.fedcomuon.method.Muon;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Presets and what may be changed in them. */
class ConfigurationTest {
    private static final Preset MNIST = Preset.load("mnist-robust");

    static Stream<String> methods() {
        return MethodChoice.ALL.names().stream();
    }

    @ParameterizedTest
    @MethodSource("methods")
    void everyMethodHasAllItNeeds(String method) {
        for (String preset : Preset.NAMES) {
            Configuration configuration = Configuration.of(Preset.load(preset), Map.of("method", method));
            assertThat(configuration.method().name()).isEqualTo(method);
            assertThat(configuration.values())
                    .containsKeys("eta", "seed", "iterations")
                    .doesNotContainValue("");
        }
    }

    /** The paper's tables, typed in again. */
    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "wikitext2-robust;fedavg;eta=0.1",
                "wikitext2-robust;fedmuon;eta=0.03 beta=0.3",
                "wikitext2-robust;fedmuon-lga;eta=0.01 alpha=0.5 beta=0.8",
                "wikitext2-robust;fedmuon-bc;eta=0.03 alpha=0.1",
                "wikitext2-robust;comfedl;eta=0.2",
                "wikitext2-robust;local-scgdm;eta=0.2 alpha=0.2 gamma=0.1",
                "wikitext2-robust;fedcomuon;eta=0.02 alpha=0.2 beta=0.2 depth=8 width=768 heads=8 hidden=1024",
                "wikitext2-robust;fedcomuon-vr;eta=0.03 alpha=0.3 beta=0.8 gamma=0.6 rho=0.2 iterations=500 tau=5",
                "wikitext2-robust;fedcomuon;dropout=0.1 length=128 batch=32 share=0.5 clients=10 split=one-large",
                "cifar-maml-cnn;fedmaml;inner=0.03 eta=0.1",
                "cifar-maml-cnn;fedmuon;inner=0.05 eta=0.1 beta=0.4",
                "cifar-maml-cnn;fedmuon-lga;inner=0.05 eta=0.1 alpha=0.5 beta=0.8",
                "cifar-maml-cnn;fedmuon-bc;inner=0.05 eta=0.1 alpha=0.1",
                "cifar-maml-cnn;comfedl;inner=0.05 eta=0.1",
                "cifar-maml-cnn;local-scgdm;inner=0.01 eta=0.1 alpha=0.9 gamma=0.9",
                "cifar-maml-cnn;fedcomuon;inner=0.03 eta=0.1 alpha=0.7 beta=0.7 lambda=0.5 batch=64",
                "cifar-maml-cnn;fedcomuon-vr;inner=0.03 eta=0.1 alpha=0.1 beta=0.8 gamma=0.7 rho=0.2",
                "cifar-maml-cnn;fedcomuon;iterations=600 tau=5 chi=0.3 wide=96 wider=196 narrow=10 dense=1000",
                "cifar-maml-vit;fedmaml;inner=0.05 eta=0.1",
                "cifar-maml-vit;fedmuon;inner=0.005 eta=0.01 beta=0.3",
                "cifar-maml-vit;fedmuon-lga;inner=0.005 eta=0.01 alpha=0.5 beta=0.8",
                "cifar-maml-vit;fedmuon-bc;inner=0.005 eta=0.01 alpha=0.1",
                "cifar-maml-vit;comfedl;inner=0.003 eta=0.1",
                "cifar-maml-vit;local-scgdm;inner=0.003 eta=0.05 alpha=0.3 gamma=0.9",
                "cifar-maml-vit;fedcomuon;inner=0.005 eta=0.01 alpha=0.9 beta=0.3 iterations=1500 tau=5 batch=32",
                "cifar-maml-vit;fedcomuon-vr;inner=0.005 eta=0.01 alpha=0.8 beta=0.8 gamma=0.9 rho=0.2",
                "cifar-maml-vit;fedcomuon;depth=12 width=192 heads=3 patch=4 chi=0.3 clients=10"
            })
    void thePresetsHaveThePapersSettings(String preset, String method, String settings) {
        Configuration c = Configuration.of(Preset.load(preset), Map.of("method", method));
        for (String setting : settings.split(" ", -1)) {
            String[] parts = setting.split("=", -1);
            String found = c.text(parts[0]);
            assertThat(found.replaceFirst("\\.0$", "")).as(parts[0]).isEqualTo(parts[1]);
        }
    }

    /** The paper's settings for its three shares of the dominant class. */
    @ParameterizedTest
    @CsvSource({"0.3, 0.03, 0.7", "0.5, 0.03, 0.7", ".70, 0.05, 0.9"})
    void whatIsBestMayDependOnASetting(String chi, double inner, double gamma) {
        Preset preset = Preset.load("cifar-maml-cnn");
        assertThat(Configuration.of(preset, Map.of("method", "fedmaml", "chi", chi))
                        .number("inner"))
                .isEqualTo(inner);
        assertThat(Configuration.of(preset, Map.of("method", "fedcomuon-vr", "chi", chi))
                        .schedule("gamma"))
                .isEqualTo(Schedule.constant(gamma));
        assertThat(Configuration.of(preset, Map.of("method", "fedmaml", "chi", chi, "inner", "0.5"))
                        .number("inner"))
                .isEqualTo(0.5); // an explicit value takes precedence
    }

    @Test
    void whatBelongsToAnotherPartIsRefused() {
        Preset text = Preset.load("wikitext2-robust");
        assertThatThrownBy(() -> Configuration.of(text, Map.of("chi", "0.3")))
                .hasMessageContaining("chi is not a setting of this run; it requires split = dominant");
        assertThatThrownBy(() -> Configuration.of(MNIST, Map.of("width", "8")))
                .hasMessageContaining("model = vit or model = transformer");
        assertThatThrownBy(() -> Configuration.of(MNIST, Map.of("model", "lenett")))
                .hasMessage("no model is called 'lenett'; did you mean 'lenet'?");
        assertThatThrownBy(() -> Configuration.of(MNIST, Map.of("model", "resnet-50")))
                .hasMessage("no model is called 'resnet-50'; these are: %s"
                        .formatted(String.join(", ", ModelChoice.ALL.names())));
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
    void optionsOfMuonAreThoseOfTheMethod() {
        Configuration plain = Configuration.of(MNIST, Map.of("method", "fedmuon"));
        assertThat(plain.muon()).isEqualTo(Muon.with(new NewtonSchulz(Coefficients.jordan(5))));
        var changes = new LinkedHashMap<String, String>();
        changes.put("method", "fedmuon");
        changes.put("nesterov", "true");
        changes.put("weightDecay", ".1");
        changes.put("adamw", "vectors+ends");
        changes.put("adamwRate", "0.2");
        changes.put("blockRates", "dense2.*=.5; *.bias=2");
        changes.put("splitHeads", "3");
        changes.put("coefficients", "deepseekv4");
        Configuration c = Configuration.of(MNIST, changes);
        assertThat(c.text("blockRates")).isEqualTo("dense2.*=0.5;*.bias=2.0");
        assertThat(c.muon())
                .isEqualTo(Muon.with(new NewtonSchulz(Coefficients.deepSeekV4()))
                        .withNesterov(true)
                        .withWeightDecay(0.1)
                        .withAdamW(Muon.AdamW.ofVectors(0.2).and(Muon.AdamW.ENDS))
                        .withBlockRates(List.of(new Muon.BlockRate("dense2.*", 0.5), new Muon.BlockRate("*.bias", 2)))
                        .withHeads(Muon.Heads.of(3)));
        assertThat(Configuration.of(MNIST, Map.of("method", "fedmuon", "adamw", "vectors"))
                        .muon()
                        .adamW())
                .contains(Muon.AdamW.ofVectors(0.1));
        changes.put("schulzSteps", "5");
        assertThatThrownBy(() -> Configuration.of(MNIST, changes))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("deepseekv4 has 10 steps, not 5");
    }

    @Test
    void stepsAreThoseOfTheSetUnlessTheyAreSet() {
        assertThat(Configuration.of(MNIST, Map.of("schulzSteps", "7")).coefficients())
                .isEqualTo(Coefficients.jordan(7));
        assertThat(Configuration.of(MNIST, Map.of("coefficients", "aol")).coefficients())
                .isEqualTo(Coefficients.aol(4));
        Configuration until = Configuration.of(MNIST, Map.of("coefficients", "polar-express-until:1e-3@1e-5"));
        assertThat(until.orthogonalizer()).isEqualTo(new NewtonSchulz(Coefficients.polarExpressUntil(1e-3, 1e-5)));
        assertThat(until.has("schulzSteps")).isFalse();
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
                "orthogonalizer;svd;one of exact, exact-svd, newton-schulz, gram, auto",
                "precision;fp16;one of fp32, tf32, bf16",
                "products;openblas;one of kernels, cublas",
                "eta;fast;eta = fast; a number, power(FACTOR, EXPONENT) or cosine(FIRST, LAST)",
                "eta;-0.1;eta = -0.1",
                "alpha;1;alpha = 1.0",
                "method;fedcomoun;did you mean 'fedcomuon'?",
                "coefficients;jordon;coefficients = jordon",
                "vectorRate;-1;vectorRate = -1; a number that is not negative",
                "nesterov;yes;nesterov = yes; one of true, false",
                "weightDecay;-0.1;weightDecay = -0.1; a number that is not negative",
                "weightDecay;100;eta * weightDecay = 0.01",
                "adamw;all;one of none, vectors, vectors+ends",
                "blockRates;head;blockRates = head; none, or PATTERN=RATE",
                "blockRates;head=;PATTERN=RATE",
                "splitHeads;0;splitHeads = 0; a whole number from 1",
                "level;0.5;it requires objective = cvar or method = fgdro-cvar"
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
                "'eta: [1]';eta is a list; a single value is needed",
                "'a: b: c';is not YAML",
                "'methods: {fedsomething: {eta: 1}}';no method is called 'fedsomething'"
            })
    void whatIsNoPresetIsRefused(String text, String words) {
        assertThatThrownBy(() -> Configuration.of(Preset.parse("mine.yaml", text), Map.of()))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining(words);
    }

    /** The Gram form saves where a matrix is beyond the small kernel and at least twice as long as wide. */
    @Test
    void presetsTakeTheGramFormWhereItSaves() {
        for (String name : Preset.NAMES) {
            Configuration c = Configuration.of(Preset.load(name), Map.of());
            if (!List.of("robust", "meta").contains(c.text("objective"))) {
                continue; // what they train has no such matrices
            }
            boolean saves = c.network(c.text("data").equals("wikitext2") ? 33_278 : 10).layout().blocks().stream()
                    .filter(block -> block.update() == Block.Update.ORTHOGONAL)
                    .anyMatch(block -> Math.min(block.rows(), block.cols()) > NewtonSchulzSpec.longestSide()
                            && Math.max(block.rows(), block.cols()) >= 2 * Math.min(block.rows(), block.cols()));
            assertThat(c.text("orthogonalizer")).as(name).isEqualTo(saves ? "auto" : "newton-schulz");
        }
        assertThat(Configuration.of(Preset.load("mnist-robust"), Map.of()).text("orthogonalizer"))
                .isEqualTo("newton-schulz");
    }

    @Test
    void productsAreThoseOfTheOrthogonalizer() {
        assertThat(Configuration.of(MNIST, Map.of()).orthogonalizer().name()).isEqualTo("newton-schulz jordan x 5");
        for (String how : List.of("newton-schulz", "gram", "auto")) {
            Configuration c =
                    Configuration.of(MNIST, Map.of("orthogonalizer", how, "products", "cublas", "precision", "bf16"));
            assertThat(c.orthogonalizer().name()).isEqualTo(how + " jordan x 5 in bf16 by cublas");
        }
    }

    @Test
    void aSettingThatIsGivenTwiceIsRefused() {
        assertThatThrownBy(() -> Preset.parse("mine.yaml", "eta: 1\nseed: 1\neta: 2\n"))
                .isInstanceOf(ConfigurationException.class)
                .hasMessageContaining("mine.yaml")
                .hasMessageContaining("eta");
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
