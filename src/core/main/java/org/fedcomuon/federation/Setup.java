package org.fedcomuon.federation;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.ClientStore;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.method.Variable;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Problem;

/** Everything that was decided before a run. */
record Setup(
        String name,
        Problem problem,
        Method method,
        List<String> devices,
        Optional<Cluster> cluster,
        Seating seating,
        Federation.ExchangeKind exchange,
        long exchangeSection,
        boolean exchangeCopies,
        Duration ncclTimeout,
        int threads,
        int workers,
        long iterations,
        int tau,
        long seed,
        Participation participation,
        List<Double> weights,
        ClientFault.Policy policy,
        Floats initial,
        long evaluateEvery,
        Optional<Evaluator> evaluator,
        long checkpointEvery,
        Optional<CheckpointStore> store,
        Optional<Path> resume,
        Map<String, String> description) {
    /** How means are computed: a key of the identity. */
    static final String MEANS = "means";

    /** Weights of as many clients are told in full. */
    private static final int MOST_LISTED = 100;

    /** Returns the number of devices, or of members of a cluster with a device each, that share the clients. */
    int members() {
        return cluster.map(Cluster::members).orElse(devices.size());
    }

    /** Returns one sentence for each thing about the run that is allowed but questionable. */
    List<String> warnings() {
        var all = new ArrayList<>(method.warnings(iterations, tau));
        int d = problem.innerDimension();
        if (method.isSingleLevel() && d > 1) {
            all.add(
                    "%s is single-level and g has d = %d components; it steps along grad g grad f(g) of one sample, which is biased"
                            .formatted(method.name(), d));
        }
        return all;
    }

    /** Returns the event that listeners are notified with. */
    Start start(long step, long communicatedBytes, Clients clients) {
        return new Start(
                name,
                method.name(),
                problem.layout().length(),
                step,
                iterations,
                tau,
                seed,
                communicatedBytes,
                problem.clients(),
                participation.count(),
                mostKept(clients),
                devices,
                seating.clients(step / tau));
    }

    /**
     * Returns what a run must have in common with a checkpoint to go on from it: all but where it runs and how it is
     * observed.
     */
    Map<String, String> identity() {
        var all = new LinkedHashMap<String, String>();
        all.put("method", method.name());
        method.parameters().forEach((name, value) -> all.put("method." + name, value.toString()));
        if (method.parameters().values().stream()
                .anyMatch(value -> value instanceof Schedule schedule && !schedule.isConstant())) {
            all.put("iterations", Long.toString(iterations)); // the schedules depend on it
        }
        all.put(MEANS, "exact"); // they were sums in client order, with other bits
        all.put("tau", Integer.toString(tau));
        all.put("seed", Long.toString(seed));
        all.put("clients", Integer.toString(problem.clients()));
        all.put("cohort", participation.toString());
        all.put("weights", weightsText());
        all.put("innerDimension", Integer.toString(problem.innerDimension()));
        all.put("layout", problem.layout().text());
        description.forEach((key, value) -> all.put("config." + key, value));
        return all;
    }

    /** Returns a text that tells different weights apart and stays short however many there are. */
    private String weightsText() {
        double first = weights.getFirst();
        if (weights.stream().allMatch(weight -> weight == first)) {
            return "all " + first;
        }
        if (weights.size() <= MOST_LISTED) {
            return weights.toString();
        }
        double[] values = weights.stream().mapToDouble(Double::doubleValue).toArray();
        return Sha256.of(values);
    }

    /**
     * Creates the store of what clients keep while they sit out: beside the checkpoints, or else where temporary files
     * are.
     *
     * @throws IllegalStateException when there is no room for what the run will need at most
     */
    ClientStore store(Clients clients) {
        Path directory = store.map(CheckpointStore::directory).orElse(Path.of(System.getProperty("java.io.tmpdir")));
        long needed = mostKept(clients);
        try {
            Files.createDirectories(directory);
            long free = Files.getFileStore(directory).getUsableSpace();
            if (needed > free) {
                throw new IllegalStateException(
                        ("%s keeps %d bytes per client, in this run up to %.1f GiB, and %s has %.1f GiB;"
                                        + " take a method with less private state, or fewer rounds or clients")
                                .formatted(
                                        method.name(),
                                        recordBytes(clients),
                                        needed / (double) (1L << 30),
                                        directory,
                                        free / (double) (1L << 30)));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return new ClientStore(
                directory, problem.clients(), cluster.map(Cluster::members).orElse(1), keptFloats(clients));
    }

    private static long keptFloats(Clients clients) {
        return clients.privateState().stream().mapToLong(Variable::length).sum();
    }

    private static long recordBytes(Clients clients) {
        return ClientStore.recordBytes(keptFloats(clients));
    }

    /** Returns how many bytes what clients keep while they sit out may take; 0 if none sits out. */
    private long mostKept(Clients clients) {
        if (seating.isFixed()) {
            return 0;
        }
        long rounds = Math.ceilDiv(iterations, tau);
        long most =
                rounds > problem.clients() / participation.count() ? problem.clients() : rounds * participation.count();
        return most * recordBytes(clients);
    }

    /** Returns the hash of the identity, which all members of a cluster must share. */
    String fingerprint() {
        return Sha256.of(MemorySegment.ofArray(identity().toString().getBytes(StandardCharsets.UTF_8)))
                .substring(0, 16);
    }
}
