package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.device.Precision;
import org.fedcomuon.model.Adaptation;
import org.fedcomuon.model.Network;

/**
 * A performance model of a federated round on GPUs. The time of each kernel follows from a roofline, the longest time
 * that the peak rates allow for flops and bytes, plus an overhead for each launch and each wait of the host. Nothing is
 * measured, and no GPU is needed.
 */
public final class GpuModel {
    /** The heading of all results. */
    public static final String LABEL = "A model: computed, not measured. No GPU has run this.";

    /**
     * The seconds to generate an element of a dropout mask in the JVM, on one core: a quarter of a 64-bit random number
     * and a store.
     */
    static final double MASK_SECONDS = 1e-9;

    /** With more parameters than this, a gradient on the CPU takes too long to be recorded with the whole batch. */
    private static final long LARGE = 20_000_000;

    private static final int FEW = 2;
    private static final int MORE = 3;

    /** The kind of examples, for the recording of a gradient. */
    public enum Data {
        /** Images of 28 x 28 pixels with one channel. */
        DIGITS,
        /** Images of 32 x 32 pixels with three channels. */
        PHOTOGRAPHS,
        /** Sequences of 128 words. */
        TEXT;

        GradientWork.Inputs inputs() {
            return switch (this) {
                case DIGITS -> new GradientWork.Inputs.Images(1, 28);
                case PHOTOGRAPHS -> new GradientWork.Inputs.Images(3, 32);
                case TEXT -> new GradientWork.Inputs.Words(128);
            };
        }
    }

    /**
     * An experiment.
     *
     * @param preset the name of the preset
     * @param adaptation of meta learning
     * @param batch examples per gradient
     * @param iteration of Newton-Schulz
     * @param evaluation what is evaluated, and how often
     */
    @SuppressWarnings("exports") // only the command line uses it
    public record Experiment(
            String preset,
            Network network,
            Data data,
            Optional<Adaptation> adaptation,
            int batch,
            int clients,
            int tau,
            long iterations,
            MuonWork.Iteration iteration,
            EvaluationWork.Plan evaluation) {
        GradientWork gradient() {
            return gradient(adaptation);
        }

        private GradientWork gradient(Optional<Adaptation> how) {
            return network.parameters() > LARGE && batch > MORE
                    ? GradientWork.extrapolated(network, data.inputs(), how, FEW, MORE, batch)
                    : GradientWork.recorded(network, data.inputs(), how, batch);
        }

        EvaluationWork evaluationWork() {
            WorkList adapting = evaluation.episodes() == 0
                    ? new WorkList(List.of())
                    : gradient(Optional.empty()).work();
            return EvaluationWork.recorded(network, data.inputs(), evaluation, adapting);
        }
    }

    /** The seconds of a run by what they are spent on. */
    record RunTime(double steps, double masks, double evaluations) {
        double all() {
            return steps + masks + evaluations;
        }
    }

    /** How a step of all clients of an experiment is orthogonalized on one GPU. */
    record Orthogonalization(Case of, Design design, Precision precision) {
        /** Returns whether some matrices are in Gram form. */
        boolean gram() {
            return design == Design.GROUPED
                    && of.experiment().network().layout().blocks().stream()
                            .anyMatch(of.experiment().iteration()::isGram);
        }

        WorkList work(Gpu gpu) {
            Experiment experiment = of.experiment();
            return MuonWork.step(
                    design,
                    experiment.network().layout(),
                    experiment.clients(),
                    experiment.iteration().in(precision).on(gpu.memory()));
        }
    }

    /** An experiment with one of the two methods, in the current design unless it says otherwise. */
    record Case(Experiment experiment, RoundWork work, EvaluationWork evaluation) {
        /**
         * Returns the time of a run with evaluations. Masks that the host makes keep the GPU waiting, because a
         * gradient needs them; evaluations do too.
         */
        RunTime runTime(Design design, Gpu gpu, int devices) {
            WorkList round = WorkList.concat(work.in(design).round(devices).values());
            return new RunTime(
                    rounds() * round.seconds(gpu, false),
                    design == Design.WITH_WAITS ? maskSeconds(devices) : 0,
                    experiment.evaluation().count(experiment.iterations()) * evaluation.seconds(design, gpu, devices));
        }

        /** Returns the launches per step on one of the devices, on average over a round. */
        double launches(Design design, int devices) {
            return (double) WorkList.concat(work.in(design).round(devices).values())
                            .launches()
                    / experiment.tau();
        }

        /** Returns the waits of libtorch per step on one of the devices. */
        double torchWaits(Design design, int devices) {
            return (double) work.in(design)
                            .round(devices)
                            .getOrDefault(RoundWork.Part.GRADIENT, new WorkList(List.of()))
                            .waits()
                    / experiment.tau();
        }

