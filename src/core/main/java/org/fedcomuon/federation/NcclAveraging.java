package org.fedcomuon.federation;

import java.util.List;
import org.fedcomuon.cluster.Cluster.MeanBlock;
import org.fedcomuon.device.Batch;
import org.fedcomuon.device.Device;
import org.fedcomuon.device.DeviceException;
import org.fedcomuon.device.ElementType;
import org.fedcomuon.device.NcclReduction;
import org.fedcomuon.method.Clients;
import org.fedcomuon.method.Variable;

/**
 * Means by NCCL: each device computes exponents and sums of its own clients, section by section, and NCCL reduces them
 * over the devices, as integers.
 */
final class NcclAveraging implements Averaging {
    private final SharedState shared;
    private final Device device;
    private final NcclReduction nccl;
    private final long mostElements;
    private final GrowingBuffer exponents;
    private final GrowingBuffer sums;
    private long bytes;

    /**
     * All devices are here before any returns, and all fail when one does.
     *
     * @param group of all devices
     * @param mostElements of a section; 0 to choose
     */
    NcclAveraging(SharedState shared, Clients clients, NcclReduction.Group group, long mostElements) {
        this.shared = shared;
        this.mostElements = mostElements > 0 ? mostElements : MeanBlock.MOST_ELEMENTS;
        device = clients.device();
        exponents = new GrowingBuffer(device, "exponents for NCCL", ElementType.UINT8);
        sums = new GrowingBuffer(device, "sums for NCCL", ElementType.INT64);
        nccl = group.join(device);
        try {
            shared.barrier.await();
        } catch (RuntimeException e) {
            nccl.abandon();
            throw e;
        }
    }

    @Override
    public void post(List<Variable> posted, double[] weights) {
        shared.barrier.await();
    }

    @Override
    public void average(List<Variable> posted, double[] weights, RoundWeights round) {
        List<Section> sections = Section.of(posted, mostElements);
        exponents.grow(Section.longest(sections));
        sums.grow(Section.longest(sections));
        for (Section section : sections) {
            Batch maxima = exponents.vector(0, section.count());
            Batch total = sums.vector(0, section.count());
            device.meanExponents(section.all(), weights, maxima);
            nccl.max(maxima);
            device.meanSums(section.all(), weights, round.terms(), maxima, total);
            nccl.sum(total);
            device.finishMean(List.of(total), maxima, round.terms(), round.total(), section.each());
            bytes += 2 * section.count() * (Byte.BYTES + Long.BYTES); // to and from
        }
        nccl.await();
    }

    @Override
    public String title() {
        return "nccl (%s)".formatted(nccl.title());
    }

    @Override
    public long exchangedBytes() {
        return bytes;
    }

    /** Before the device is waited for, which would not return while a kernel of NCCL waits for another that failed. */
    @Override
    public void drain() {
        if (shared.barrier.isAborted()) {
            nccl.abandon();
        }
        try {
            device.synchronize();
        } catch (DeviceException e) {
            // The failed call throws, or has thrown.
        }
    }

    @Override
    public void disband() {
        nccl.close();
    }

    @Override
    public void close() {
        exponents.close();
        sums.close();
    }
}
