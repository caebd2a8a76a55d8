package org.fedcomuon.model;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerScope;
import org.bytedeco.pytorch.Tensor;
import org.bytedeco.pytorch.TensorVector;
import org.bytedeco.pytorch.global.torch;
import org.fedcomuon.device.Device;
import org.fedcomuon.federation.Evaluator;
import org.fedcomuon.problem.Point;

/**
 * Judges a model in the memory of devices, which take a share of the batches each. A device is given all of its share
 * before anybody waits for it, and only a few numbers of each batch come back. The batches do not depend on the number
 * of devices, so that neither do the numbers on devices of one kind.
 *
 * <p>Examples are copied to a device at their first evaluation, and stay there up to {@value #KEPT_BYTES} bytes: all of
 * MNIST, CIFAR-10 or WikiText-2. What is beyond is copied in every evaluation.
 *
 * <p>Thread-safe; a device is used by its own thread.
 */
final class DeviceJudge implements Evaluator.OnDevices, AutoCloseable {
    static final long KEPT_BYTES = 1L << 30;

    /** What is judged at a time: a batch, or an episode, whose query set may have several batches. */
    interface Task {
        /** Returns its examples, on the host. */
        List<Tensor> tensors();

        /**
         * Returns what {@link Tally#sums} gives for each of its batches, as a vector. Both the parameters and the
         * tensors are on the device that is to compute.
         */
        Tensor sums(Parameters w, List<Tensor> here);
    }

    /** Tensors of one device, which are kept. Confined to the thread of the device. */
    private static final class Kept {
        private final Map<Integer, List<Tensor>> byTask = new HashMap<>();
        private long bytes;
    }

    private final List<? extends Task> tasks;
    private final List<List<Examples>> sets;
    private final Function<List<Judge.Score>, Evaluator.Scores> metrics;
    private final long mostKept;
    private final BiFunction<Parameters, Tensor, Tensor> bring;
    private final Map<String, Kept> kept = new ConcurrentHashMap<>(); // by device

    /**
     * @param sets for each score, the batches that it is of; together they are those of the tasks, in the same order
     * @param metrics makes the metrics from the scores
     */
    DeviceJudge(
            List<? extends Task> tasks,
            List<List<Examples>> sets,
            Function<List<Judge.Score>, Evaluator.Scores> metrics) {
        this(tasks, sets, metrics, KEPT_BYTES, Parameters::here);
    }

    /**
     * @param mostKept bytes on each device
     * @param bring returns a tensor on the device of the parameters: a copy, or itself if it is there
     */
    DeviceJudge(
            List<? extends Task> tasks,
            List<List<Examples>> sets,
            Function<List<Judge.Score>, Evaluator.Scores> metrics,
            long mostKept,
            BiFunction<Parameters, Tensor, Tensor> bring) {
        this.tasks = List.copyOf(tasks);
        this.sets = List.copyOf(sets);
        this.metrics = metrics;
        this.mostKept = mostKept;
        this.bring = bring;
    }

    /** Returns the sums of all tasks of a share, one after the other. */
    @Override
    public double[] share(Device device, int share, int shares, Point w) {
        Torch.claim();
        int first = start(share, shares);
        int end = start(share + 1, shares);
        if (first == end) {
            return new double[0];
        }
        Kept here = kept.computeIfAbsent(device.name(), name -> new Kept());
        try (var _ = new PointerScope()) {
            Parameters at = Parameters.of(w);
            var results = new Tensor[end - first];
            for (int i = first; i < end; i++) {
                int task = i;
                results[i - first] = Torch.part(() -> tasks.get(task).sums(at, tensors(here, task, at)));
            }
            Tensor all = torch.cat(new TensorVector(results)).cpu(); // where the host waits
            var values = new double[Math.toIntExact(all.numel())];
            all.data_ptr_double().get(values);
            return values;
        }
    }

    @Override
    public Evaluator.Scores scores(long step, List<double[]> shares) {
        double[] sums = shares.stream().flatMapToDouble(Arrays::stream).toArray();
        var scores = new ArrayList<Judge.Score>();
        int at = 0;
        for (List<Examples> set : sets) {
            Tally sum = Tally.NOTHING;
            for (Examples batch : set) {
                sum = sum.plus(Tally.of(sums, at, batch.labels().numel()));
                at += Tally.SUMS;
            }
            scores.add(sum.score());
        }
        return metrics.apply(scores);
    }

    private int start(int share, int shares) {
        return Math.toIntExact((long) tasks.size() * share / shares);
    }

    private List<Tensor> tensors(Kept here, int task, Parameters at) {
        List<Tensor> there = here.byTask.get(task);
        if (there != null) {
            return there;
        }
        List<Tensor> own = tasks.get(task).tensors();
        List<Tensor> brought =
                own.stream().map(tensor -> bring.apply(at, tensor)).toList();
        long bytes = 0;
        for (int i = 0; i < own.size(); i++) {
            if (brought.get(i).is_same(own.get(i))) {
                return own; // the memory of the device is the host's
            }
            bytes += brought.get(i).nbytes();
        }
        if (here.bytes + bytes <= mostKept) {
            brought.forEach(Pointer::retainReference); // beyond the scope of this evaluation
            here.bytes += bytes;
            here.byTask.put(task, brought);
        }
        return brought;
    }

    /** Frees what has been kept, after the last evaluation. */
    @Override
    public void close() {
        for (Kept each : kept.values()) {
            each.byTask.values().forEach(tensors -> tensors.forEach(Pointer::releaseReference));
        }
        kept.clear();
    }
}