        /** Returns the orthogonalization by cuBLAS and the present one in each precision. */
        List<Orthogonalization> orthogonalizations() {
            return List.of(
                    new Orthogonalization(this, Design.BY_CUBLAS, Precision.FP32),
                    new Orthogonalization(this, Design.GROUPED, Precision.FP32),
                    new Orthogonalization(this, Design.GROUPED, Precision.TF32),
                    new Orthogonalization(this, Design.GROUPED, Precision.BF16));
        }

        String method() {
            return work.reduced() ? "fedcomuon-vr" : "fedcomuon";
        }

        WorkList step() {
            return WorkList.concat(work.step(1).values());
        }

        WorkList round(int devices) {
            return WorkList.concat(work.round(devices).values());
        }

        double rounds() {
            return (double) experiment.iterations() / experiment.tau();
        }

        /** Returns the seconds of a run on this many GPUs. */
        double runSeconds(Gpu gpu, int devices, boolean tf32) {
            return rounds() * round(devices).seconds(gpu, tf32);
        }

        /** Returns the seconds of a run in which every step of a client is captured as a graph. */
        double runSecondsAsGraphs(Gpu gpu, int devices) {
            WorkList round = round(devices);
            double graphs = experiment.tau() + 1.0;
            return rounds() * (round.busy(gpu, false) + graphs * gpu.launch() + round.launches() * Gpu.GRAPH_NODE);
        }

        /**
         * Returns the seconds to generate dropout masks. One core of the host makes the masks of all clients of a
         * device.
         */
        double maskSeconds(int devices) {
            return experiment.iterations()
                    * (double) work.evaluations()
                    * Math.ceilDiv(experiment.clients(), devices)
                    * work.gradient().maskElements()
                    * MASK_SECONDS;
        }

        /** Describes how the gradient was recorded; the number of recorded batches tells the two ways apart. */
        String source() {
            List<Integer> batches = work.gradient().recorded();
            return batches.size() == 1
                    ? "recorded on the CPU with a batch of %d".formatted(batches.getFirst())
                    : "recorded on the CPU with batches of %d and %d, extrapolated linearly to %d"
                            .formatted(batches.get(0), batches.get(1), experiment.batch());
        }
    }

    private final List<Case> cases = new ArrayList<>();

    /** Computes the model. One gradient of each experiment is evaluated on the CPU to record its operators. */
    public GpuModel(List<Experiment> experiments) {
        for (Experiment experiment : experiments) {
            GradientWork gradient = experiment.gradient();
            EvaluationWork evaluation = experiment.evaluationWork();
            for (boolean reduced : new boolean[] {false, true}) {
                cases.add(new Case(
                        experiment,
                        new RoundWork(
                                Design.CURRENT,
                                experiment.network().layout(),
                                gradient,
                                reduced,
                                experiment.clients(),
                                experiment.tau(),
                                experiment.iteration()),
                        evaluation));
            }
        }
    }

    List<Case> cases() {
        return List.copyOf(cases);
    }

    /** Returns the results as Markdown tables. */
    public String markdown() {
        return new GpuModelTables(cases).text();
    }

    /** Returns all results for JSON; times are in seconds. */
    public Map<String, Object> json() {
        var all = new LinkedHashMap<String, Object>();
        all.put("suite", "gpu-model");
        all.put("label", LABEL);
        all.put("measured", false);
        all.put("graph_node_seconds", Gpu.GRAPH_NODE);
        all.put("wait_seconds", Gpu.WAIT);
        all.put("mask_element_seconds", MASK_SECONDS);
        all.put("host_flops_a_second", EvaluationWork.HOST_FLOPS);
        all.put("design", Design.CURRENT.key());
        all.put("gpus", Gpu.ALL.stream().map(GpuModel::json).toList());
        var list = new ArrayList<Map<String, Object>>();
        cases.forEach(each -> list.add(json(each)));
        all.put("cases", list);
        return all;
    }

    private static Map<String, Object> json(Gpu gpu) {
        var entry = new LinkedHashMap<String, Object>();
        entry.put("name", gpu.name());
        entry.put("fp32_flops_a_second", gpu.fp32());
        entry.put("tf32_flops_a_second", gpu.tf32());
        entry.put("bf16_flops_a_second", gpu.bf16());
        entry.put("bytes_a_second", gpu.bandwidth());
        entry.put("memory_bytes", gpu.memory());
        entry.put("link_bytes_a_second", gpu.link());
        entry.put("host_bytes_a_second", gpu.host());
        entry.put("launch_seconds", gpu.launch());
        return entry;
    }

