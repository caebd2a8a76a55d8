// The limits of profiles must be able to fail, and exceptions must not outlive their reason.
#include "limits.h"

#include <stdexcept>

#include "check.h"

using namespace fcm::profile;

namespace {

Profile profile(double sectors, double conflicts, double lanes, double fma) {
    Profile p;
    p.kernel = "k";
    p.title = "some, 2 x 3";
    p.numbers = {{"sectors", sectors}, {"least_sectors", 100}, {"inner_loops.bank_conflicts", conflicts},
                 {"active_lanes", lanes}, {"active_lanes_fma", fma}};
    return p;
}

const std::vector<Limit> kLimits = {{"k", "", Figure::coalesced, 1.1},
                                    {"k", "", Figure::bank_conflicts, 0.05},
                                    {"k", "", Figure::active_lanes, 0.9},
                                    {"k", "", Figure::active_fma, 0.9}};

void refused(const char *words, const Profile &p, const std::vector<Exception> &except = {}) {
    const std::vector<std::string> found = violations({p}, kLimits, except);
    CHECK(found.size() == 1 && found[0].find(words) != std::string::npos, "%zu violations, %s", found.size(),
          found.empty() ? words : found[0].c_str());
}

}  // namespace

TEST(a_kernel_within_its_limits_passes) {
    const auto found = violations({profile(110, 0.05, 0.9, 0.9)}, kLimits, {});
    CHECK(found.empty(), "%s", found[0].c_str());
}

TEST(each_figure_is_limited) {
    refused("sectors over the least 1.1500, at most 1.1000", profile(115, 0, 1, 1));
    refused("bank conflicts of inner loops 0.0600, at most 0.0500", profile(100, 0.06, 1, 1));
    refused("active lanes 0.8900, at least 0.9000", profile(100, 0, 0.89, 1));
    refused("active lanes of multiply-adds 0.5000, at least 0.9000", profile(100, 0, 1, 0.5));
}

TEST(an_exception_holds_for_its_value_only) {
    const std::vector<Exception> except = {{"k", "some, 2 x 3", Figure::bank_conflicts, 0.2}};
    CHECK(violations({profile(100, 0.2, 1, 1)}, kLimits, except).empty(), "the exception does not hold");
    refused("worse than its exception", profile(100, 0.21, 1, 1), except);
    refused("needs no exception", profile(100, 0.01, 1, 1), except);
    refused("an exception for nothing", profile(100, 0, 1, 1), {{"k", "other", Figure::bank_conflicts, 0.2}});
}

TEST(a_limit_without_a_profile_fails) {
    CHECK(violations({}, kLimits, {}).size() == kLimits.size(), "no profile passes");
    Profile p = profile(100, 0, 1, 1);
    p.numbers.erase("active_lanes");
    bool refused_it = false;
    try {
        violations({p}, kLimits, {});
    } catch (const std::runtime_error &) {
        refused_it = true;
    }
    CHECK(refused_it, "a figure that is missing passes");
}

TEST(profiles_are_read) {
    const Profile p = read_profile("{\"case\": \"a, 2 x 3\", \"kernel\": \"k\", \"x\": 1.5e3, \"loop\": {\"y\": 2, \"z\": {}}}");
    CHECK(p.title == "a, 2 x 3" && p.kernel == "k" && p.number("x") == 1500 && p.number("loop.y") == 2, "%g", p.number("x"));
    for (const char *text : {"", "{", "{\"case\": \"a\"}", "{\"case\": \"a\", \"kernel\": \"k\"} more", "{\"case\": }"}) {
        bool failed = false;
        try {
            read_profile(text);
        } catch (const std::runtime_error &) {
            failed = true;
        }
        CHECK(failed, "read: %s", text);
    }
}

TEST(a_profile_names_its_limits_and_verdicts) {
    const Profile found = read_profile("{\"case\": \"a\", \"kernel\": \"k\", \"aims\": " +
                                       json_of_limits(profile(115, 0.05, 0.89, 1), kLimits) + "}");
    const auto is = [&](const char *figure, const char *bound, double limit, double value, const char *verdict) {
        const std::string key = std::string("aims.") + figure;
        const auto words = found.words.find(key + ".verdict");
        CHECK(found.number(key + "." + bound) == limit && found.number(key + ".found") == value && words != found.words.end() &&
                  words->second == verdict,
              "%s", figure);
    };
    is("sectors over the least", "at_most", 1.1, 1.15, "not met");
    is("bank conflicts of inner loops", "at_most", 0.05, 0.05, "met");
    is("active lanes", "at_least", 0.9, 0.89, "not met");
    is("active lanes of multiply-adds", "at_least", 0.9, 1, "met");
    Profile other = profile(115, 1, 0, 0);
    other.kernel = "another";
    CHECK(json_of_limits(other, kLimits) == "{}", "%s", json_of_limits(other, kLimits).c_str());
}
