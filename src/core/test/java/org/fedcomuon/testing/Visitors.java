package org.fedcomuon.testing;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.NoConnectionPendingException;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Visitors of a page who want no page, but its connections, memory and time. Not thread-safe. */
public final class Visitors implements AutoCloseable {
    private static final int LARGE = 370_000; // less than the 380 KiB that the JDK's own server takes
    private static final int LITTLE = 4 << 10;

    /** What a visitor does. */
    public enum Kind {
        /** Sends nothing. */
        SILENT,
        /** Sends half a request. */
        HALF,
        /** Sends a request byte by byte, as often as it is told to go on, and without an end. */
        DRIP,
        /** Sends a header of 370 kB that does not end. */
        LARGE_HEADER,
        /** Asks for the history and does not read it. */
        UNREAD_ANSWER,
        /** Asks for events and does not read them. */
        UNREAD_EVENTS,
        /** Sends what is no request. */
        GARBAGE,
        /** Asks for the page and resets the connection. */
        RESET
    }

    private record Visitor(Kind kind, SocketChannel channel, ByteBuffer rest) {}

    private final InetSocketAddress page;
    private final List<Visitor> visitors = new ArrayList<>();

    public Visitors(URI page) {
        this.page = new InetSocketAddress(page.getHost(), page.getPort());
    }

    /** Lets so many come. They stay until the page closes their connections, or this is closed. */
    public void come(Kind kind, int count) throws IOException {
        ByteBuffer text = ByteBuffer.wrap(text(kind).getBytes(StandardCharsets.US_ASCII));
        for (int i = 0; i < count; i++) {
            SocketChannel channel = SocketChannel.open();
            channel.setOption(StandardSocketOptions.SO_RCVBUF, LITTLE);
            channel.configureBlocking(false);
            visitors.add(new Visitor(kind, channel, text.duplicate()));
            try {
                channel.connect(page);
            } catch (ConnectException e) {
                // It is gone when it is to go on.
            }
        }
        goOn();
    }

    private String text(Kind kind) {
        String host = "Host: %s:%d\r\n".formatted(page.getHostString(), page.getPort());
        return switch (kind) {
            case SILENT -> "";
            case HALF -> "GET / HTTP/1.1\r\n" + host;
            case DRIP -> "GET / HTTP/1.1\r\n" + host + "X: " + "x".repeat(LITTLE);
            case LARGE_HEADER -> "GET / HTTP/1.1\r\n" + host + "X: " + "x".repeat(LARGE);
            case UNREAD_ANSWER -> "GET /history HTTP/1.1\r\n" + host + "\r\n";
            case UNREAD_EVENTS -> "GET /events HTTP/1.1\r\n" + host + "\r\n";
            case GARBAGE -> "\u0000\u0001\u0002 ".repeat(LITTLE) + "\n\n";
            case RESET -> "GET / HTTP/1.1\r\n" + host + "\r\n";
        };
    }

    /** Lets all go on: who is connecting or sending does more of it. Those whose connection was closed are gone. */
    public void goOn() throws IOException {
        for (Visitor visitor : List.copyOf(visitors)) {
            if (!goOn(visitor)) {
                visitor.channel.close();
                visitors.remove(visitor);
            }
        }
    }

    private static boolean goOn(Visitor visitor) throws IOException {
        try {
            if (!visitor.channel.finishConnect()) {
                return true;
            }
            ByteBuffer rest = visitor.rest;
            if (visitor.kind == Kind.DRIP && rest.hasRemaining()) {
                rest.position(rest.position() + visitor.channel.write(rest.slice(rest.position(), 1)));
            } else {
                visitor.channel.write(rest);
            }
            if (visitor.kind == Kind.RESET) {
                visitor.channel.setOption(StandardSocketOptions.SO_LINGER, 0);
                visitor.channel.close();
                return false;
            }
            boolean reads = visitor.kind != Kind.UNREAD_ANSWER && visitor.kind != Kind.UNREAD_EVENTS;
            return !reads || visitor.channel.read(ByteBuffer.allocate(LITTLE)) >= 0;
        } catch (IOException | NoConnectionPendingException e) {
            visitor.channel.close();
            return false; // The page has closed it, or there is none any more.
        }
    }

    /** How many there are that have not noticed that the page has closed their connection. */
    public int staying() {
        return visitors.size();
    }

    /** All leave at once. */
    public void leave() throws IOException {
        for (Visitor visitor : visitors) {
            visitor.channel.close();
        }
        visitors.clear();
    }

    @Override
    public void close() throws IOException {
        leave();
    }
}
