package org.fedcomuon.cluster.spark;

import java.nio.ByteBuffer;
import java.util.List;

/**
 * The header of a message between a node and the one above it. The driver is the root; every member is a node.
 *
 * @param kind what follows it
 * @param run the number of the run, so that nothing of another one is mistaken for its own
 * @param node the number of the member that sends it, {@link #DRIVER} for the driver
 * @param life how often this member was started before
 * @param exchange the number of the exchange since the run began
 * @param block the number of the block in this exchange
 * @param at the first element of the piece in the block
 * @param count the number of elements of the piece
 * @param terms what {@code MeanBlock.terms} is, of sums
 * @param total what {@code MeanBlock.total} is, of sums
 */
record Message(
        Kind kind, long run, int node, int life, int exchange, int block, int at, int count, long terms, double total) {
    static final int DRIVER = -1;
    static final int BYTES = 1 + 2 * Long.BYTES + Double.BYTES + 6 * Integer.BYTES;

    enum Kind {
        /** Of a member: its status, and what it reports. */
        STATUS,
        /** Of the driver: the statuses of all members; {@code count} is 1 if they were known before this one was. */
        STATUSES,
        /** Upwards: exponents of a member, or of all below it. */
        EXPONENTS,
        /** Downwards: exponents of all members. */
        COMBINED,
        /** Upwards: sums of a member, or of all below it. */
        SUMS,
        /** Downwards: the mean. */
        MEAN,
        /** Of a member: it lacks a mean, and asks for what the driver has. */
        ASK,
        /** Of the driver: it has neither the mean nor the exponents that it was asked for. */
        UNKNOWN,
        /** Of a member: where those below it reach it. */
        ADDRESS,
        /** Of a member: it asks where the member above it is. */
        ASK_ADDRESS,
        /** Of the driver: the answer to this. */
        ADDRESS_ABOVE,
        /** Of a member: it has finished its run. */
        DONE,
        /** Of a member: it cannot start with the given configuration. */
        REFUSED,
        /** Of a member: it cannot continue. */
        FAILED,
        /** Of the driver: the reason why the member has to end. */
        END;

        private static final List<Kind> ALL = List.of(values());
    }

    static Message of(Kind kind, long run, int node, int life) {
        return new Message(kind, run, node, life, 0, 0, 0, 0, 0, 0);
    }

    Message in(int newExchange) {
        return new Message(kind, run, node, life, newExchange, block, at, count, terms, total);
    }

    Message piece(int newBlock, int newAt, int newCount) {
        return new Message(kind, run, node, life, exchange, newBlock, newAt, newCount, terms, total);
    }

    Message scaled(long newTerms, double newTotal) {
        return new Message(kind, run, node, life, exchange, block, at, count, newTerms, newTotal);
    }

    /** Returns a message about the same piece, of another sender. */
    Message as(Kind newKind, int newNode, int newLife) {
        return new Message(newKind, run, newNode, newLife, exchange, block, at, count, terms, total);
    }

    Piece piece() {
        return new Piece(exchange, block, at);
    }

    ByteBuffer bytes() {
        var bytes = ByteBuffer.allocate(BYTES);
        bytes.put((byte) Kind.ALL.indexOf(kind))
                .putLong(run)
                .putInt(node)
                .putInt(life)
                .putInt(exchange)
                .putInt(block)
                .putInt(at)
                .putInt(count)
                .putLong(terms)
                .putDouble(total);
        return bytes.flip();
    }

    static Message of(ByteBuffer bytes) {
        return new Message(
                Kind.ALL.get(bytes.get()),
                bytes.getLong(),
                bytes.getInt(),
                bytes.getInt(),
                bytes.getInt(),
                bytes.getInt(),
                bytes.getInt(),
                bytes.getInt(),
                bytes.getLong(),
                bytes.getDouble());
    }

    /**
     * A part of a block as it is sent: small enough for a processor's cache, so that the nodes above work while the
     * rest is on its way.
     *
     * @param at its first element
     */
    record Piece(int exchange, int block, int at) {
        /** The number of elements of all pieces of a block but the last. */
        static final int ELEMENTS = 1 << 17;

        static int count(int elements) {
            return Math.ceilDiv(elements, ELEMENTS);
        }

        static int length(int elements, int at) {
            return Math.min(ELEMENTS, elements - at);
        }
    }
}
