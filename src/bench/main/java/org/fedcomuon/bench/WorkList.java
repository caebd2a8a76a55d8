package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** Pieces of work that a GPU does one after the other, as on one stream. */
record WorkList(List<KernelWork> all) {
    WorkList {
        all = List.copyOf(all);
    }

    static WorkList of(KernelWork... all) {
        return new WorkList(List.of(all));
    }

    WorkList and(WorkList other) {
        var both = new ArrayList<>(all);
        both.addAll(other.all);
        return new WorkList(both);
    }

    static WorkList concat(Collection<WorkList> parts) {
        var together = new ArrayList<KernelWork>();
        parts.forEach(part -> together.addAll(part.all));
        return new WorkList(together);
    }

    /** Returns the whole list {@code count} times. */
    WorkList times(double count) {
        return new WorkList(all.stream().map(work -> work.times(count)).toList());
    }

    double flops() {
        return all.stream().mapToDouble(KernelWork::flops).sum();
    }

    double bytes() {
        return all.stream().mapToDouble(KernelWork::bytes).sum();
    }

    double linkBytes() {
        return all.stream().mapToDouble(KernelWork::linkBytes).sum();
    }

    double hostBytes() {
        return all.stream().mapToDouble(KernelWork::hostBytes).sum();
    }

    long launches() {
        return all.stream().mapToLong(KernelWork::launches).sum();
    }

    long waits() {
        return all.stream().mapToLong(KernelWork::waits).sum();
    }

    /** Returns the least time on the GPU without launches. */
    double busy(Gpu gpu, boolean tf32) {
        return all.stream().mapToDouble(work -> work.busy(gpu, tf32)).sum();
    }

    /** Returns the time of work, launches and waits without overlap. */
    double seconds(Gpu gpu, boolean tf32) {
        return busy(gpu, tf32) + launches() * gpu.launch() + waits() * Gpu.WAIT;
    }

    /** Returns the time as one graph: one launch for all, a smaller overhead for each piece of work, and no wait. */
    double secondsAsGraph(Gpu gpu, boolean tf32) {
        return all.isEmpty() ? 0 : busy(gpu, tf32) + gpu.launch() + launches() * Gpu.GRAPH_NODE;
    }

    /** Returns the resource with the largest part of {@link #seconds}. */
    KernelWork.Bound bound(Gpu gpu, boolean tf32) {
        Map<KernelWork.Bound, Double> spent = new EnumMap<>(KernelWork.Bound.class);
        for (KernelWork work : all) {
            spent.merge(work.scarcest(gpu, tf32), work.busy(gpu, tf32), Double::sum);
        }
        spent.put(KernelWork.Bound.LAUNCHES, launches() * gpu.launch());
        spent.put(KernelWork.Bound.WAITS, waits() * Gpu.WAIT);
        return spent.entrySet().stream()
                .max(Map.Entry.comparingByValue())
                .orElseThrow()
                .getKey();
    }
}
