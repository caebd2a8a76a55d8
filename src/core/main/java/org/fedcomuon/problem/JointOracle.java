package org.fedcomuon.problem;

import java.util.List;

/**
 * Evaluates several clients of a device in one call, for a library to which one large computation costs less than many
 * small ones, such as one that launches kernels on a GPU. Results agree with those of the {@link Client}s up to
 * rounding; those of one client do not depend on the data and the parameters of another.
 *
 * <p>Called by the device thread only. Views are valid during the call only. The client of a sample is
 * {@link Sample#client}; samples, points and values are in the same order. If a call throws, the clients are evaluated
 * one by one, by calls with one client each, to find out whose fault it is.
 */
public interface JointOracle {
    /**
     * Returns whether it computes in the memory of the device, on its {@linkplain org.fedcomuon.device.Device#stream
     * stream}. Then points and values are that memory, and a call returns when the work is queued: nothing is waited
     * for until the host reads a result. Otherwise they are memory of the host, and a call returns when all is written.
     */
    boolean computesOnDevice();

    /**
     * Evaluates {@code g(w; xi)} and its Jacobian for every client; see {@link Client#inner}.
     *
     * @param value receives the d components of g of each client, client by client
     * @param jacobian receives their gradients: for each of the d components, the points of all clients
     */
    void inner(List<Sample> xi, Points w, Floats value, List<Points> jacobian) throws Exception;

    /**
     * Evaluates the product of {@link HessianProduct#hessianProduct} for every client. Called only if every client is a
     * {@link HessianProduct}.
     *
     * @param product receives the results
     */
    void hessianProduct(List<Sample> xi, Points w, Points direction, Points product) throws Exception;

    /**
     * The points of several clients in one memory, the first of each at the same distance from that of the client
     * before: what a library needs in order to compute with all of them in one call.
     *
     * <p>Not thread-safe, unless all threads only read.
     *
     * @param layout of the blocks of every client
     * @param values from the first value of the first client to the last one of the last client
     * @param count of clients
     * @param stride from the point of a client to that of the next; 0 if all of them read the same point
     */
    record Points(Layout layout, Floats values, int count, long stride) {
        public Points {
            if (count < 1 || (stride != 0 && stride < layout.length())) {
                throw new IllegalArgumentException(
                        "%d points of %d values, one every %d: at least one is needed, and they"
                                        .formatted(count, layout.length(), stride)
                                + " must not overlap");
            }
            long needed = (count - 1) * stride + layout.length();
            if (values.length() != needed) {
                throw new IllegalArgumentException("%d values; %d points of %d, one every %d, have %d"
                        .formatted(values.length(), count, layout.length(), stride, needed));
            }
        }

        /** Returns the point of client {@code i} of these, as a view. */
        public Point of(int i) {
            return new Point(layout, values.slice(i * stride, layout.length()));
        }
    }
}
