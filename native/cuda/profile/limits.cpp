#include "limits.h"

#include <cstdio>

namespace fcm::profile {

namespace {

constexpr double kSectors = 1.10, kConflicts = 0.05, kLanes = 0.90;
constexpr double kSlack = 1e-4;  // values of exceptions are written with so many digits

bool at_most(Figure figure) { return figure == Figure::coalesced || figure == Figure::bank_conflicts; }

bool keeps(Figure figure, double found, double limit) {
    return at_most(figure) ? found <= limit + kSlack : found >= limit - kSlack;
}

bool is_of(const Profile &profile, const std::string &kernel, const std::string &title) {
    return profile.kernel == kernel && profile.title.rfind(title, 0) == 0;
}

std::string words(const Profile &profile, Figure figure, double found, const char *what, double value) {
    char text[64];
    std::snprintf(text, sizeof text, " %.4f, %s %.4f", found, what, value);
    return profile.kernel + " in " + profile.title + ": " + name(figure) + text;
}

std::vector<Limit> make_limits() {
    std::vector<Limit> all;
    for (const char *kernel : {"fcm_k_newton_schulz", "fcm_k_newton_schulz_bf16", "fcm_k_newton_schulz_tf32", "fcm_k_products",
                               "fcm_k_products_bf16", "fcm_k_products_tf32"}) {
        all.push_back({kernel, "", Figure::coalesced, kSectors});
        all.push_back({kernel, "", Figure::bank_conflicts, kConflicts});
        all.push_back({kernel, "", Figure::active_lanes, kLanes});
        all.push_back({kernel, "", Figure::active_fma, kLanes});
    }
    // Those that a step calls for every element.
    for (const char *kernel :
         {"fcm_k_ema", "fcm_k_compose", "fcm_k_project", "fcm_k_adaptive_step", "fcm_k_average", "fcm_k_average_rows",
          "fcm_k_mean_exponents", "fcm_k_mean_sums", "fcm_k_mean_combine", "fcm_k_mean_finish", "fcm_k_triad",
          "fcm_k_look_for_not_finite", "fcm_k_squares", "fcm_k_checked_squares", "fcm_k_vector_squares",
          "fcm_k_vector_steps", "fcm_k_storm", "fcm_k_step", "fcm_k_normalize", "fcm_k_count_magnitudes", "fcm_k_keep",
          "fcm_k_rearrange_4", "fcm_k_rearrange_8", "fcm_k_dropout_mask", "fcm_k_schulz_norms"}) {
        all.push_back({kernel, "", Figure::coalesced, kSectors});
        all.push_back({kernel, "", Figure::bank_conflicts, kConflicts});
        all.push_back({kernel, "", Figure::active_lanes, kLanes});
    }
    return all;
}

}  // namespace

const char *name(Figure figure) {
    switch (figure) {
        case Figure::coalesced: return "sectors over the least";
        case Figure::bank_conflicts: return "bank conflicts of inner loops";
        case Figure::active_lanes: return "active lanes";
        case Figure::active_fma: return "active lanes of multiply-adds";
    }
    return "";
}

double figure_of(const Profile &profile, Figure figure) {
    switch (figure) {
        case Figure::coalesced: {
            const double least = profile.number("least_sectors");
            return least == 0 ? 1 : profile.number("sectors") / least;
        }
        case Figure::bank_conflicts: return profile.number("inner_loops.bank_conflicts");
        case Figure::active_lanes: return profile.number("active_lanes");
        case Figure::active_fma: return profile.number("active_lanes_fma");
    }
    return 0;
}

const std::vector<Limit> &limits() {
    static const std::vector<Limit> kAll = make_limits();
    return kAll;
}

std::vector<std::string> violations(const std::vector<Profile> &profiles, const std::vector<Limit> &all,
                                    const std::vector<Exception> &except) {
    std::vector<std::string> found;
    std::vector<bool> used(except.size());
    for (const Limit &limit : all) {
        bool seen = false;
        for (const Profile &profile : profiles) {
            if (!is_of(profile, limit.kernel, limit.title)) continue;
            seen = true;
            const double value = figure_of(profile, limit.figure);
            const bool kept = keeps(limit.figure, value, limit.value);
            bool excepted = false;
            for (size_t i = 0; i < except.size(); ++i) {
                const Exception &e = except[i];
                if (e.figure != limit.figure || profile.kernel != e.kernel || profile.title != e.title) continue;
                excepted = used[i] = true;
                if (kept) {
                    found.push_back(words(profile, e.figure, value, "which needs no exception from", limit.value));
                } else if (!keeps(e.figure, value, e.value)) {
                    found.push_back(words(profile, e.figure, value, "worse than its exception", e.value));
                }
            }
            if (!kept && !excepted) {
                found.push_back(words(profile, limit.figure, value, at_most(limit.figure) ? "at most" : "at least", limit.value));
            }
        }
        if (!seen) found.push_back(limit.kernel + (limit.title.empty() ? "" : " in " + limit.title) + ": no profile");
    }
    for (size_t i = 0; i < except.size(); ++i) {
        if (!used[i]) found.push_back("an exception for nothing: " + except[i].kernel + " in " + except[i].title);
    }
    return found;
}

std::string json_of_limits(const Profile &profile, const std::vector<Limit> &all) {
    std::string members;
    for (const Limit &limit : all) {
        if (!is_of(profile, limit.kernel, limit.title)) continue;
        const double found = figure_of(profile, limit.figure);
        char numbers[80];
        std::snprintf(numbers, sizeof numbers, "\": {\"%s\": %.4f, \"found\": %.4f, ",
                      at_most(limit.figure) ? "at_most" : "at_least", limit.value, found);
        members += (members.empty() ? "\"" : ", \"") + std::string(name(limit.figure)) + numbers + "\"verdict\": \"" +
                   (keeps(limit.figure, found, limit.value) ? "met" : "not met") + "\"}";
    }
    return "{" + members + "}";
}

}  // namespace fcm::profile
