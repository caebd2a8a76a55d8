package org.fedcomuon.dashboard;

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
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
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
 * {@link #close}, also after the run.
 *
 * <p>What visitors take of the process is limited: connections and their file descriptors, memory and time. A failure
 * in the dashboard itself, even an {@link OutOfMemoryError}, is logged and ends the page, never the run. Thread-safe.
 */
public final class Dashboard implements Listener, AutoCloseable {
    /** The least number of characters of a token, so that it cannot be guessed. */
    public static final int LEAST_TOKEN = 16;

    private static final Logger LOG = LoggerFactory.getLogger(Dashboard.class);
    private static final Duration PERIOD = Duration.ofMillis(250);
    private static final Duration FAREWELL = Duration.ofSeconds(1);

    private final History history;
    private final Broadcast broadcast;
    private final Server server;
    private final URI uri;
    private final AtomicBoolean failed = new AtomicBoolean();

    private Dashboard(Builder builder) throws IOException {
        history = new History(
                builder.title, Collections.unmodifiableMap(new LinkedHashMap<>(builder.facts)), builder.iterations);
        builder.earlier.forEach(one -> history.addEarlier(one.step(), one.metrics()));
        broadcast = new Broadcast(
                history, HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong()));
        server = new Server(
                new InetSocketAddress(builder.host, builder.port),
                broadcast,
                builder.limits,
                builder.period,
                this::fail);
        int port = server.port();
        String name = builder.host.getHostAddress();
        uri = URI.create("http://%s:%d/"
                .formatted(builder.host instanceof Inet6Address ? "[" + name.replace("%", "%25") + "]" : name, port));
        server.start(new Site(broadcast, builder.host.isLoopbackAddress(), port, builder.token));
    }

    /** A builder for a page on the loopback address and any free port. */
    public static Builder builder() {
        return new Builder();
    }

    /** Ends the page, and says so once. */
    private void fail(Throwable failure) {
        if (!failed.compareAndSet(false, true)) {
            return;
        }
        server.abort();
        try {
            LOG.warn("{}: the live page has ended because of {}; the run goes on", uri, failure.toString());
            LOG.debug("{}: the live page has ended", uri, failure);
        } catch (Throwable e) {
            // There is no memory for a line.
        }
    }

    /** Takes note of something, and never fails: an exception of a listener would end the run. */
    private void note(Runnable what) {
        if (failed.get()) {
            return;
        }
        try {
            what.run();
        } catch (Throwable e) {
            fail(e);
        }
    }

    /** The address of the page, without its token. */
    public URI uri() {
        return uri;
    }

    /** Whether the page is served: until it is closed, or has ended because of a failure in it, which is logged. */
    public boolean isOpen() {
        return server.isServing();
    }

    @Override
    public void onStart(Start start) {
        note(() -> history.start(start));
    }

    @Override
    public void onWarning(String warning) {
        note(() -> history.warning(warning));
    }

    @Override
    public void onStep(long step) {
        note(() -> history.step(step));
    }

    @Override
    public void onRound(Round round) {
        note(() -> history.round(round));
    }

    @Override
    public void onEvaluation(Evaluation evaluation) {
        note(() -> history.evaluation(evaluation));
    }

    @Override
    public void onClientFault(ClientFault fault) {
        note(() -> history.fault(fault));
    }

    @Override
    public void onCheckpoint(long step, Path file) {
        note(() -> history.checkpoint(step, file));
    }

    @Override
    public void onEnd(Result result) {
        note(() -> history.end(result));
    }

    @Override
    public void onFailure(Throwable failure) {
        note(() -> history.fail(failure));
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
        note(history::leave);
        try {
            server.close(FAREWELL);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Throwable e) {
            fail(e);
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
        private Limits limits = Limits.USUAL;

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

        /** What visitors can take. For tests. */
        Builder limits(Limits value) {
            limits = value;
            return this;
        }

        /**
         * Opens the server; from now on the page can be loaded.
         *
         * @throws IllegalArgumentException when a value is impossible; the message names it
         * @throws UncheckedIOException when the port is taken, the address not of this machine, or too few file
         *     descriptors are left for a run and a page
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
