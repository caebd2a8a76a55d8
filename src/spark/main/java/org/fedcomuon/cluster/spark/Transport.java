package org.fedcomuon.cluster.spark;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.TransportContext;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportClientBootstrap;
import org.apache.spark.network.client.TransportClientFactory;
import org.apache.spark.network.crypto.AuthClientBootstrap;
import org.apache.spark.network.crypto.AuthServerBootstrap;
import org.apache.spark.network.netty.SparkTransportConf;
import org.apache.spark.network.server.OneForOneStreamManager;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.apache.spark.network.server.TransportServer;
import org.apache.spark.network.server.TransportServerBootstrap;
import org.apache.spark.network.util.TransportConf;
import org.jspecify.annotations.Nullable;
import scala.Option;

/**
 * Connections of a process by the network layer that Spark's own services use, with its authentication and encryption.
 * Values go from memory to the network and back without a copy in the heap, which jobs and broadcasts would make
 * several of. Thread-safe.
 */
final class Transport implements AutoCloseable {
    /** The prefix of the settings of these connections, as {@code spark.shuffle} is that of others. */
    private static final String MODULE = "fedcomuon";

    /** What becomes of the messages that arrive. Called by threads of the network, in order for each connection. */
    interface Receiver {
        /**
         * Begins to receive a message.
         *
         * @param connection by which it can be answered
         * @param bytes the number of bytes that follow the header
         */
        Incoming begin(TransportClient connection, Message message, int bytes);

        /** Nothing more will arrive by a connection. */
        default void closed(TransportClient connection) {}

        /** Receiving has failed with an error that the network layer survives, such as that there is no more memory. */
        default void failed(Error error) {}
    }

    /**
     * A message that is arriving.
     *
     * @param into where its bytes go
     * @param complete called when all are there
     * @param broken called when the rest will never arrive
     */
    record Incoming(MemorySegment into, Runnable complete, Runnable broken) {
        Incoming(MemorySegment into, Runnable complete) {
            this(into, complete, () -> {});
        }
    }

    private final Receiver receiver;
    private final LongAdder sent = new LongAdder();
    private final LongAdder received = new LongAdder();
    private final TransportContext context;
    private final TransportClientFactory clients;
    private final @Nullable TransportServer server;

    private Transport(SparkEnv env, Receiver receiver, @Nullable String host, int port) {
        this.receiver = receiver;
        SparkConf settings = env.conf();
        TransportConf conf = SparkTransportConf.fromSparkConf(
                settings,
                MODULE,
                0,
                Option.empty(),
                Option.apply(env.securityManager().getRpcSSLOptions()));
        boolean secret = env.securityManager().isAuthenticationEnabled();
        List<TransportClientBootstrap> clientBootstraps =
                secret ? List.of(new AuthClientBootstrap(conf, settings.getAppId(), env.securityManager())) : List.of();
        List<TransportServerBootstrap> serverBootstraps =
                secret ? List.of(new AuthServerBootstrap(conf, env.securityManager())) : List.of();
        context = new TransportContext(conf, new Handler());
        clients = context.createClientFactory(clientBootstraps);
        server = host == null ? null : context.createServer(host, port, serverBootstraps);
    }

    /** Creates that of a process which connects to others only. */
    static Transport client(SparkEnv env, Receiver receiver) {
        return new Transport(env, receiver, null, 0);
    }

    /** Creates that of the driver, which listens where Spark's driver does. */
    static Transport driver(SparkEnv env, Receiver receiver) {
        SparkConf settings = env.conf();
        String host = settings.get("spark.driver.bindAddress", settings.get("spark.driver.host"));
        return new Transport(env, receiver, host, SparkSettings.port(settings));
    }

    /** Creates that of an executor which listens, where its blocks are served too. */
    static Transport executor(SparkEnv env, Receiver receiver) {
        return new Transport(env, receiver, host(env), 0);
    }

    /** Returns the name under which others reach an executor. */
    static String host(SparkEnv env) {
        return env.blockManager().blockManagerId().host();
    }

    /** Returns the port that it listens on. */
    int port() {
        if (server == null) {
            throw new IllegalStateException("this process does not listen");
        }
        return server.getPort();
    }

    /** Connects to another process; returns when that has been authenticated. */
    TransportClient connect(String host, int port) throws IOException, InterruptedException {
        return clients.createUnmanagedClient(host, port);
    }

    /**
     * Sends a message. Returns at once.
     *
     * @param data what follows the header, which must not change until then
     * @param settled called with whether it has arrived, by a thread of the network
     */
    void send(TransportClient to, Message message, MemorySegment data, Consumer<Boolean> settled) {
        ByteBuffer header = message.bytes();
        ByteBuffer meta = ByteBuffer.allocate(Integer.BYTES + header.remaining())
                .putInt(Math.toIntExact(data.byteSize()))
                .put(header)
                .flip();
        sent.add(meta.remaining() + data.byteSize());
        to.uploadStream(
                new NioManagedBuffer(meta), new NioManagedBuffer(data.asByteBuffer()), new RpcResponseCallback() {
                    @Override
                    public void onSuccess(ByteBuffer response) {
                        settled.accept(true);
                    }

                    @Override
                    public void onFailure(Throwable e) {
                        settled.accept(false);
                    }
                });
    }

    /** Returns the bytes of all messages that were sent, headers included. */
    long sent() {
        return sent.sum();
    }

    /** Returns the bytes of all messages that have arrived, headers included. */
    long received() {
        return received.sum();
    }

    @Override
    public void close() {
        if (server != null) {
            server.close();
        }
        clients.close();
        context.close();
    }

    private final class Handler extends RpcHandler {
        private final StreamManager streams = new OneForOneStreamManager();

        @Override
        public StreamCallbackWithID receiveStream(
                TransportClient client, ByteBuffer meta, RpcResponseCallback callback) {
            int bytes = meta.getInt();
            Message message = Message.of(meta);
            Incoming incoming = reporting(() -> receiver.begin(client, message, bytes));
            return new StreamCallbackWithID() {
                private long at;

                @Override
                public String getID() {
                    return "fedcomuon";
                }

                @Override
                public void onData(String streamId, ByteBuffer part) {
                    MemorySegment from = MemorySegment.ofBuffer(part);
                    MemorySegment.copy(from, 0, incoming.into(), at, from.byteSize());
                    at += from.byteSize();
                }

                @Override
                public void onComplete(String streamId) {
                    received.add(Integer.BYTES + Message.BYTES + at);
                    reporting(() -> {
                        incoming.complete().run();
                        return true;
                    });
                }

                @Override
                public void onFailure(String streamId, Throwable cause) {
                    incoming.broken().run();
                }
            };
        }

        @Override
        public void receive(TransportClient client, ByteBuffer message, RpcResponseCallback callback) {
            callback.onFailure(new IOException("only streams are understood here"));
        }

        @Override
        public StreamManager getStreamManager() {
            return streams;
        }

        private <T> T reporting(Supplier<T> work) {
            try {
                return work.get();
            } catch (Error e) {
                receiver.failed(e);
                throw e;
            }
        }

        @Override
        public void exceptionCaught(Throwable cause, TransportClient client) {
            if (cause instanceof Error error) {
                receiver.failed(error);
            }
        }

        @Override
        public void channelInactive(TransportClient client) {
            receiver.closed(client);
        }
    }
}
