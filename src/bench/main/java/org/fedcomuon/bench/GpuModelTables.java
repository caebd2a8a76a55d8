package org.fedcomuon.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The results of {@link GpuModel} as Markdown tables, which {@code docs/performance.md} contains unchanged. */
final class GpuModelTables {
    /** A plausible range of the overhead of a launch. */
    private static final double CHEAP_LAUNCH = 2.5e-6;

    private static final double DEAR_LAUNCH = 10e-6;

    private final List<GpuModel.Case> cases;
    private final StringBuilder text = new StringBuilder();

    GpuModelTables(List<GpuModel.Case> cases) {
        this.cases = cases;
    }

    String text() {
        line("**%s**".formatted(GpuModel.LABEL));
        line("");
        gpus();
        sources();
        designs();
        orthogonalizations();
        steps();
        rounds();
        runs();
        return text.toString();
    }

    private void line(String line) {
        text.append(line).append('\n');
    }

    private void row(List<String> cells) {
        line("| " + String.join(" | ", cells) + " |");
    }

    /** Writes the head of a table. The first {@code left} columns are text, the others are figures. */
    private void head(int left, List<String> cells) {
        line("");
        row(cells);
        var rule = new StringBuilder("|");
        for (int i = 0; i < cells.size(); i++) {
            rule.append(i < left ? "---|" : "---:|");
        }
        line(rule.toString());
    }

    private static String figure(double value) {
        return value == 0 ? "0" : String.format(Locale.ROOT, value < 100 ? "%.3g" : "%.0f", value);
    }

    private void gpus() {
        line("The GPUs, with the figures of their manufacturer; the overhead of a launch is an assumption:");
        head(
                1,
                List.of(
                        "GPU",
                        "fp32 Tflop/s",
                        "tf32",
                        "bf16",
                        "GB/s",
                        "GB",
                        "GPU to GPU GB/s",
                        "host GB/s",
                        "launch overhead"));
        for (Gpu gpu : Gpu.ALL) {
            row(List.of(
                    gpu.name(),
                    figure(gpu.fp32() * 1e-12),
                    figure(gpu.tf32() * 1e-12),
                    figure(gpu.bf16() * 1e-12),
                    figure(gpu.bandwidth() * 1e-9),
                    figure(gpu.memory() * 1e-9),
                    figure(gpu.link() * 1e-9),
                    figure(gpu.host() * 1e-9),
                    GpuModel.seconds(gpu.launch())));
        }
    }

    private void sources() {
        line("");
        line("The operators of libtorch are recorded from a gradient of one client:");
        line("");
        for (GpuModel.Case one : cases) {
            if (!one.work().reduced()) {
                line("- `%s`: %s".formatted(one.experiment().preset(), one.source()));
            }
        }
    }

    private void designs() {
        int devices = 2;
        line("");
        line(
                "The three designs, on %d GPUs. Launches and waits are those of one GPU per step, on average over a round; times are those of the whole run in fp32. The waits of our operations are checked against a trace, those of libtorch follow from the recorded operators:"
                        .formatted(devices));
        var head = new ArrayList<>(List.of("preset", "method"));
        for (String what : List.of("launches", "our waits", "libtorch's waits")) {
            for (Design design : Design.values()) {
                head.add(design == Design.WITH_WAITS ? "%s, %s".formatted(what, design) : design.toString());
            }
        }
        head(2, head);
        for (GpuModel.Case one : cases) {
            var cells = new ArrayList<>(List.of(one.experiment().preset(), one.method()));
            for (Design design : Design.values()) {
                cells.add(figure(one.launches(design, devices)));
            }
            for (Design design : Design.values()) {
                cells.add(figure(one.work().in(design).waits(devices)));
            }
            for (Design design : Design.values()) {
                cells.add(figure(one.torchWaits(design, devices)));
            }
            row(cells);
        }
        head(
                3,
                List.of(
                        "preset",
                        "method",
                        "GPUs",
                        "steps, with waits",
                        "masks by the host",
                        "evaluations by the host",
                        "run, with waits",
                        "steps, by cuBLAS",
                        "evaluations by the GPUs",
                        "run, by cuBLAS",
                        "steps, grouped",
                        "run, grouped",
                        "with waits / grouped",
                        "by cuBLAS / grouped"));
        for (GpuModel.Case one : cases) {
            for (Gpu gpu : Gpu.ALL) {
                GpuModel.RunTime first = one.runTime(Design.WITH_WAITS, gpu, devices);
                GpuModel.RunTime before = one.runTime(Design.BY_CUBLAS, gpu, devices);
                GpuModel.RunTime now = one.runTime(Design.GROUPED, gpu, devices);
                row(List.of(
                        one.experiment().preset(),
                        one.method(),
                        "%d x %s".formatted(devices, gpu.name()),
                        GpuModel.seconds(first.steps()),
                        first.masks() == 0 ? "none" : GpuModel.seconds(first.masks()),
                        GpuModel.seconds(first.evaluations()),
                        GpuModel.seconds(first.all()),
                        GpuModel.seconds(before.steps()),
                        GpuModel.seconds(before.evaluations()),
                        GpuModel.seconds(before.all()),
                        GpuModel.seconds(now.steps()),
                        GpuModel.seconds(now.all()),
                        String.format(Locale.ROOT, "%.1f", first.all() / now.all()),
                        String.format(Locale.ROOT, "%.1f", before.all() / now.all())));
            }
        }
    }

