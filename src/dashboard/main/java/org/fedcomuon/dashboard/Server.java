package org.fedcomuon.dashboard;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A server of HTTP that takes no more of a process than its {@link Limits}, whatever its visitors do: one thread that
 * waits for none of them and makes one answer at a time. It speaks what a page needs, and closes each connection after
 * its answer. Thread-safe.
 */
final class Server {
    /** Connections that wait in the kernel until they are accepted. */
    private static final int BACKLOG = 128;
    /** Connections that are accepted before others are looked at. */
    private static final int MOST_AT_ONCE = 32;
    /** Bytes that are read or written at once, and that the kernel is asked to keep at most of what is sent. */
    private static final int BUFFER_BYTES = 64 << 10;
    /** What the kernel is asked to keep at most of what has arrived and has not been read. */
    private static final int UNREAD_BYTES = 16 << 10;
    /** The time between two comments, whose failure shows that a browser is gone. */
    private static final long SILENCE = TimeUnit.SECONDS.toNanos(15);
    /** The time between two looks at what visitors have still to read when the server ends. */
    private static final long FAREWELL_PERIOD_MILLIS = 10;

    private static final byte[] ALIVE = ": alive\n\n".getBytes(StandardCharsets.US_ASCII);

    private final ServerSocketChannel listening;
    private final Selector selector;
    private final SelectionKey acceptance;
    private final Broadcast broadcast;
    private final Limits limits;
    private final long period;
    private final Consumer<Throwable> onFailure;
    private final Thread thread;
    private final int port;
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_BYTES);
    private final Set<Connection> connections = new LinkedHashSet<>(); // the oldest first
    private Optional<Site> site = Optional.empty();
    private long looked = System.nanoTime();
    private long commented = looked;
    private volatile long farewell; // nanoseconds
    private volatile boolean ending;
    private volatile boolean aborted;

    /**
     * Listens at an address; visitors wait until the server is started.
     *
     * @param period the time between two looks at what there is to send and who is late
     * @param onFailure is told, on the thread of the server, why it has ended by itself
     * @throws IOException when the address cannot be listened at, or too few file descriptors are left
     */
    Server(
            InetSocketAddress address,
            Broadcast broadcast,
            Limits limits,
            Duration period,
            Consumer<Throwable> onFailure)
            throws IOException {
        String shortage = FileDescriptors.shortage(FileDescriptors.left());
        if (!shortage.isEmpty()) {
            throw new IOException(shortage);
        }
        this.broadcast = broadcast;
        this.limits = limits;
        this.period = period.toNanos();
        this.onFailure = onFailure;
        listening = ServerSocketChannel.open();
        try {
            listening.setOption(StandardSocketOptions.SO_RCVBUF, UNREAD_BYTES);
            listening.bind(address, BACKLOG);
            listening.configureBlocking(false);
            port = listening.socket().getLocalPort();
            selector = Selector.open();
            acceptance = listening.register(selector, SelectionKey.OP_ACCEPT);
        } catch (IOException | RuntimeException e) {
            listening.close();
            throw e;
        }
        thread = Thread.ofPlatform().daemon().name("dashboard-" + port).unstarted(this::run);
    }

    int port() {
        return port;
    }

    void start(Site answers) {
        site = Optional.of(answers);
        thread.start();
    }

    boolean isServing() {
        return thread.isAlive() && !ending && !aborted;
    }

    /** Sends the last event, and waits up to this time until visitors have read what there is to read. */
    void close(Duration patience) throws InterruptedException {
        farewell = patience.toNanos();
        ending = true;
        selector.wakeup();
        thread.join(patience.multipliedBy(2));
    }

    /** Ends at once. */
    void abort() {
        aborted = true;
        selector.wakeup();
    }

    private void run() {
        try {
            while (!ending && !aborted) {
                long rest = period - (System.nanoTime() - looked);
                selector.select(this::serve, Math.max(1, TimeUnit.NANOSECONDS.toMillis(rest)));
                if (System.nanoTime() - looked >= period) {
                    looked = System.nanoTime();
                    look();
                }
            }
            if (!aborted) {
                takeLeave();
            }
        } catch (Throwable e) { // whatever it is, a run goes on beside it
            onFailure.accept(e);
        } finally {
            free();
        }
    }

    private void free() {
        try {
            listening.close();
            List.copyOf(connections).forEach(this::drop);
            selector.close();
        } catch (Throwable e) {
            onFailure.accept(e);
        }
    }

    /** Does what is due without a visitor doing anything. */
    private void look() {
        broadcast.publish(hasRoom());
        boolean alive = looked - commented >= SILENCE;
        commented = alive ? looked : commented;
        for (Connection connection : List.copyOf(connections)) {
            if (connection.isLate() || hasLost(connection)) {
                drop(connection);
            } else {
                feed(connection);
                if (alive && connection.stage() == Connection.Stage.EVENTS && connection.isIdle()) {
                    connection.send(ALIVE, false);
                }
            }
        }
        int allowed = allowed();
        while (connections.size() > allowed && evict()) {
            // The process has fewer file descriptors left than before.
        }
        acceptance.interestOps(SelectionKey.OP_ACCEPT);
    }

    private boolean hasLost(Connection connection) {
        return connection.subscriber().map(broadcast::hasLost).orElse(false);
    }

    /** Sends the next event, if there is one and all before it has been sent. */
    private void feed(Connection connection) {
        if (connection.isIdle()) {
            connection
                    .subscriber()
                    .flatMap(broadcast::next)
                    .ifPresent(event -> connection.send(event.bytes(), event.isLast()));
        }
    }

    private void takeLeave() throws IOException {
        long end = System.nanoTime() + farewell;
        listening.close();
        broadcast.end();
        for (Connection connection : List.copyOf(connections)) {
            if (connection.stage() == Connection.Stage.REQUEST || hasLost(connection)) {
                drop(connection);
            } else {
                feed(connection);
            }
        }
        while (!aborted && System.nanoTime() < end && connections.stream().anyMatch(Server::isReading)) {
            selector.select(this::serve, FAREWELL_PERIOD_MILLIS);
        }
    }

    private static boolean isReading(Connection connection) {
        return connection.stage() != Connection.Stage.PARTING;
    }

    private void serve(SelectionKey key) {
        if (!(key.attachment() instanceof Connection connection)) {
            accept();
            return;
        }
        try {
            if (key.isReadable()) {
                read(connection);
            }
            if (key.isWritable()) {
                connection.write(buffer);
                feed(connection);
            }
        } catch (IOException | CancelledKeyException e) {
            drop(connection); // The visitor is gone.
        }
    }

    private void read(Connection connection) throws IOException {
        switch (connection.read(buffer)) {
            case MORE_TO_COME -> {}
            case COMPLETE -> {
                Optional<Request> request = connection.request();
                Answer answer = site.orElseThrow().answer(request, hasRoom());
                connection.answer(answer, !request.map(Request::isHead).orElse(false));
            }
            case TOO_LARGE -> connection.answer(site.orElseThrow().tooLarge(), true);
            case GONE -> drop(connection);
        }
    }

    /** Whether there is memory for one more large answer. */
    private boolean hasRoom() {
        return connections.stream().mapToLong(Connection::waitingBytes).sum() < limits.waitingBytes();
    }

    /** How many connections there may be at the moment. */
    private int allowed() {
        return Math.min(limits.connections(), FileDescriptors.share(FileDescriptors.left() + connections.size()));
    }

    private void accept() {
        int allowed = allowed();
        try {
            for (int i = 0; i < MOST_AT_ONCE; i++) {
                SocketChannel channel = listening.accept();
                if (channel == null) {
                    return;
                }
                if (connections.size() < allowed || evict()) {
                    admit(channel);
                } else {
                    channel.close();
                }
            }
        } catch (IOException e) {
            // As a rule, no file descriptor is left. What has not been accepted stays ready, so this would be tried
            // again and again; it is, after the next look.
            acceptance.interestOps(0);
        }
    }

    private void admit(SocketChannel channel) throws IOException {
        try {
            channel.configureBlocking(false);
            channel.setOption(StandardSocketOptions.SO_SNDBUF, BUFFER_BYTES);
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            SelectionKey key = channel.register(selector, SelectionKey.OP_READ);
            var connection = new Connection(channel, key, limits);
            key.attach(connection);
            connections.add(connection);
        } catch (IOException e) {
            channel.close(); // The visitor is gone.
        }
    }

    /**
     * Makes room for a new connection: the oldest that has not sent its request, or has its answer, is closed. Whoever
     * holds connections open without a request does not keep others out, because theirs arrives at once.
     *
     * @return whether there was such a connection
     */
    private boolean evict() {
        Optional<Connection> oldest = connections.stream()
                .filter(connection -> connection.stage() == Connection.Stage.REQUEST
                        || connection.stage() == Connection.Stage.PARTING)
                .findFirst();
        oldest.ifPresent(this::drop);
        return oldest.isPresent();
    }

    private void drop(Connection connection) {
        connections.remove(connection);
        connection.subscriber().ifPresent(broadcast::unsubscribe);
        connection.close();
    }
}
