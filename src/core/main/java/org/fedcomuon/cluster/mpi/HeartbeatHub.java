package org.fedcomuon.cluster.mpi;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.fedcomuon.cluster.MemberFailedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The signs of life of all processes but 0, as process 0 hears and answers them. A connection that breaks is not a
 * death: {@link HeartbeatLink} makes another one.
 *
 * <p>Thread-safe.
 */
final class HeartbeatHub implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(HeartbeatHub.class);

    /** More connections without the token than this push out the oldest of them. */
    private static final int MOST_STRANGERS = 64;

    /** Longer than any of ours takes from its connection to its token. */
    private static final Duration INTRODUCTION = Duration.ofSeconds(5);

    /** A connection without a beat for so long is of the past. */
    private static final Duration LONGEST_PAUSE = Duration.ofHours(1);

    private final ServerSocket listener;
    private final HeartbeatAddress address;
    private final int processes;
    private final Duration silence;
    private final SilenceWatch watch;
    private final Map<Integer, String> hosts = new ConcurrentHashMap<>();
    private final Set<Socket> connections = new HashSet<>(); // guarded by itself
    private final LinkedHashSet<Socket> strangers = new LinkedHashSet<>(); // of these; guarded by connections

    private HeartbeatHub(
            ServerSocket listener,
            HeartbeatAddress address,
            int processes,
            Duration silence,
            Consumer<MemberFailedException> onSilence) {
        this.listener = listener;
        this.address = address;
        this.processes = processes;
        this.silence = silence;
        watch = new SilenceWatch(1, processes, silence, silent -> onSilence.accept(failure(silent)));
    }

    /**
     * Listens, and counts the silence of the others from now on.
     *
     * @param host the name of this host
     * @param alone whether all processes are on this host, so that others need not reach the port
     */
    static HeartbeatHub open(
            String host, boolean alone, int processes, Duration silence, Consumer<MemberFailedException> onSilence)
            throws IOException {
        var listener = new ServerSocket();
        listener.bind(
                alone ? new InetSocketAddress(InetAddress.getLoopbackAddress(), 0) : new InetSocketAddress(0),
                processes + MOST_STRANGERS);
        var address = HeartbeatAddress.here(host, (InetSocketAddress) listener.getLocalSocketAddress());
        var hub = new HeartbeatHub(listener, address, processes, silence, onSilence);
        Thread.ofPlatform().daemon().name("mpi-heartbeats").start(hub::accept);
        hub.watch.start();
        return hub;
    }

    /** Returns where the others find this process. */
    HeartbeatAddress address() {
        return address;
    }

    private MemberFailedException failure(List<Integer> silent) {
        return new MemberFailedException("no sign of life for %s from %s"
                .formatted(
                        SilenceWatch.text(silence),
                        silent.stream().map(this::describe).collect(Collectors.joining(" and "))));
    }

    private String describe(int process) {
        return hosts.containsKey(process)
                ? "process %d on %s".formatted(process, hosts.get(process))
                : "process %d, which has never reached process 0 on %s".formatted(process, address);
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket socket = listener.accept();
                greet(socket);
                Thread.ofVirtual().start(() -> serve(socket));
            } catch (IOException e) {
                rest(); // closed, or without file descriptors for a while
            }
        }
    }

    private static void rest() {
        try {
            TimeUnit.MILLISECONDS.sleep(100);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Notes a connection whose token is still to come, of which there are only so many. */
    private void greet(Socket newest) throws IOException {
        synchronized (connections) {
            connections.add(newest);
            strangers.add(newest);
            if (strangers.size() > MOST_STRANGERS) {
                strangers.removeFirst().close();
            }
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(Math.toIntExact(INTRODUCTION.toMillis()));
            var in = new DataInputStream(socket.getInputStream());
            if (address.isToken(in.readNBytes(HeartbeatAddress.TOKEN_BYTES))) {
                int process = Objects.checkIndex(in.readInt(), processes);
                hosts.put(process, in.readUTF());
                synchronized (connections) {
                    strangers.remove(socket);
                }
                socket.setSoTimeout((int) Math.min(silence.toMillis(), LONGEST_PAUSE.toMillis()));
                for (int sign = in.read(); sign >= 0; sign = in.read()) {
                    watch.heard(process);
                    socket.getOutputStream().write(sign);
                }
            }
        } catch (IOException e) {
            // It connects again, or is silent.
        } finally {
            synchronized (connections) {
                strangers.remove(socket);
                connections.remove(socket);
            }
        }
    }

    @Override
    public void close() {
        watch.close();
        try {
            listener.close();
            synchronized (connections) {
                for (Socket each : connections) {
                    each.close();
                }
            }
        } catch (IOException e) {
            LOG.debug("a connection for signs of life does not close", e);
        }
    }
}
