#include "figures.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace fcm::profile {

namespace {

constexpr double kWarp = 32, kFp32Lanes = 128, kSector = 32;

double ratio(uint64_t a, uint64_t b, double otherwise) {
    return b == 0 ? otherwise : static_cast<double>(a) / static_cast<double>(b);
}

std::string printed(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

class Json {
public:
    void add(const std::string &key, const std::string &raw) {
        text_ += (text_.empty() ? "{\"" : ", \"") + key + "\": " + raw;
    }
    void add(const std::string &key, double value) { add(key, printed(value)); }
    void add(const std::string &key, uint64_t value) { add(key, std::to_string(value)); }
    void word(const std::string &key, const std::string &value) { add(key, "\"" + value + "\""); }
    std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

private:
    std::string text_;
};

void add_classes(Json &json, const Counts &counts) {
    Json classes;
    for (unsigned i = 0; i < kClasses; ++i) {
        if (counts.by_class[i].issued != 0) classes.add(name(static_cast<Class>(i)), counts.by_class[i].issued);
    }
    json.add("instructions", counts.issued());
    json.add("classes", classes.text());
}

void add_memory(Json &json, const Counts &counts) {
    json.add("shared_requests", counts.shared_requests);
    json.add("shared_loads", counts.shared_loads);
    json.add("shared_wavefronts", counts.shared_taken);
    json.add("shared_least_wavefronts", counts.shared_least);
    json.add("bank_conflicts", bank_conflicts(counts));
    json.add("global_requests", counts.global_requests);
    json.add("sectors", counts.sectors);
    json.add("least_sectors", counts.least_sectors);
    json.add("sectors_per_request", ratio(counts.sectors, counts.global_requests, 0));
    json.add("least_sectors_per_request", ratio(counts.least_sectors, counts.global_requests, 0));
}

}  // namespace

// fp64, mma and bandwidth are peak rates over the number of multiprocessors and the clock that the fp32 peak implies.
const std::vector<Machine> &machines() {
    static const std::vector<Machine> kAll = {
        {"RTX 4090", 2, 256, 64, 3.125},
        {"H100 SXM", 64, 2048, 64, 12.8},
    };
    return kAll;
}

double Cycles::bound() const { return std::max({issue, fma, mma, fp64, shared, l2, dram}); }

const char *Cycles::bound_by() const {
    const std::pair<double, const char *> all[] = {{fma, "fma"}, {mma, "mma"}, {dram, "memory"}, {l2, "L2"},
                                                   {shared, "shared"}, {fp64, "fp64"}, {issue, "issue"}};
    const auto least = [](const auto &a, const auto &b) { return a.first < b.first; };
    return std::max_element(std::begin(all), std::end(all), least)->second;
}

double Cycles::share() const {
    const double most = bound();
    return most == 0 ? 0 : std::max({fma, mma, dram}) / most;
}

Cycles cycles_of(const KernelCounts &counts, const Machine &machine, double bytes) {
    const Counts &all = counts.all;
    Cycles cycles;
    cycles.issue = static_cast<double>(counts.busiest_scheduler);
    cycles.fma = static_cast<double>(all.of(Class::fma).lanes) / kFp32Lanes;
    cycles.mma = static_cast<double>(all.mma_cost) / machine.mma;
    cycles.fp64 = static_cast<double>(all.fp64_lanes) / machine.fp64;
    cycles.shared = static_cast<double>(all.shared_taken);
    cycles.l2 = static_cast<double>(all.sectors) * kSector / machine.l2;
    const double moved = counts.observed == counts.blocks ? static_cast<double>(counts.distinct_sectors) * kSector
                                    : bytes * ratio(counts.observed, counts.blocks, 1);
    cycles.dram = moved / machine.dram;
    return cycles;
}

double active_lanes(const Counts &counts) { return ratio(counts.lanes(), counts.issued(), kWarp) / kWarp; }

double active_lanes_fma(const Counts &counts) {
    const Counts::Of &fma = counts.of(Class::fma), &mma = counts.of(Class::mma);
    return ratio(fma.lanes + mma.lanes, fma.issued + mma.issued, kWarp) / kWarp;
}

double balance(const KernelCounts &counts) { return ratio(counts.average_warp, counts.busiest_warp, 1); }

double bank_conflicts(const Counts &counts) {
    return ratio(counts.shared_taken - counts.shared_least, counts.shared_least, 0);
}

double sectors_over_least(const Counts &counts) { return ratio(counts.sectors, counts.least_sectors, 1); }

double products_per_shared_load(const Counts &counts) {
    return ratio(counts.of(Class::fma).issued + counts.of(Class::mma).issued, counts.shared_loads, 0);
}

std::string json_of(const std::string &title, const KernelCounts &counts, double bytes) {
    Json json;
    json.word("case", title);
    json.word("kernel", counts.kernel);
    json.add("launches", counts.launches);
    json.add("blocks", counts.blocks);
    json.add("observed_blocks", counts.observed);
    json.add("threads", counts.threads);
    add_classes(json, counts.all);
    json.add("active_lanes", active_lanes(counts.all));
    json.add("active_lanes_fma", active_lanes_fma(counts.all));
    json.add("balance", balance(counts));
    add_memory(json, counts.all);
    json.add("fma_per_shared_load", products_per_shared_load(counts.all));
    Json loop;
    if (counts.loop.last_line != 0) {
        loop.add("first_line", uint64_t{counts.loop.first_line});
        loop.add("last_line", uint64_t{counts.loop.last_line});
        add_classes(loop, counts.loop.counts);
        loop.add("active_lanes", active_lanes(counts.loop.counts));
        add_memory(loop, counts.loop.counts);
        loop.add("fma_per_shared_load", products_per_shared_load(counts.loop.counts));
    }
    json.add("loop", loop.text());
    Json inner;
    inner.add("instructions", counts.inner.issued());
    inner.add("active_lanes", active_lanes(counts.inner));
    add_memory(inner, counts.inner);
    json.add("inner_loops", inner.text());
    Json shares;
    for (const Machine &machine : machines()) {
        const Cycles cycles = cycles_of(counts, machine, bytes);
        Json one;
        one.add("issue", cycles.issue);
        one.add("fma", cycles.fma);
        one.add("mma", cycles.mma);
        one.add("fp64", cycles.fp64);
        one.add("shared", cycles.shared);
        one.add("l2", cycles.l2);
        one.add("memory", cycles.dram);
        one.word("bound_by", cycles.bound_by());
        one.add("share", cycles.share());
        shares.add(machine.name, one.text());
    }
    json.add("roofline", shares.text());
    return json.text();
}

}  // namespace fcm::profile
