package org.fedcomuon.cluster.mpi;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * Where process 0 hears the signs of life of the others. It goes around by MPI, so that only those who were started
 * together know the token.
 *
 * <p>Immutable.
 *
 * @param token in hexadecimal digits; whoever does not know it is not heard
 * @param host the name of the host of process 0, for messages
 * @param port where it listens
 * @param addresses of that host; another host may reach one of them only
 */
record HeartbeatAddress(String token, String host, int port, List<String> addresses) {
    static final int TOKEN_BYTES = 16;

    private static final String SEPARATOR = " ";

    HeartbeatAddress {
        addresses = List.copyOf(addresses);
    }

    /**
     * Returns the address of this host, with a new token.
     *
     * @param bound where this process listens: at loopback, or at all addresses
     */
    static HeartbeatAddress here(String host, InetSocketAddress bound) {
        var token = new byte[TOKEN_BYTES];
        new SecureRandom().nextBytes(token);
        var addresses = new ArrayList<String>();
        if (bound.getAddress().isAnyLocalAddress()) {
            try {
                NetworkInterface.networkInterfaces()
                        .flatMap(NetworkInterface::inetAddresses)
                        .filter(each -> !each.isLoopbackAddress() && !each.isLinkLocalAddress())
                        .map(InetAddress::getHostAddress)
                        .forEach(addresses::add);
            } catch (SocketException e) {
                addresses.clear(); // then by its name
            }
            addresses.add(host);
        } else {
            addresses.add(bound.getAddress().getHostAddress());
        }
        return new HeartbeatAddress(HexFormat.of().formatHex(token), host, bound.getPort(), addresses);
    }

    /** Returns the address that {@link #text} has written. */
    static HeartbeatAddress of(String text) {
        List<String> parts = List.of(text.split(SEPARATOR));
        return new HeartbeatAddress(
                parts.get(0), parts.get(1), Integer.parseInt(parts.get(2)), parts.subList(3, parts.size()));
    }

    String text() {
        return String.join(SEPARATOR, token, host, Integer.toString(port), String.join(SEPARATOR, addresses));
    }

    byte[] tokenBytes() {
        return HexFormat.of().parseHex(token);
    }

    boolean isToken(byte[] theirs) {
        return MessageDigest.isEqual(tokenBytes(), theirs);
    }

    /** Returns the addresses to try, in this order; a name that does not resolve now is left out. */
    List<InetSocketAddress> candidates() {
        var all = new ArrayList<InetSocketAddress>();
        for (String each : addresses) {
            try {
                all.add(new InetSocketAddress(InetAddress.getByName(each), port));
            } catch (UnknownHostException e) {
                // One of the others may do.
            }
        }
        return all;
    }

    /** Returns the address for messages, without the token. */
    @Override
    public String toString() {
        return "%s, port %d (%s)".formatted(host, port, String.join(", ", addresses));
    }
}
