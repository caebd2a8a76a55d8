package org.fedcomuon.bench;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import tools.jackson.databind.JsonNode;

/**
 * What the profile of a CUDA kernel in one case says, as {@code native/cuda/profile} writes it.
 *
 * @param title the operation and its sizes
 * @param instructions issued for a warp, of each class
 * @param activeLanes mean share of the lanes of a warp that an instruction is issued for
 * @param activeFma the same of fused multiply-adds and mma
 * @param balance fused multiply-adds and mma of the average warp over those of the busiest one of its block
 * @param conflicts extra wavefronts of shared memory over the least
 * @param innerConflicts the same within innermost loops
 * @param sectors sectors per request of global memory
 * @param leastSectors how many the requested bytes would fill
 * @param fmaPerLoad fused multiply-adds and mma per load of shared memory
 * @param shares the share of a GPU's peak that the schedule allows, by the name of the GPU
 * @param aims the limits of {@code native/cuda/profile/limits.cpp} that the kernel has to keep, and whether it does
 */
record KernelProfile(
        String title,
        String kernel,
        long blocks,
        long observedBlocks,
        Map<String, Long> instructions,
        double activeLanes,
        double activeFma,
        double balance,
        double conflicts,
        double innerConflicts,
        double sectors,
        double leastSectors,
        double fmaPerLoad,
        Map<String, Share> shares,
        List<Judgement> aims) {

    /** The part of the peak, and the resource that the kernel is bound by. */
    record Share(double part, String boundBy) {}

    KernelProfile {
        // In the order of the file.
        instructions = new LinkedHashMap<>(instructions);
        shares = new LinkedHashMap<>(shares);
        aims = List.copyOf(aims);
    }

    /** Reads a profile; a member that is missing is a {@link tools.jackson.core.JacksonException}. */
    static KernelProfile of(JsonNode node) {
        var instructions = new LinkedHashMap<String, Long>();
        for (Map.Entry<String, JsonNode> entry : node.required("classes").properties()) {
            instructions.put(entry.getKey(), entry.getValue().longValue());
        }
        var shares = new LinkedHashMap<String, Share>();
        for (Map.Entry<String, JsonNode> entry : node.required("roofline").properties()) {
            shares.put(
                    entry.getKey(),
                    new Share(
                            entry.getValue().required("share").doubleValue(),
                            entry.getValue().required("bound_by").stringValue()));
        }
        return new KernelProfile(
                node.required("case").stringValue(),
                node.required("kernel").stringValue(),
                node.required("blocks").longValue(),
                node.required("observed_blocks").longValue(),
                instructions,
                node.required("active_lanes").doubleValue(),
                node.required("active_lanes_fma").doubleValue(),
                node.required("balance").doubleValue(),
                node.required("bank_conflicts").doubleValue(),
                node.required("inner_loops").required("bank_conflicts").doubleValue(),
                node.required("sectors_per_request").doubleValue(),
                node.required("least_sectors_per_request").doubleValue(),
                node.required("fma_per_shared_load").doubleValue(),
                shares,
                Judgement.read(node.path("aims")));
    }

    /** Returns its name among rows of other suites. */
    String row() {
        return "kernels, %s: %s".formatted(title, kernel);
    }

    /** Returns the number of instructions of all classes. */
    long allInstructions() {
        return instructions.values().stream().mapToLong(Long::longValue).sum();
    }
}