    private static Map<String, Object> json(Case one) {
        var entry = new LinkedHashMap<String, Object>();
        Experiment experiment = one.experiment();
        entry.put("preset", experiment.preset());
        entry.put("method", one.method());
        entry.put("parameters", experiment.network().parameters());
        entry.put("batch", experiment.batch());
        entry.put("clients", experiment.clients());
        entry.put("tau", experiment.tau());
        entry.put("iterations", experiment.iterations());
        entry.put("operators", one.source());
        entry.put("mask_elements_a_gradient", one.work().gradient().maskElements());
        entry.put("step_of_one_client", parts(one.work().step(1)));
        entry.put("step_launches", one.step().launches());
        for (Design design : Design.values()) {
            for (int devices : new int[] {1, 2}) {
                var counts = new LinkedHashMap<String, Object>();
                counts.put("launches", one.launches(design, devices));
                counts.put("waits", one.work().in(design).waits(devices));
                counts.put("libtorch_waits", one.torchWaits(design, devices));
                entry.put("step_on_%d_%s".formatted(devices, design.key()), counts);
            }
        }
        if (!one.work().reduced()) { // the same with variance reduction
            entry.put("orthogonalize", orthogonalizations(one));
        }
        for (int devices : new int[] {1, 2}) {
            entry.put("round_on_%d".formatted(devices), parts(one.work().round(devices)));
            entry.put("variable_bytes_on_%d".formatted(devices), one.work().variableBytes(devices));
        }
        var times = new LinkedHashMap<String, Object>();
        for (Gpu gpu : Gpu.ALL) {
            var time = new LinkedHashMap<String, Object>();
            time.put("step_seconds", one.step().seconds(gpu, false));
            time.put("step_seconds_as_graph", one.step().secondsAsGraph(gpu, false));
            for (int devices : new int[] {1, 2}) {
                time.put(
                        "round_seconds_on_%d".formatted(devices),
                        one.round(devices).seconds(gpu, false));
                time.put(
                        "round_seconds_on_%d_tf32".formatted(devices),
                        one.round(devices).seconds(gpu, true));
                time.put("run_seconds_on_%d".formatted(devices), one.runSeconds(gpu, devices, false));
                time.put("run_seconds_on_%d_tf32".formatted(devices), one.runSeconds(gpu, devices, true));
                time.put("run_seconds_on_%d_as_graphs".formatted(devices), one.runSecondsAsGraphs(gpu, devices));
                time.put("run_mask_seconds_on_%d".formatted(devices), one.maskSeconds(devices));
                for (Design design : Design.values()) {
                    RunTime run = one.runTime(design, gpu, devices);
                    var parts = new LinkedHashMap<String, Object>();
                    parts.put("step_seconds", run.steps());
                    parts.put("mask_seconds", run.masks());
                    parts.put("evaluation_seconds", run.evaluations());
                    parts.put("seconds", run.all());
                    time.put("run_on_%d_%s".formatted(devices, design), parts);
                }
            }
            times.put(gpu.name(), time);
        }
        entry.put("times", times);
        return entry;
    }

    /** Returns a step of all clients on one GPU, without the gradient. */
    private static List<Map<String, Object>> orthogonalizations(Case one) {
        var all = new ArrayList<Map<String, Object>>();
        for (Orthogonalization each : one.orthogonalizations()) {
            var entry = new LinkedHashMap<String, Object>();
            entry.put("design", each.design().key());
            entry.put("precision", each.precision().toString());
            entry.put("gram", each.gram());
            WorkList any = each.work(Gpu.RTX_4090);
            entry.put("flops", any.flops());
            entry.put("bytes", any.bytes());
            for (Gpu gpu : Gpu.ALL) {
                WorkList work = each.work(gpu);
                var time = new LinkedHashMap<String, Object>();
                time.put("launches", work.launches());
                time.put("seconds", work.seconds(gpu, false));
                time.put("bound_by", work.bound(gpu, false).toString());
                entry.put(gpu.name(), time);
            }
            all.add(entry);
        }
        return all;
    }

    private static Map<String, Object> parts(Map<RoundWork.Part, WorkList> parts) {
        var all = new LinkedHashMap<String, Object>();
        parts.forEach((part, work) -> {
            var entry = new LinkedHashMap<String, Object>();
            entry.put("flops", work.flops());
            entry.put("bytes", work.bytes());
            entry.put("link_bytes", work.linkBytes());
            entry.put("host_bytes", work.hostBytes());
            entry.put("launches", work.launches());
            entry.put("waits", work.waits());
            for (Gpu gpu : Gpu.ALL) {
                var time = new LinkedHashMap<String, Object>();
                time.put("seconds", work.seconds(gpu, false));
                time.put("seconds_tf32", work.seconds(gpu, true));
                time.put("seconds_without_launches", work.busy(gpu, false));
                time.put("bound_by", work.bound(gpu, false).toString());
                entry.put(gpu.name(), time);
            }
            all.put(part.toString(), entry);
        });
        return all;
    }

    static String seconds(double seconds) {
        if (seconds < 1e-3) {
            return String.format(Locale.ROOT, "%.0f us", seconds * 1e6);
        }
        if (seconds < 1) {
            return String.format(Locale.ROOT, "%.3g ms", seconds * 1e3);
        }
        return seconds < 120
                ? String.format(Locale.ROOT, "%.3g s", seconds)
                : String.format(Locale.ROOT, "%.1f min", seconds / 60);
    }
}
