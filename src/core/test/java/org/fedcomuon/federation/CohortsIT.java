package org.fedcomuon.federation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Variable;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Client;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Jacobian;
import org.fedcomuon.problem.Layout;
import org.fedcomuon.problem.Point;
import org.fedcomuon.problem.Problem;
import org.fedcomuon.problem.Sample;
import org.fedcomuon.testing.ChildJvm;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Rounds of a few of many clients: only these are anywhere, and what the others keep is all that is left of them. */
class CohortsIT {
    private static final int CLIENTS = 9;
    private static final int COHORT = 3;
    private static final int TAU = 4;
    private static final int STEPS = 30;

    @TempDir
    Path directory;

    static Stream<Method> methods() {
        return AllMethods.all();
    }

    private static Federation.Builder federation(Method method) {
        return Federation.of(AllMethods.problem(method, CLIENTS), method)
                .iterations(STEPS)
                .tau(TAU)
                .seed(5)
                .cohort(COHORT);
    }

    /** Every client has a place of its own for the whole run, as if nobody ever left. */
    private static String holdingAll(Method method) {
        Problem problem = AllMethods.problem(method, CLIENTS);
        Participation participation = Participation.of(CLIENTS, COHORT, 5);
        List<Integer> all = IntStream.range(0, CLIENTS).boxed().toList();
        var known = new HashSet<Integer>();
        try (Device device = Devices.open("cpu:0");
                Clients clients = new Clients(device, problem, all, 5, ClientFault.Policy.FAIL, fault -> {}, 1)) {
            Method.Replica replica = method.on(clients);
            Method.Server server = new InPlace(clients);
            for (long t = 0; t < STEPS; t++) {
                var step = new Method.Step(t, TAU, STEPS);
                if (step.startsRound()) {
                    var cohort = new HashSet<Integer>();
                    for (int client : participation.cohort(step.round())) {
                        cohort.add(client);
                    }
                    Set<Integer> fresh = new HashSet<>(cohort);
                    fresh.removeAll(known);
                    known.addAll(cohort);
                    if (t == 0) {
                        clients.admit(among(cohort));
                        replica.initialize(server);
                    } else if (!fresh.isEmpty()) {
                        clients.admit(among(fresh));
                        replica.join();
                    }
                    clients.admit(among(cohort));
                }
                clients.enter(t);
                replica.step(step, server);
            }
            Variable w = clients.weights();
            server.average(w);
            return Sha256.of(w.buffer().segment().asSlice(0, clients.n() * Float.BYTES));
        }
    }

    private static boolean[] among(Set<Integer> some) {
        var taking = new boolean[CLIENTS];
        some.forEach(client -> taking[client] = true);
        return taking;
    }

    /** Means by one call of the device. */
    private record InPlace(Clients clients) implements Method.Server {
        @Override
        public void average(Variable... variables) {
            var weights = new double[CLIENTS];
            for (int k = 0; k < CLIENTS; k++) {
                weights[k] = clients.takesPart(k) ? 1 : 0;
            }
            for (Variable variable : variables) {
                clients.device().average(variable.buffer().batch(CLIENTS, variable.length()), weights, COHORT);
                variable.becomeCommon();
            }
        }

        @Override
        public void average(long up, long down, Variable... variables) {
            average(variables);
        }

