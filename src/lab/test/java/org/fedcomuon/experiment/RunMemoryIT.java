package org.fedcomuon.experiment;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.bytedeco.pytorch.Tensor;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.InstructionSet;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;
import org.fedcomuon.model.Dropout;
import org.fedcomuon.model.LanguageModel;
import org.fedcomuon.model.Network;
import org.fedcomuon.model.Parameters;
import org.fedcomuon.model.VisionTransformer;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.HessianProduct;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The estimate against what is allocated. */
class RunMemoryIT {
    /** A wide one, so that matrices are beyond the kernel that needs no room. */
    private static final Network NETWORK = new LanguageModel(new LanguageModel.Sizes(300, 8, 1, 192, 2, 400, 0));

    private static final int CLIENTS = 3;

    static Stream<String> methods() {
        return MethodChoice.ALL.names().stream();
    }

    /** Never called: what is allocated does not depend on it. */
    private static final class Nobody implements Client, HessianProduct {
        @Override
        public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void outerGradient(Sample zeta, Floats y, Floats gradient) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void hessianProduct(Sample xi, Point w, Point direction, Point product) {
            throw new UnsupportedOperationException();
        }
    }

    private static Configuration configuration(String method, Map<String, String> settings) {
        var changes = new LinkedHashMap<>(settings);
        changes.put("method", method);
        changes.put("clients", Integer.toString(CLIENTS));
        return Configuration.of(Preset.load("wikitext2-robust"), changes);
    }

    @ParameterizedTest
    @MethodSource("methods")
    void variablesAndRoomAreWhatIsAllocated(String method) {
        for (String orthogonalizer : List.of("newton-schulz", "exact", "gram", "auto")) {
            requireAllocated(configuration(method, Map.of("orthogonalizer", orthogonalizer)));
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void optionsOfMuonAreAmongThem(String method) {
        requireAllocated(configuration(method, Map.of("nesterov", "true", "weightDecay", "0.1")));
        requireAllocated(configuration(method, Map.of("adamw", "vectors")));
        requireAllocated(configuration(method, Map.of("adamw", "vectors+ends", "nesterov", "true")));
        requireAllocated(configuration(method, Map.of("splitHeads", "2", "orthogonalizer", "exact")));
        requireAllocated(configuration(method, Map.of("blockRates", "*.query.*=0.5;embedding=2")));
    }

    private static void requireAllocated(Configuration c) {
        Problem problem = Problem.of(NETWORK.layout(), 1, CLIENTS, k -> new Nobody());
        RunMemory memory = RunMemory.of(c, NETWORK, CLIENTS, 1, 1, 1, 0);
        try (Device device = Devices.open("cpu:0", 1, InstructionSet.AUTO);
                var clients = new Clients(
                        device,
                        problem,
                        IntStream.range(0, CLIENTS).boxed().toList(),
                        1,
                        ClientFault.Policy.FAIL,
                        fault -> {},
                        1)) {
            c.method().on(clients);
            // With workspaces of plans, which are no buffers.
            long difference = device.peakBytes() - memory.variables() - memory.directions();
            // Norms, values of g, room for the packed factors of a product, and for messages of EF21-Muon for a few
            // matrices.
            assertThat(difference).as("%s", c.values()).isBetween(0L, NETWORK.parameters() * Float.BYTES / 2);
        }
    }

    @Test
    void visionTransformerOfTenClientsWithVarianceReductionFitsIntoEightGibibytes() {
        Configuration c = Configuration.of(Preset.load("cifar-maml-vit"), Map.of("method", "fedcomuon-vr"));
        long images = 60_000L * (3072 * Float.BYTES + Long.BYTES);
        RunMemory memory = RunMemory.of(c, new VisionTransformer(), 10, 1, 2, 1, images);
        assertThat(memory.bytes()).isLessThan(8L << 30);
        assertThat(memory.variables()).isEqualTo(10 * 6 * 5_362_762L * Float.BYTES);
    }

    /** Ten clients, each with six variables of 82.7 million parameters. */
    @Test
    void theLanguageModelWithVarianceReductionNeedsMoreThanAnOrdinaryMachineHas() {
        Configuration c = Configuration.of(Preset.load("wikitext2-robust"), Map.of("method", "fedcomuon-vr"));
        var network = new LanguageModel(LanguageModel.Sizes.paper(33_278));
        RunMemory memory = RunMemory.of(c, network, 10, 1, 2, 1, 0);
        assertThat(memory.variables()).isEqualTo(10 * 6 * 82_670_590L * Float.BYTES);
        assertThat(memory.bytes()).isBetween(24L << 30, 40L << 30);
        // Fewer workers keep fewer activations.
        assertThat(RunMemory.of(c, network, 10, 1, 1, 1, 0).bytes()).isLessThan(memory.bytes());
        assertThat(memory.toString())
                .matches("about \\d+\\.\\d GiB of memory: 18\\.5 GiB for the method's variables.*");
    }

    /** The figure is then what is known to be needed, and says that it is not all. */
    @Test
    void unknownActivationsAreNotPretended() {
        var uncounted = new Network() {
            @Override
            public String name() {
                return "uncounted";
            }

            @Override
            public Layout layout() {
                return NETWORK.layout();
            }

            @Override
            public Tensor logits(Parameters parameters, Tensor input, Dropout dropout) {
                throw new UnsupportedOperationException();
            }
        };
        Configuration c = configuration("fedcomuon", Map.of("orthogonalizer", "newton-schulz"));
        RunMemory unknown = RunMemory.of(c, uncounted, CLIENTS, 1, 1, 1, 0);
        assertThat(unknown.toString()).startsWith("at least ").endsWith("; the activations of the model are not known");
        RunMemory known = RunMemory.of(c, NETWORK, CLIENTS, 1, 1, 1, 0);
        assertThat(known.toString()).startsWith("about ").doesNotContain("known");
        assertThat(unknown.bytes()).isLessThan(known.bytes());
        assertThat(unknown.variables()).isEqualTo(known.variables());
    }

    @Test
    void aMemberIsEstimatedWithItsOwnClients() {
        assertThat(RunMemory.share(10, 10, 1)).isEqualTo(10);
        assertThat(RunMemory.share(10, 10, 3)).isEqualTo(4);
        assertThat(RunMemory.share(1_000_000, 100, 4)).isEqualTo(40); // 25 on average
        assertThat(RunMemory.share(100, 50, 50)).isEqualTo(2); // it has no more
        assertThat(RunMemory.share(1000, 3, 1)).isEqualTo(3);
        assertThat(RunMemory.share(3, 3, 5)).isEqualTo(1);
    }

    @Test
    void whatIsAvailableIsKnownOnLinux() {
        assertThat(RunMemory.available()).isPresent();
        assertThat(RunMemory.available().getAsLong()).isPositive();
    }
}
