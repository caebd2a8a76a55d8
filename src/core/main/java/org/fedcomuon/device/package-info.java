/**
 * The devices that the library computes on. {@link org.fedcomuon.device.Devices} lists them, with a reason for those
 * that are not available, and opens a {@link org.fedcomuon.device.Device}; a device allocates
 * {@link org.fedcomuon.device.Buffer}s and runs the update rules of the paper on {@link org.fedcomuon.device.Batch}es
 * of them, all clients of the device in one call. Matrix products and decompositions are in
 * {@link org.fedcomuon.device.Blas} and {@link org.fedcomuon.device.Solver}.
 *
 * <p>{@code cpu:0}, {@code cpu:1}, ... are virtual devices that share the cores of this machine; {@code cuda:0},
 * {@code cuda:1}, ... are NVIDIA GPUs; {@code cudasim:0}, ... execute the kernels of a GPU on the CPU, for tests. The
 * host cannot access the memory of the last two: values are copied, or pass through a
 * {@link org.fedcomuon.device.Buffer.Mirror}. Their operations are asynchronous;
 * {@link org.fedcomuon.device.Device#synchronize} waits for them, and so does every copy to the host.
 *
 * <p><b>Threads.</b> A device belongs to the platform thread that opened it: every operation on another thread is a
 * {@link java.lang.WrongThreadException}. Buffers may be closed on any thread, and the memory of a CPU buffer may be
 * read and written on any thread while no operation runs on it.
 *
 * <p><b>Lifetimes.</b> {@code close()} frees, and a second one does nothing. Using what is closed is an
 * {@link java.lang.IllegalStateException}. A buffer that becomes unreachable, or outlives its device, is freed and
 * reported in the log, with its label.
 */
@NullMarked
package org.fedcomuon.device;

import org.jspecify.annotations.NullMarked;