        @Override
        public double share() {
            return (double) COHORT / CLIENTS;
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void holdingTheClientsOfTheRoundIsBitIdenticalToHoldingAll(Method method) throws Exception {
        assertThat(federation(method).build().run().sha256()).isEqualTo(holdingAll(method));
    }

    @ParameterizedTest
    @MethodSource("methods")
    void onAnyDevicesAndMembers(Method method) throws Exception {
        String alone = federation(method).build().run().sha256();
        for (List<String> devices : List.of(
                List.of("cpu:0", "cpu:1"),
                List.of("cpu:0", "cpu:1", "cpu:2", "cpu:3"))) { // more than there are clients in a round
            assertThat(federation(method)
                            .devices(devices.toArray(String[]::new))
                            .build()
                            .run()
                            .sha256())
                    .as("%s", devices)
                    .isEqualTo(alone);
        }
        for (int members : new int[] {2, 4}) { // of four, some have nobody in a round
            Result result = ClusterIT.run(
                    members,
                    cluster -> cluster,
                    cluster -> federation(method).cluster(cluster).build());
            assertThat(result.sha256()).as("%d members", members).isEqualTo(alone);
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void onSimulatedDevices(Method method) throws Exception {
        Result result =
                federation(method).devices("cudasim:0", "cudasim:1").build().run();
        Result alone = federation(method).devices("cudasim:0").build().run();
        assertThat(result.sha256()).isEqualTo(alone.sha256());
    }

    @ParameterizedTest
    @MethodSource("methods")
    void resumedAnywhereInARound(Method method) throws Exception {
        String whole = federation(method).build().run().sha256();
        for (long stop : new long[] {8, 10, 11}) { // at an exchange, in a round, right before an exchange
            Path here = directory.resolve(method.hashCode() + "-" + stop);
            CheckpointsIT.runUntil(
                    stop, federation(method).devices("cpu:0", "cpu:1").checkpoints(here, 1));
            Federation.Builder rest = federation(method).devices("cpu:0", "cpu:1", "cpu:2");
            assertThat(rest.resume(here).build().run().sha256())
                    .as("stopped at %d", stop)
                    .isEqualTo(whole);
        }
    }

    @Test
    void aCheckpointHasTheServersStateOnceAndWhatClientsKeep() throws Exception {
        Method method = AllMethods.fedCoMuon();
        federation(method).iterations(8).checkpoints(directory, 2).build().run();
        try (var file = new CheckpointStore(directory).openNewest()) {
            assertThat(file.tensors().get("W").shape().getFirst()).isEqualTo(1);
            assertThat(file.tensors().get("M").shape().getFirst()).isEqualTo(1);
            long known = file.tensors().get("clients").shape().getFirst();
            assertThat(known).isBetween((long) COHORT, 2L * COHORT); // of two rounds
            assertThat(file.tensors().get("u").shape().getFirst()).isEqualTo(known);
        }
    }

    /** A problem that knows who is asked for and who has left. */
    private static final class Visitors implements Problem {
        private final Layout layout = Layout.of(Block.matrix("W", 3, 4));
        private final int clients;
        final Set<Integer> asked = ConcurrentHashMap.newKeySet();
        final AtomicInteger open = new AtomicInteger();
        final AtomicInteger most = new AtomicInteger();

        Visitors(int clients) {
            this.clients = clients;
        }

        @Override
        public Layout layout() {
            return layout;
        }

        @Override
        public int innerDimension() {
            return 1;
        }

        @Override
        public int clients() {
            return clients;
        }

        @Override
        public Client client(int k) {
            asked.add(k);
            most.accumulateAndGet(open.incrementAndGet(), Math::max);
            return new Visitor(k);
        }

        private final class Visitor implements Client, AutoCloseable {
            private final int k;

            Visitor(int k) {
                this.k = k;
            }

            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) {
                value.set(0, 1 + k % 7);
                Floats gradient = jacobian.component(0).values();
                for (long i = 0; i < gradient.length(); i++) {
                    gradient.set(i, w.values().get(i) + (k + i) % 5 - 2);
                }
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) {
                gradient.set(0, 1 + y.get(0));
            }

            @Override
            public void close() {
                open.decrementAndGet();
            }
        }
    }

    /** A run of a hundred of a million clients in a process of its own, which says each step. */
    static final class Million {
        private Million() {}

        static Federation.Builder federation(Path checkpoints) {
            return Federation.of(new Visitors(1_000_000), AllMethods.fedCoMuon())
                    .cohort(100)
                    .tau(3)
                    .iterations(600)
                    .checkpoints(checkpoints, 5);
        }

        public static void main(String[] args) throws Exception {
            federation(Path.of(args[0]))
                    .listener(new Listener() {
                        @Override
                        public void onStep(long step) {
                            System.out.println(step);
                        }
                    })
                    .build()
                    .run();
        }
    }

    @Test
    void aRunOfAMillionClientsThatIsKilledGoesOnBitIdentically() throws Exception {
        Path killed = directory.resolve("killed");
        Process child = new ProcessBuilder(
                        ChildJvm.command(List.of("-Xmx128m"), Million.class, List.of(killed.toString())))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (var lines = child.inputReader(StandardCharsets.UTF_8)) {
            assertThat(lines.lines().anyMatch("100"::equals)).isTrue();
        } finally {
            child.destroyForcibly().waitFor(); // SIGKILL
        }
        var store = new CheckpointStore(killed);
        assertThat(CheckpointStore.step(store.newest().orElseThrow())).isBetween(90L, 599L);
        Result whole = Million.federation(directory.resolve("whole")).build().run();
        Result rest = Million.federation(killed).resume(killed).build().run();
        assertThat(rest.sha256()).isEqualTo(whole.sha256());
        try (Stream<Path> files = Files.list(killed)) {
            assertThat(files.map(file -> String.valueOf(file.getFileName())))
                    .allMatch(name -> name.startsWith("checkpoint-"));
        }
    }

    @Test
    void clientsAreAskedForOnlyWhileTheyTakePartAndClosedWhenTheyLeave() throws Exception {
        var problem = new Visitors(1_000_000);
        var took = new HashSet<Integer>();
        var cohorts = new ArrayList<List<Integer>>();
        Federation.of(problem, AllMethods.fedCoMuon())
                .cohort(10)
                .iterations(12)
                .tau(3)
                .devices("cpu:0", "cpu:1")
                .listener(new Listener() {
                    @Override
                    public void onRound(Round round) {
                        cohorts.add(round.clients());
                        took.addAll(round.clients());
                        assertThat(round.clientLosses()).hasSize(10).doesNotContain(Double.NaN);
                        assertThat(round.participants()).isEqualTo(10);
                    }
                })
                .build()
                .run();
        assertThat(cohorts).hasSize(4).allSatisfy(cohort -> assertThat(cohort).hasSize(10));
        assertThat(problem.asked).isEqualTo(took);
        assertThat(problem.open).hasValue(0);
        assertThat(problem.most.get())
                .isLessThanOrEqualTo(20); // those of a round come before those of the last have left
    }

    @Test
    void aClientThatFailsWhenItComesIsNewTheNextTime() throws Exception {
        var visitors = new Visitors(6);
        var calls = new ConcurrentHashMap<Integer, Integer>();
        Problem problem = Problem.of(visitors.layout(), 1, 6, k -> new Client() {
            private final Client client = visitors.client(k);

            @Override
            public void inner(Sample xi, Point w, Floats value, Jacobian jacobian) throws Exception {
                if (xi.draw() == 0 && calls.merge(k, 1, Integer::sum) == 1 && k >= 4) {
                    throw new IOException("away");
                }
                client.inner(xi, w, value, jacobian);
            }

            @Override
            public void outerGradient(Sample zeta, Floats y, Floats gradient) throws Exception {
                client.outerGradient(zeta, y, gradient);
            }
        });
        // Clients that fail in the initial state end the run, so the first round has none of them.
        long seed = 0;
        while (IntStream.of(Participation.of(6, 3, seed).cohort(0)).anyMatch(client -> client >= 4)) {
            seed++;
        }
        var faults = new ArrayList<ClientFault>();
        Result result = Federation.of(problem, AllMethods.fedCoMuon())
                .cohort(3)
                .iterations(60)
                .tau(2)
                .seed(seed)
                .onFault(ClientFault.Policy.DROP)
                .listener(new Listener() {
                    @Override
                    public void onClientFault(ClientFault fault) {
                        faults.add(fault);
                    }
                })
                .build()
                .run();
        assertThat(faults).extracting(ClientFault::client).containsExactlyInAnyOrder(4, 5);
        assertThat(result.faults()).isEqualTo(2);
    }

    @Test
    void stateThatClientsDifferInMustBePrivateOrAveraged() {
        Method careless = new Method() {
            @Override
            public String name() {
                return "careless";
            }

            @Override
            public Map<String, Object> parameters() {
                return Map.of();
            }

            @Override
            public void validate(long iterations, int tau) {}

            @Override
            public Replica on(Clients clients) {
                Variable own = clients.state("own", 1);
                Variable value = clients.scratch("value", 1);
                Variable gradient = clients.scratch("gradient", clients.n());
                return (t, server) -> {
                    clients.inner(clients.weights(), value, gradient);
                    own.set(value);
                    server.average(clients.weights());
                };
            }
        };
        assertThatThrownBy(() -> Federation.of(new Visitors(5), careless)
                        .cohort(2)
                        .iterations(3)
                        .build()
                        .run())
                .hasMessageContaining("own")
                .hasMessageContaining("privateState");
    }

    @Test
    void aStoreThatCannotFitIsRefusedWithTheFigure() {
        Method method = AllMethods.fedCoMuonVr();
        Problem large =
                Problem.of(Layout.of(Block.matrix("W", 4096, 4096)), 1, 1_000_000, new Visitors(1_000_000)::client);
        assertThatThrownBy(() -> Federation.of(large, method)
                        .cohort(1)
                        .iterations(1_000_000)
                        .build()
                        .run())
                .hasMessageContaining("fedcomuon-vr keeps")
                .hasMessageContaining("GiB");
    }

    @Test
    void theStoreLeavesNoFile() throws Exception {
        federation(AllMethods.fedCoMuonVr()).checkpoints(directory, 1).build().run();
        try (Stream<Path> files = Files.list(directory)) {
            assertThat(files.map(file -> String.valueOf(file.getFileName())))
                    .allMatch(name -> name.startsWith("checkpoint-"));
        }
    }

    @Test
    void impossibleCohortsAreRefused() {
        Method method = AllMethods.fedCoMuon();
        assertThatThrownBy(() -> federation(method).cohort(0).build()).hasMessageContaining("cohort = 0");
        assertThatThrownBy(() -> federation(method).cohort(CLIENTS + 1).build()).hasMessageContaining("cohort = 10");
        assertThatThrownBy(() -> Federation.of(new Visitors(2_000_000), method)
                        .iterations(1)
                        .build())
                .hasMessageContaining("2000000 clients in a round")
                .hasMessageContaining("1048576");
        assertThatThrownBy(() -> federation(method).probabilities(1, 2).build())
                .hasMessageContaining("2 probabilities for 9 clients");
        assertThatThrownBy(() -> federation(method)
                        .probabilities(1, 1, 0, 0, 0, 0, 0, 0, 0)
                        .build())
                .hasMessageContaining("only 2");
        assertThatThrownBy(() -> federation(method)
                        .probabilities(1, 1, -1, 0, 0, 0, 0, 0, 0)
                        .build())
                .hasMessageContaining("client 2");
    }
}
