package org.fedcomuon.dashboard;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.fedcomuon.federation.Evaluation;
import org.fedcomuon.federation.Listener;
import org.fedcomuon.federation.Result;
import org.fedcomuon.federation.Round;
import org.fedcomuon.federation.Start;
import org.fedcomuon.method.ClientFault;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A live page about a run: curves, the loss of each client, devices, speed and time left. It is a listener of a
 * federation; it costs a run next to nothing and never makes it wait for a browser.
 * {@snippet file="org/fedcomuon/dashboard/DashboardIT.java" region="embedded"}
 *
 * <p>The page shows one run at a time; the next run that starts replaces one that has ended. Only this machine can see
 * it, unless it is {@linkplain Builder#host bound to another address} and protected by a token. It is served until
 * {@link #close}, also after the run. Thread-safe.
 */
public final class Dashboard implements Listener, AutoCloseable {
    /** The least number of characters of a token, so that it cannot be guessed. */
    public static final int LEAST_TOKEN = 16;

    private static final Logger LOG = LoggerFactory.getLogger(Dashboard.class);
    private static final Duration PERIOD = Duration.ofMillis(250);
    private static final long FAREWELL_MILLIS = 1000;

    private final History history;
    private final Broadcast broadcast;
    private final HttpServer server;
    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    private final Thread publisher;
    private final URI uri;

    private Dashboard(Builder builder) throws IOException {
        history = new History(
                builder.title, Collections.unmodifiableMap(new LinkedHashMap<>(builder.facts)), builder.iterations);
        builder.earlier.forEach(one -> history.addEarlier(one.step(), one.metrics()));
        broadcast = new Broadcast(
                history, HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong()));
        server = HttpServer.create(new InetSocketAddress(builder.host, builder.port), 0);
        int port = server.getAddress().getPort();
        server.setExecutor(threads);
        server.createContext("/", new Site(broadcast, builder.host.isLoopbackAddress(), port, builder.token));
        server.start();
        String name = builder.host.getHostAddress();
        uri = URI.create("http://%s:%d/"
                .formatted(builder.host instanceof Inet6Address ? "[" + name.replace("%", "%25") + "]" : name, port));
        long millis = builder.period.toMillis();
        publisher = Thread.ofPlatform().daemon().name("dashboard-" + port).start(() -> publish(millis));
    }

    /** A builder for a page on the loopback address and any free port. */
    public static Builder builder() {
        return new Builder();
    }

    private void publish(long millis) {
        try {
            while (true) {
                Thread.sleep(millis);
                broadcast.publish();
            }
        } catch (InterruptedException e) {
            // It has been closed.
        }
    }

    /** The address of the page, without its token. */
    public URI uri() {
        return uri;
    }

    @Override
    public void onStart(Start start) {
        history.start(start);
    }

    @Override
    public void onWarning(String warning) {
        history.warning(warning);
    }

    @Override
    public void onStep(long step) {
        history.step(step);
    }

    @Override
    public void onRound(Round round) {
        history.round(round);
    }

    @Override
    public void onEvaluation(Evaluation evaluation) {
        history.evaluation(evaluation);
    }

    @Override
    public void onClientFault(ClientFault fault) {
        history.fault(fault);
    }

    @Override
    public void onCheckpoint(long step, Path file) {
        history.checkpoint(step, file);
    }

    @Override
    public void onEnd(Result result) {
        history.end(result);
    }

    @Override
    public void onFailure(Throwable failure) {
        history.fail(failure);
    }

    /** The number of connected browsers. For tests. */
    int subscribers() {
        return broadcast.subscribers();
    }

    /**
     * Tells open pages how the run ended, waits up to a second until they have received it, and frees the port and all
     * threads. An open page keeps what it shows.
     */
    @Override
    public void close() {
        history.leave();
        broadcast.close(FAREWELL_MILLIS);
        publisher.interrupt();
        server.stop(0);
        threads.shutdownNow();
        try {
            if (!threads.awaitTermination(FAREWELL_MILLIS, TimeUnit.MILLISECONDS)) {
                LOG.warn("{}: an answer is still under way", uri);
            }
            publisher.join(FAREWELL_MILLIS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Describes a dashboard. Every value has a default. Not thread-safe. */
    public static final class Builder {
        private record Earlier(long step, Map<String, Double> metrics) {}

        private InetAddress host = InetAddress.getLoopbackAddress();
        private int port;
        private Optional<String> token = Optional.empty();
        private String title = "";
        private final Map<String, String> facts = new LinkedHashMap<>();
        private long iterations;
        private final List<Earlier> earlier = new ArrayList<>();
        private Duration period = PERIOD;

        private Builder() {}

        /** The port; 0, which is the default, takes any that is free. */
        public Builder port(int value) {
            port = value;
            return this;
        }

        /**
         * The address to listen at; loopback by default. Another one lets other machines in and needs a {@link #token}.
         * What is sent is not encrypted: prefer a tunnel where the network is not yours.
         */
        public Builder host(InetAddress value) {
            host = value;
            return this;
        }

        /**
         * What a browser must know: {@code ?token=...}, or {@code Authorization: Bearer ...}. At least
         * {@value #LEAST_TOKEN} characters.
         */
        public Builder token(String value) {
            token = Optional.of(value);
            return this;
        }

        /** The title of the page; the name of the run by default. */
        public Builder title(String value) {
            title = value;
            return this;
        }

        /** A fact to be shown with the run, such as its preset. */
        public Builder fact(String name, String value) {
            facts.put(name, value);
            return this;
        }

        /** The number of steps. Needed only for a run that does not report its {@link Start}. */
        public Builder iterations(long count) {
            iterations = count;
            return this;
        }

        /** An evaluation of an earlier part of a resumed run; in ascending order of steps. */
        public Builder earlier(long step, Map<String, Double> metrics) {
            earlier.add(new Earlier(step, metrics));
            return this;
        }

        /** The time between two updates. For tests. */
        Builder period(Duration value) {
            period = value;
            return this;
        }

        /**
         * Opens the server; from now on the page can be loaded.
         *
         * @throws IllegalArgumentException when a value is impossible; the message names it
         * @throws UncheckedIOException when the port is taken, or the address not of this machine
         */
        public Dashboard open() {
            if (port < 0 || port > 65_535) {
                throw new IllegalArgumentException("port %d: 0 to 65535".formatted(port));
            }
            if (token.isPresent() && token.get().length() < LEAST_TOKEN) {
                throw new IllegalArgumentException("the token has %d characters; at least %d are needed"
                        .formatted(token.get().length(), LEAST_TOKEN));
            }
            if (!host.isLoopbackAddress() && token.isEmpty()) {
                throw new IllegalArgumentException(
                        "%s can be reached from other machines; a token is needed".formatted(host.getHostAddress()));
            }
            try {
                return new Dashboard(this);
            } catch (IOException e) {
                throw new UncheckedIOException(
                        "%s:%d cannot be listened at: %s".formatted(host.getHostAddress(), port, e.getMessage()), e);
            }
        }
    }
}
