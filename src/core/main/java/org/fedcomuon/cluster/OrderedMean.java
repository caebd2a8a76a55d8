package org.fedcomuon.cluster;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.fedcomuon.device.Buffer;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.Devices;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.InstructionSet;

/**
 * Computes the answer to the contributions of all members: means over all clients, summed in client order by the kernel
 * that one process would use, so that results are bit-identical whatever the number of members. The process that all
 * members send to has one. Not thread-safe, but not bound to one thread.
 */
public final class OrderedMean implements AutoCloseable {
    private static final long CHUNK_BYTES = 32 << 20; // of all clients

    private final ExecutorService owner; // of the device, which knows only one thread
    private final Device device;
    private final StagingBuffers means = new StagingBuffers();
    private Buffer chunk;

    /** @param threads the number of threads that sum */
    public OrderedMean(int threads) {
        owner = Executors.newSingleThreadExecutor(
                Thread.ofPlatform().daemon().name("ordered-mean").factory());
        device = call(() -> Devices.open("cpu:0", threads, InstructionSet.AUTO));
        chunk = call(() -> device.allocate("a chunk of all clients", ElementType.FLOAT32, 0));
    }

    private <T> T call(Callable<T> work) {
        boolean interrupted = false;
        Future<T> result = owner.submit(work);
        try {
            while (true) {
                try {
                    return result.get();
                } catch (InterruptedException e) {
                    interrupted = true; // it is short, and uses memory that must not be freed under it
                } catch (ExecutionException e) {
                    if (e.getCause() instanceof RuntimeException cause) {
                        throw cause;
                    }
                    throw new IllegalStateException(e.getCause());
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Returns the answer to the contributions of all members.
     *
     * @param contributions in the order of the members
     * @throws MemberFailedException when they do not fit together, because the members do not run the same thing
     */
    public Cluster.Answer of(List<Contribution> contributions) {
        requireSame(contributions);
        return call(() -> answer(contributions));
    }

    private Cluster.Answer answer(List<Contribution> contributions) {
        Contribution first = contributions.getFirst();
        int clients =
                contributions.stream().mapToInt(each -> each.clients().size()).sum();
        var weights = new double[clients];
        for (Contribution each : contributions) {
            for (int k = 0; k < each.clients().size(); k++) {
                weights[each.clients().get(k)] = each.weights().get(k);
            }
        }
        boolean anyWeight = Arrays.stream(weights).anyMatch(weight -> weight > 0); // otherwise the members report it
        var answers = new ArrayList<MemorySegment>();
        for (int i = 0; i < first.values().size(); i++) {
            answers.add(means.get(i, first.length(i) * Float.BYTES));
            if (anyWeight) {
                average(contributions, i, weights, answers.getLast());
            }
        }
        return new Cluster.Answer(
                contributions.stream().map(Contribution::status).toList(),
                Arrays.stream(weights).boxed().toList(),
                answers);
    }

    /** Another version, data or setting on one of the hosts shows here at the latest. */
    private static void requireSame(List<Contribution> contributions) {
        Contribution first = contributions.getFirst();
        var seen = new ArrayList<Integer>();
        for (int member = 0; member < contributions.size(); member++) {
            Contribution each = contributions.get(member);
            seen.addAll(each.clients());
            if (!what(each).equals(what(first))) {
                throw new MemberFailedException(
                        member, "it brings %s where member 0 brings %s".formatted(what(each), what(first)));
            }
            if (!each.status().run().equals(first.status().run())) {
                throw new MemberFailedException(
                        member, "it does not run what member 0 runs: its data or its settings are others");
            }
        }
        seen.sort(null);
        for (int k = 0; k < seen.size(); k++) {
            if (seen.get(k) != k) {
                throw new MemberFailedException(
                        0, "clients %s are not 0 to %d, each once".formatted(seen, seen.size() - 1));
            }
        }
    }

    private static String what(Contribution contribution) {
        var text = new StringBuilder("step %d".formatted(contribution.status().step()));
        for (int i = 0; i < contribution.values().size(); i++) {
            text.append(", %d of %s"
                    .formatted(
                            contribution.length(i), contribution.values().get(i).name()));
        }
        return text.toString();
    }

    private void average(List<Contribution> contributions, int i, double[] weights, MemorySegment into) {
        long length = contributions.getFirst().length(i);
        long most = Math.max(1, Math.min(length, CHUNK_BYTES / Float.BYTES / weights.length));
        if (chunk.length() < most * weights.length) {
            chunk.close();
            chunk = device.allocate("a chunk of all clients", ElementType.FLOAT32, most * weights.length);
        }
        MemorySegment scratch = chunk.segment();
        for (long at = 0; at < length; at += most) {
            long count = Math.min(most, length - at);
            for (Contribution each : contributions) {
                for (int k = 0; k < each.clients().size(); k++) {
                    MemorySegment.copy(
                            each.values().get(i).rows(),
                            (k * length + at) * Float.BYTES,
                            scratch,
                            each.clients().get(k) * count * Float.BYTES,
                            count * Float.BYTES);
                }
            }
            device.average(chunk.batch(weights.length, count), weights);
            device.synchronize();
            MemorySegment.copy(scratch, 0, into, at * Float.BYTES, count * Float.BYTES);
        }
    }

    @Override
    public void close() {
        call(() -> {
            chunk.close();
            device.close();
            return true;
        });
        owner.close();
    }
}
