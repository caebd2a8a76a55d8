package org.fedcomuon.bench;

import java.util.List;

/** Our own operations as work for a GPU: the counts of {@code docs/kernels.md}, and the launches around the kernels. */
final class FusedWork {
    private FusedWork() {}

    /** Returns the work of {@code y = a x + (1 - a) y} for {@code n} elements. */
    static WorkList ema(double n) {
        return WorkList.of(KernelWork.of("fcm_k_ema", 1, 3 * n, 12 * n));
    }

    /** Returns the work of {@code M = b H v + (1 - b) M}. */
    static WorkList compose(double n, int d) {
        return WorkList.of(KernelWork.of("fcm_k_compose", 1, 2 * n * (d + 1), 4 * n * (d + 2)));
    }

    /** Returns the work of the projected variant when H stays in the ball: norms are read, H is not written. */
    static WorkList projectCompose(Design design, double n, int d) {
        String kernel = design != Design.WITH_WAITS ? "fcm_k_compose" : "fcm_k_project_compose";
        return checked(
                design,
                WorkList.of(
                        KernelWork.tiny("fcm_k_check_norms", 1),
                        KernelWork.of(kernel, 1, 2 * n * (d + 1), 4 * n * (d + 2))));
    }

    /** Returns the work of {@code H = now + (1 - g)(H - before)} and its norms. */
    static WorkList storm(double n) {
        return WorkList.of(KernelWork.of("fcm_k_storm", 1, 3 * n, 16 * n), KernelWork.tiny("fcm_k_norms", 1));
    }

    static WorkList project(Design design, double n) {
        return checked(
                design,
                WorkList.of(KernelWork.tiny("fcm_k_check_norms", 1), KernelWork.of("fcm_k_project", 1, 3 * n, 8 * n)));
    }

    /** Returns the work of the check of values that the host has computed; later, the host looks at them itself. */
    static WorkList valuesFinite(Design design, double n) {
        return design != Design.WITH_WAITS ? new WorkList(List.of()) : allFinite(design, n);
    }

    static WorkList allFinite(Design design, double n) {
        String kernel = design != Design.WITH_WAITS ? "fcm_k_look_for_not_finite" : "fcm_k_first_not_finite";
        return checked(design, WorkList.of(KernelWork.of(kernel, 1, 0, 4 * n)));
    }

    /** Returns the work of {@code W -= eta M / ||M||}. */
    static WorkList normalizedStep(Design design, double n) {
        if (design != Design.WITH_WAITS) { // of all vectors
            return WorkList.of(
                    KernelWork.of("fcm_k_vector_squares", 1, 2 * n, 4 * n),
                    KernelWork.tiny("fcm_k_vector_norms", 1),
                    KernelWork.of("fcm_k_vector_steps", 1, 4 * n, 12 * n));
        }
        return checked(
                design,
                WorkList.of(
                        KernelWork.of("fcm_k_squares", 1, 2 * n, 4 * n),
                        KernelWork.tiny("fcm_k_norms", 1),
                        KernelWork.of("fcm_k_step", 1, 4 * n, 12 * n)));
    }

    /** Returns the work of {@code W -= eta M}. */
    static WorkList plainStep(double n) {
        return WorkList.of(KernelWork.of("fcm_k_step", 1, 4 * n, 12 * n));
    }

    static WorkList normalize(Design design, double n) {
        String squares = design != Design.WITH_WAITS ? "fcm_k_checked_squares" : "fcm_k_squares";
        return checked(
                design,
                WorkList.of(
                        KernelWork.of(squares, 1, 2 * n, 4 * n),
                        KernelWork.tiny("fcm_k_norms", 1),
                        KernelWork.of("fcm_k_normalize", 1, 3 * n, 8 * n)));
    }

    static WorkList rearrange(double n) {
        return WorkList.of(KernelWork.of("fcm_k_rearrange_4", 1, 0, 8 * n));
    }

    /** Returns the work of the mean over clients with n elements each, written to all of them. */
    static WorkList average(double n, int clients) {
        return WorkList.of(KernelWork.of("fcm_k_average", 1, 3 * n * clients, 8 * n * clients));
    }

    /** Returns the copy of what a check for NaN has found to the host, which waits for it. */
    static WorkList findings() {
        return WorkList.of(KernelWork.tiny("findings to the host", 1).waiting(1));
    }

    /**
     * Adds the work of the check for NaN: before, the findings are cleared, and the host reads them afterwards; after,
     * the kernels themselves test and set a status.
     */
    private static WorkList checked(Design design, WorkList kernels) {
        return design != Design.WITH_WAITS
                ? kernels
                : WorkList.of(KernelWork.tiny("fill of findings", 1))
                        .and(kernels)
                        .and(findings());
    }
}
