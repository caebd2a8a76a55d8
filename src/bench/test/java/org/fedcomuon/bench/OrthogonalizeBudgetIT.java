package org.fedcomuon.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.experiment.Configuration;
import org.fedcomuon.experiment.Preset;
import org.fedcomuon.linalg.Auto;
import org.fedcomuon.linalg.Coefficients;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Muon;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.testing.CheapProblem;
import org.fedcomuon.testing.ChildJvm;
import org.fedcomuon.testing.Simulator;
import org.fedcomuon.testing.TestDevices;
import org.fedcomuon.testing.Trace;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * What a step of ten clients submits to a GPU to orthogonalize the models of the presets, with the vectors and the
 * check for NaN, counted from a trace. When large matrices were multiplied by cuBLAS, it was 12 803 operations for ViT.
 *
 * <p>Streams of simulated GPUs are lazy: everything is submitted here, and the program ends before it is computed. ViT
 * and LeNet have their real sizes. The Transformer has a quarter of every side, so a sixteenth of the weights, on GPUs
 * with a sixteenth of the memory, and its 33 278 words are 33 280. Its matrices therefore have the forms of the real
 * ones and are divided into the same passes, which the number of launches depends on.
 */
class OrthogonalizeBudgetIT {
    private static final int CLIENTS = 10;
    private static final int STEPS = 5;

    @TempDir
    private Path directory;

    @BeforeEach
    void requireSimulator() {
        assumeTrue(TestDevices.simulated().findAny().isPresent(), "the simulated devices have not been built");
    }

    /**
     * One look at all of M for NaN, one launch for all norms, one for all small matrices (the Transformer has none),
     * three for all vectors; and for the large matrices of a pass one to load them, 15 or 17 for the stages of the
     * plain or the Gram form, and one to step along the results. LeNet has no large ones, ViT one pass, the Transformer
     * two on a GPU with 32 GiB or more (the limit of a pass is 512 MiB of a client, which is not scaled here and is
     * that of 32 GiB), and three with 24 GiB, of which the two with embedding and head have 17 stages.
     */
    @ParameterizedTest
    @CsvSource({
        "mnist-robust, 8, 6, 6",
        "cifar-maml-vit, 24, 40, 25",
        "cifar-maml-vit, 80, 40, 25",
        "wikitext2-robust, 24, 60, 60",
        "wikitext2-robust, 32, 60, 43"
    })
    void aStepIsWithinItsBudget(String preset, int gibibytes, int budget, int expected) throws Exception {
        Path file = directory.resolve("trace");
        long memory = ((long) gibibytes << 30) / share(preset);
        var builder = new ProcessBuilder(ChildJvm.command(
                List.of(), Program.class, List.of(preset, Integer.toString(CLIENTS), file.toString())));
        builder.environment().put("FEDCOMUON_CUDASIM_DEVICES", "1");
        builder.environment().put("FEDCOMUON_CUDASIM_MEMORY", Long.toString(memory));
        Process child = builder.redirectErrorStream(true).start();
        String out = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(child.waitFor()).as(out).isZero();

        Trace trace = Trace.read(file);
        assertThat(trace.waits(0)).isEmpty();
        assertThat(trace.work()).hasSize(expected).hasSizeLessThanOrEqualTo(budget);
        // All of them are kernels, and those of the model.
        var modelled = new TreeMap<String, Long>();
        MuonWork.Iteration iteration = MuonWork.Iteration.of(STEPS, true).on((double) memory);
        for (KernelWork each : MuonWork.step(Design.CURRENT, layout(preset), CLIENTS, iteration)
                .all()) {
            modelled.merge(each.name(), each.launches(), Long::sum);
        }
        assertThat(trace.launches(0)).isEqualTo(modelled);
        assertThat(modelled.values().stream().mapToLong(Long::longValue).sum()).isEqualTo(expected);
    }

    /** How much smaller a model and its GPU are here. */
    private static int share(String preset) {
        return preset.startsWith("wikitext2") ? 16 : 1;
    }

    private static Layout layout(String preset) {
        boolean text = preset.startsWith("wikitext2");
        Map<String, String> quarter = Map.of("width", "192", "hidden", "256", "length", "32");
        return Configuration.of(Preset.load(preset), text ? quarter : Map.of())
                .network(text ? 33_280 / 4 : 10)
                .layout();
    }

    /** Submits a step, writes its trace and ends. */
    static final class Program {
        private Program() {}

        public static void main(String[] args) throws Exception {
            Layout layout = layout(args[0]);
            int count = Integer.parseInt(args[1]);
            Device device = Devices.open("cudasim:0");
            var clients = new Clients(
                    device,
                    CheapProblem.of(layout, count),
                    IntStream.range(0, count).boxed().toList(),
                    1,
                    ClientFault.Policy.FAIL,
                    fault -> {},
                    1);
            Muon.Mover mover = Muon.with(new Auto(Coefficients.jordan(STEPS))).on(clients);
            var m = clients.scratch("M", clients.n());
            Simulator.traced(Path.of(args[2]), () -> {
                mover.step(0.1, m, clients.weights());
                return device;
            });
            Runtime.getRuntime().halt(0); // before anybody waits for what was submitted
        }
    }
}
