/**
 * The algorithms: one class each, to be read beside its pseudo-code, {@link org.fedcomuon.method.FedCoMuon} first. A
 * {@link org.fedcomuon.method.Method} is the hyper-parameters; {@link org.fedcomuon.method.Method#on} takes its state
 * on one device, for the {@link org.fedcomuon.method.Clients} placed there. Every device runs the same steps on its own
 * clients, and they meet at the {@link org.fedcomuon.method.Server}.
 *
 * <p>A line of an algorithm is an operation on {@link org.fedcomuon.method.Variable}s: one value a client, all clients
 * of the device in one kernel call. Who takes part in a round is not the algorithms' business: a variable's operations
 * leave the clients that do not alone.
 */
@NullMarked
package org.fedcomuon.method;

import org.jspecify.annotations.NullMarked;
