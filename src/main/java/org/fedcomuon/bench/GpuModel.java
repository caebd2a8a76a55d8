package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.fedcomuon.model.Adaptation;
import org.fedcomuon.model.Network;

/**
 * A federated round on GPUs, on paper: what has to be done by a roofline, the longest of what peak rates allow for
 * flops and bytes, kernel by kernel, and a price for each launch. Nothing is measured; no GPU is needed or asked.
 */
public final class GpuModel {
    /** Stands above everything that comes of it. */
    public static final String LABEL = "A model: computed, not measured. No GPU has run this.";

    /** Making an element of a dropout mask in the JVM, on one core: a quarter of a 64-bit random number and a store. */
    static final double MASK_SECONDS = 1e-9;

    /** From this many parameters on a gradient on the CPU takes too long to be recorded with the whole batch. */
    private static final long LARGE = 20_000_000;

    private static final int FEW = 2;
    private static final int MORE = 3;

    /** What examples are, for the recording of a gradient. */
    public enum Data {
        /** 28 x 28, one channel. */
        DIGITS,
        /** 32 x 32, three channels. */
        PHOTOGRAPHS,
        /** 128 words. */
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
     * @param preset its name
     * @param adaptation of meta learning
     * @param batch examples a gradient
     * @param schulzSteps of Newton-Schulz
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
            int schulzSteps) {
        GradientWork gradient() {
            return network.parameters() > LARGE && batch > MORE
                    ? GradientWork.extrapolated(network, data.inputs(), adaptation, FEW, MORE, batch)
                    : GradientWork.recorded(network, data.inputs(), adaptation, batch);
        }
    }

    /** An experiment with one of the two methods. */
    record Case(Experiment experiment, RoundWork work) {
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

        /** Of a run on so many GPUs. */
        double runSeconds(Gpu gpu, int devices, boolean tf32) {
            return rounds() * round(devices).seconds(gpu, tf32);
        }

        /** With every client's step captured as a graph: of a round on one device, a graph for each step. */
        double runSecondsAsGraphs(Gpu gpu, int devices) {
            WorkList round = round(devices);
            double graphs = experiment.tau() + 1.0;
            return rounds() * (round.busy(gpu, false) + graphs * gpu.launch() + round.launches() * Gpu.GRAPH_NODE);
        }

        /** One core of the host makes the masks of all clients of a device. */
        double maskSeconds(int devices) {
            return experiment.iterations()
                    * (double) work.evaluations()
                    * Math.ceilDiv(experiment.clients(), devices)
                    * work.gradient().maskElements()
                    * MASK_SECONDS;
        }

        /** Both were told apart by how many batches were run. */
        String source() {
            List<Integer> batches = work.gradient().recorded();
            return batches.size() == 1
                    ? "recorded on the CPU with a batch of %d".formatted(batches.getFirst())
                    : "recorded on the CPU with batches of %d and %d, continued in a straight line to %d"
                            .formatted(batches.get(0), batches.get(1), experiment.batch());
        }
    }

    private final List<Case> cases = new ArrayList<>();

    /** Works it out; a gradient of each experiment is evaluated on the CPU to see which operators it takes. */
    public GpuModel(List<Experiment> experiments) {
        for (Experiment experiment : experiments) {
            GradientWork gradient = experiment.gradient();
            for (boolean reduced : new boolean[] {false, true}) {
                cases.add(new Case(
                        experiment,
                        new RoundWork(
                                experiment.network().layout(),
                                gradient,
                                reduced,
                                experiment.clients(),
                                experiment.tau(),
                                experiment.schulzSteps())));
            }
        }
    }

    List<Case> cases() {
        return List.copyOf(cases);
    }

    /** Tables in Markdown. */
    public String markdown() {
        return new GpuModelTables(cases).text();
    }

    /** Everything, for JSON; times are in seconds. */
    public Map<String, Object> json() {
        var all = new LinkedHashMap<String, Object>();
        all.put("suite", "gpu-model");
        all.put("label", LABEL);
        all.put("measured", false);
        all.put("graph_node_seconds", Gpu.GRAPH_NODE);
        all.put("mask_element_seconds", MASK_SECONDS);
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
            }
            times.put(gpu.name(), time);
        }
        entry.put("times", times);
        return entry;
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