    private void orthogonalizations() {
        line("");
        line(
                "Orthogonalization alone: a step of all clients on one GPU, before (by cuBLAS) and after (grouped), with the"
                        + " check for NaN and the vectors. The number of passes depends on the memory of the GPU; time is work and"
                        + " launches. \"Gram\": large matrices at least twice as long as wide are in Gram form:");
        var head = new ArrayList<>(List.of("preset", "clients", "orthogonalized", "precision", "Gflop", "GB"));
        for (Gpu gpu : Gpu.ALL) {
            head.add(gpu.name() + ", launches");
            head.add("time");
            head.add("before / after");
        }
        head(4, head);
        for (GpuModel.Case one : cases) {
            if (one.work().reduced()) {
                continue; // the same
            }
            List<GpuModel.Orthogonalization> all = one.orthogonalizations();
            for (GpuModel.Orthogonalization each : all) {
                WorkList any = each.work(Gpu.RTX_4090);
                var cells = new ArrayList<>(List.of(
                        one.experiment().preset(),
                        Integer.toString(one.experiment().clients()),
                        each.design() + (each.gram() ? ", Gram" : ""),
                        each.precision().toString(),
                        figure(any.flops() * 1e-9),
                        figure(any.bytes() * 1e-9)));
                for (Gpu gpu : Gpu.ALL) {
                    WorkList work = each.work(gpu);
                    double before = all.getFirst().work(gpu).seconds(gpu, false);
                    cells.add(Long.toString(work.launches()));
                    cells.add("%s, %s".formatted(GpuModel.seconds(work.seconds(gpu, false)), work.bound(gpu, false)));
                    cells.add(
                            each.equals(all.getFirst())
                                    ? ""
                                    : String.format(Locale.ROOT, "%.1f", before / work.seconds(gpu, false)));
                }
                row(cells);
            }
        }
    }

    private void steps() {
        line("");
        line("Details of the design of this code, which is \"%s\".".formatted(Design.CURRENT));
        line("");
        line(
                "One step of one client in fp32, including launches and waits, with the resource that takes most of the time:");
        var head = new ArrayList<>(List.of("preset", "method", "part", "Gflop", "MB", "launches", "waits"));
        Gpu.ALL.forEach(gpu -> head.add(gpu.name()));
        head(3, head);
        for (GpuModel.Case one : cases) {
            for (Map.Entry<RoundWork.Part, WorkList> part : one.work().step(1).entrySet()) {
                work(one, part.getKey().toString(), part.getValue());
            }
            work(one, "**step**", one.step());
        }
    }

    private void work(GpuModel.Case one, String name, WorkList work) {
        var cells = new ArrayList<>(List.of(
                one.experiment().preset(),
                one.method(),
                name,
                figure(work.flops() * 1e-9),
                figure(work.bytes() * 1e-6),
                Long.toString(work.launches()),
                Long.toString(work.waits())));
        for (Gpu gpu : Gpu.ALL) {
            cells.add("%s, %s".formatted(GpuModel.seconds(work.seconds(gpu, false)), work.bound(gpu, false)));
        }
        row(cells);
    }

    private void rounds() {
        line("");
        line("A round of all clients on one and on two GPUs. With graphs, each step of a client is one graph. The"
                + " last column is the data that the average moves to each of two GPUs:");
        var head = new ArrayList<>(List.of("preset", "method"));
        for (Gpu gpu : Gpu.ALL) {
            head.add(gpu.name() + " x 1");
            head.add("x 2");
            head.add("x 2, tf32");
            head.add("step time saved by a graph");
        }
        head.add("MB moved");
        head(2, head);
        for (GpuModel.Case one : cases) {
            var cells = new ArrayList<>(List.of(one.experiment().preset(), one.method()));
            for (Gpu gpu : Gpu.ALL) {
                cells.add(GpuModel.seconds(one.round(1).seconds(gpu, false)));
                cells.add(GpuModel.seconds(one.round(2).seconds(gpu, false)));
                cells.add(GpuModel.seconds(one.round(2).seconds(gpu, true)));
                double plain = one.step().seconds(gpu, false);
                double saved = 1 - one.step().secondsAsGraph(gpu, false) / plain;
                cells.add(String.format(Locale.ROOT, "%.0f%%", 100 * saved));
            }
            cells.add(figure(one.round(2).linkBytes() * 1e-6));
            row(cells);
        }
    }

    private void runs() {
        Gpu gpu = Gpu.RTX_4090;
        line("");
        line("The whole run on two %s as in the paper, in fp32, without evaluations and start:".formatted(gpu.name()));
        head(
                2,
                List.of(
                        "preset",
                        "method",
                        "T",
                        "run",
                        "launches at 2.5 us",
                        "at 10 us",
                        "steps as graphs",
                        "masks generated by one host core",
                        "variables per GPU"));
        for (GpuModel.Case one : cases) {
            row(List.of(
                    one.experiment().preset(),
                    one.method(),
                    Long.toString(one.experiment().iterations()),
                    GpuModel.seconds(one.runSeconds(gpu, 2, false)),
                    GpuModel.seconds(one.runSeconds(gpu.withLaunch(CHEAP_LAUNCH), 2, false)),
                    GpuModel.seconds(one.runSeconds(gpu.withLaunch(DEAR_LAUNCH), 2, false)),
                    GpuModel.seconds(one.runSecondsAsGraphs(gpu, 2)),
                    one.maskSeconds(2) == 0 ? "none" : GpuModel.seconds(one.maskSeconds(2)),
                    "%s GB".formatted(figure(one.work().variableBytes(2) * 1e-9))));
        }
    }
}
