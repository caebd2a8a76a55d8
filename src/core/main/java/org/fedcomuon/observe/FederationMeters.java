package org.fedcomuon.observe;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.ToDoubleFunction;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Federation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.federation.Start;
import org.fedcomuon.method.ClientFault;

/**
 * Publishes a run as Micrometer meters, tagged with its name ({@code run}) and its method ({@code method}):
 *
 * <table>
 * <caption>Meters</caption>
 * <tr><th scope="row">{@code fedcomuon.running}</th><td>1 while it runs</td></tr>
 * <tr><th scope="row">{@code fedcomuon.step}</th><td>steps done since the beginning</td></tr>
 * <tr><th scope="row">{@code fedcomuon.rounds}</th><td>rounds done by this process</td></tr>
 * <tr><th scope="row">{@code fedcomuon.client.steps}</th><td>local steps of the clients of these rounds</td></tr>
 * <tr><th scope="row">{@code fedcomuon.communicated}</th><td>bytes that clients sent and received in them</td></tr>
 * <tr><th scope="row">{@code fedcomuon.loss}</th><td>mean of the clients' losses in the last round</td></tr>
 * <tr><th scope="row">{@code fedcomuon.client.loss.max}</th><td>the worst of them</td></tr>
 * <tr><th scope="row">{@code fedcomuon.evaluation}</th><td>the last evaluation, by {@code metric}</td></tr>
 * <tr><th scope="row">{@code fedcomuon.seconds}</th><td>time of the slowest device, by {@code phase}: {@code gradient},
 * {@code orthogonalize}, {@code exchange}, {@code evaluate}, {@code other}</td></tr>
 * <tr><th scope="row">{@code fedcomuon.faults}</th><td>clients dropped from a round, by {@code kind}</td></tr>
 * <tr><th scope="row">{@code fedcomuon.checkpoints}</th><td>checkpoints written</td></tr>
 * </table>
 *
 * <p>Each run needs its own, given to {@link Federation.Builder#listener}:
 * {@snippet file="org/fedcomuon/observe/FederationMetersIT.java" region="meters"} {@link #close} removes its meters
 * from the registry, so that a service with many runs does not accumulate those of the past. Thread-safe.
 */
public final class FederationMeters implements Listener, AutoCloseable {
    /** What is charged to, where the time of a run goes. */
    private enum Charge {
        GRADIENT,
        ORTHOGONALIZE,
        EXCHANGE,
        EVALUATE,
        OTHER
    }

    private final MeterRegistry registry;
    private final Queue<Meter> meters = new ConcurrentLinkedQueue<>();
    private final Map<String, Double> evaluated = new ConcurrentHashMap<>();
    private volatile boolean running;
    private volatile long step;
    private volatile double loss = Double.NaN;
    private volatile double worst = Double.NaN;

    // Written by the threads of the run, one at a time.
    private Tags tags = Tags.empty();
    private int tau;
    private long bytes;
    private final Map<Charge, Double> charged = new EnumMap<>(Charge.class);

    /** @param registry to which the meters are added when the run begins */
    @SuppressWarnings("exports") // who has a registry has its module; who has none must not need it
    public FederationMeters(MeterRegistry registry) {
        this.registry = registry;
    }

    @Override
    public void onStart(Start start) {
        tags = Tags.of("run", start.name(), "method", start.method());
        tau = start.tau();
        bytes = start.communicatedBytes();
        step = start.step();
        running = true;
        gauge("fedcomuon.running", meter -> meter.running ? 1 : 0);
        gauge("fedcomuon.step", meter -> (double) meter.step);
        gauge("fedcomuon.loss", meter -> meter.loss);
        gauge("fedcomuon.client.loss.max", meter -> meter.worst);
    }

    private void gauge(String name, ToDoubleFunction<FederationMeters> value) {
        meters.add(Gauge.builder(name, this, value).tags(tags).register(registry));
    }

    private void count(String name, String unit, Tags more, double amount) {
        Counter counter =
                Counter.builder(name).baseUnit(unit).tags(tags.and(more)).register(registry);
        if (!meters.contains(counter)) {
            meters.add(counter);
        }
        counter.increment(amount);
    }

    @Override
    public void onStep(long done) {
        step = done;
    }

    @Override
    public void onRound(Round round) {
        loss = round.meanLoss();
        worst = round.clientLosses().stream()
                .filter(each -> !each.isNaN())
                .max(Double::compare)
                .orElse(Double.NaN);
        count("fedcomuon.rounds", "rounds", Tags.empty(), 1);
        count("fedcomuon.client.steps", "steps", Tags.empty(), (double) round.participants() * tau);
        count("fedcomuon.communicated", "bytes", Tags.empty(), (double) (round.communicatedBytes() - bytes));
        bytes = round.communicatedBytes();
        charge(Charge.GRADIENT, round.gradientSeconds());
        charge(Charge.ORTHOGONALIZE, round.orthogonalizeSeconds());
        charge(Charge.EXCHANGE, round.exchangeSeconds());
        charge(
                Charge.OTHER,
                round.stepSeconds() - round.gradientSeconds() - round.orthogonalizeSeconds() - round.exchangeSeconds());
    }

    /**
     * Counts what has been added since the last time; of the slowest device of each phase, a rest can be less than
     * before.
     */
    private void charge(Charge charge, double seconds) {
        double before = charged.getOrDefault(charge, 0.0);
        if (seconds > before) {
            charged.put(charge, seconds);
            String phase = charge.name().toLowerCase(Locale.ROOT);
            count("fedcomuon.seconds", "seconds", Tags.of("phase", phase), seconds - before);
        }
    }

    @Override
    public void onEvaluation(Evaluation evaluation) {
        charge(Charge.EVALUATE, evaluation.evaluateSeconds());
        evaluation.metrics().forEach((name, value) -> {
            if (evaluated.put(name, value) == null) {
                meters.add(Gauge.builder("fedcomuon.evaluation", evaluated, all -> all.getOrDefault(name, Double.NaN))
                        .tags(tags.and("metric", name))
                        .register(registry));
            }
        });
    }

    @Override
    public void onClientFault(ClientFault fault) {
        String kind = fault.kind().name().toLowerCase(Locale.ROOT);
        count("fedcomuon.faults", "faults", Tags.of("kind", kind), 1);
    }

    @Override
    public void onCheckpoint(long done, Path file) {
        count("fedcomuon.checkpoints", "checkpoints", Tags.empty(), 1);
    }

    @Override
    public void onEnd(Result result) {
        running = false;
    }

    @Override
    public void onFailure(Throwable failure) {
        running = false;
    }

    /** Removes the meters from the registry. May be called at any time, and more than once. */
    @Override
    public void close() {
        for (Meter meter = meters.poll(); meter != null; meter = meters.poll()) {
            registry.remove(meter);
        }
    }
}
