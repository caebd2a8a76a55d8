/**
 * The algorithms: one class each, to be read beside its pseudo-code, {@link org.fedcomuon.method.FedCoMuon} first. A
 * {@link org.fedcomuon.method.Method} is the hyper-parameters; {@link org.fedcomuon.method.Method#on} creates its state
 * on one device, for the {@link org.fedcomuon.method.Clients} placed there. Every device runs the same steps on its own
 * clients, and exchanges values through the {@link org.fedcomuon.method.Method.Server}.
 *
 * <p>A line of an algorithm is an operation on {@link org.fedcomuon.method.Variable}s: one value per client, all
 * clients of the device in one kernel call. The algorithms do not deal with partial participation: a variable's
 * operations skip the clients that do not take part.
 */
@NullMarked
package org.fedcomuon.method;

import org.jspecify.annotations.NullMarked;
