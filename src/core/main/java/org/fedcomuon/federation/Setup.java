package org.fedcomuon.federation;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.cluster.Cluster;
import org.fedcomuon.method.ClientFault;
import org.fedcomuon.method.Method;
import org.fedcomuon.method.Schedule;
import org.fedcomuon.problem.Block;
import org.fedcomuon.problem.Floats;
import org.fedcomuon.problem.Problem;

/** Everything that was decided before a run. */
record Setup(
        String name,
        Problem problem,
        Method method,
        List<String> devices,
        Optional<Cluster> cluster,
        Placement placement,
        Federation.ExchangeKind exchange,
        long exchangeChunk,
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
    Start start(long step, long communicatedBytes) {
        return new Start(
                name,
                method.name(),
                problem.layout().length(),
                step,
                iterations,
                tau,
                seed,
                communicatedBytes,
                devices,
                placement.clients());
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
        all.put("tau", Integer.toString(tau));
        all.put("seed", Long.toString(seed));
        all.put("clients", Integer.toString(problem.clients()));
        all.put("participation", Double.toString(participation.share()));
        all.put("weights", weights.toString());
        all.put("innerDimension", Integer.toString(problem.innerDimension()));
        var blocks = new StringBuilder();
        for (Block block : problem.layout().blocks()) {
            blocks.append("%s %s %s; ".formatted(block.name(), block.shape(), block.update()));
        }
        all.put("layout", blocks.toString().strip());
        description.forEach((key, value) -> all.put("config." + key, value));
        if (exchange != Federation.ExchangeKind.ORDERED) {
            all.put("config.exchange", exchange.toString()); // one that makes other bits
        }
        return all;
    }

    /** Returns the hash of the identity, which all members of a cluster must share. */
    String fingerprint() {
        return Sha256.of(MemorySegment.ofArray(identity().toString().getBytes(StandardCharsets.UTF_8)))
                .substring(0, 16);
    }
}
