package org.fedcomuon.bench;

import static java.util.stream.Collectors.joining;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/** Profiles of kernels as Markdown tables: the figures, and the instructions by class. */
final class KernelTables {
    private static final String EXPLANATION = """
            From the PTX of nvcc, interpreted in lockstep: what a profiler would count. No time is measured, and ptxas may drop or join instructions.
            Lanes: active ones per issued instruction, and per fma or mma. Balance: fma and mma of the average warp over the busiest one of its block.
            Conflicts: extra wavefronts of shared memory over the least, in all and in innermost loops. Sectors: 32 bytes each, per request of global
            memory, and how many the requested bytes would fill. The last columns are the share of peak that the schedule allows, and its bound: the
            largest of the cycles of issue (busiest of 4 schedulers), fma (128 lanes), mma, fp64, shared memory (a wavefront, the fewest possible), L2 (64 bytes) and
            memory (every sector once, at the SM's part of the bandwidth); the share is fma, mma or memory over that. Aims: the limits on lanes, inner
            conflicts and sectors that the kernel has to keep.
            """;

    /**
     * A column: its head, and what it shows of a profile.
     *
     * @param compared whether a profile from before a change is shown beside it
     */
    private record Column(String head, Function<KernelProfile, String> cell, boolean compared) {
        Column(String head, Function<KernelProfile, String> cell) {
            this(head, cell, true);
        }
    }

    private KernelTables() {}

    /**
     * Returns the tables of a profile.
     *
     * @param before the profile of older code: then only what is in both is shown, and a figure that differs as both
     */
    static String of(Optional<List<KernelProfile>> before, List<KernelProfile> profiles) {
        var text = new StringBuilder(EXPLANATION).append('\n');
        append(text, figures(profiles), before, profiles);
        if (before.isEmpty()) {
            text.append("\nWarp instructions by class, in percent.\n\n");
            append(text, classes(profiles), before, profiles);
        }
        return text.toString();
    }

    private static List<Column> figures(List<KernelProfile> profiles) {
        var columns = new ArrayList<Column>();
        columns.add(new Column("lanes", p -> percent(p.activeLanes())));
        columns.add(new Column("of fma", p -> hasProducts(p) ? percent(p.activeFma()) : "-"));
        columns.add(new Column("balance", p -> hasProducts(p) ? percent(p.balance()) : "-"));
        columns.add(
                new Column("conflicts", p -> p.instructions().containsKey("shared") ? percent(p.conflicts()) : "-"));
        columns.add(
                new Column("inner", p -> p.instructions().containsKey("shared") ? percent(p.innerConflicts()) : "-"));
        columns.add(new Column("sectors", p -> format("%.2f", p.sectors())));
        columns.add(new Column("least", p -> format("%.2f", p.leastSectors())));
        columns.add(new Column("fma a load", p -> p.fmaPerLoad() > 0 ? format("%.1f", p.fmaPerLoad()) : "-"));
        for (String gpu : keys(profiles, p -> p.shares().keySet())) {
            columns.add(new Column(
                    gpu,
                    p -> Optional.ofNullable(p.shares().get(gpu))
                            .map(share -> percent(share.part()) + " " + share.boundBy())
                            .orElse("-")));
        }
        columns.add(new Column("aims", KernelTables::verdicts, false));
        return columns;
    }

    /** Returns how many aims are met if they all are, and otherwise those that are not. */
    private static String verdicts(KernelProfile profile) {
        String missed = profile.aims().stream()
                .filter(judgement -> judgement.verdict() != Judgement.Verdict.MET)
                .map(judgement -> "%s: %s".formatted(judgement.aim(), judgement.text()))
                .collect(joining("; "));
        return profile.aims().isEmpty()
                ? "-"
                : missed.isEmpty() ? format("%d met", profile.aims().size()) : missed;
    }

    private static List<Column> classes(List<KernelProfile> profiles) {
        var columns = new ArrayList<Column>();
        columns.add(new Column("instructions", p -> format("%d", p.allInstructions())));
        for (String name : keys(profiles, p -> p.instructions().keySet())) {
            columns.add(new Column(name, p -> {
                long count = p.instructions().getOrDefault(name, 0L);
                return count == 0 ? "" : format("%.1f", 100.0 * count / p.allInstructions());
            }));
        }
        return columns;
    }

    private static Set<String> keys(List<KernelProfile> profiles, Function<KernelProfile, Set<String>> of) {
        var names = new LinkedHashSet<String>();
        profiles.forEach(profile -> names.addAll(of.apply(profile)));
        return names;
    }

    private static void append(
            StringBuilder text,
            List<Column> columns,
            Optional<List<KernelProfile>> before,
            List<KernelProfile> profiles) {
        text.append("| case | kernel |");
        columns.forEach(column -> text.append(" %s |".formatted(column.head())));
        text.append("\n|---|---|").append("---:|".repeat(columns.size())).append('\n');
        for (KernelProfile profile : profiles) {
            Optional<KernelProfile> old = before.flatMap(all -> all.stream()
                    .filter(other -> other.title().equals(profile.title())
                            && other.kernel().equals(profile.kernel()))
                    .findFirst());
            if (before.isPresent() && old.isEmpty()) {
                continue;
            }
            text.append("| %s | `%s` |".formatted(title(profile), profile.kernel()));
            for (Column column : columns) {
                String now = column.cell().apply(profile);
                String then =
                        old.filter(_ -> column.compared()).map(column.cell()).orElse(now);
                text.append(" %s |".formatted(then.equals(now) ? now : then + " to " + now));
            }
            text.append('\n');
        }
    }

    private static String title(KernelProfile profile) {
        return profile.observedBlocks() == profile.blocks()
                ? profile.title()
                : "%s (%d of %d blocks)".formatted(profile.title(), profile.observedBlocks(), profile.blocks());
    }

    private static boolean hasProducts(KernelProfile profile) {
        return profile.instructions().containsKey("fma")
                || profile.instructions().containsKey("mma");
    }

    private static String percent(double share) {
        return format("%.1f%%", 100 * share);
    }

    private static String format(String format, Object value) {
        return String.format(Locale.ROOT, format, value);
    }
}
