// Tests of the gate: it must reject kernels that break a rule.
#include <cmath>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "check.h"
#include "device_classes.h"
#include "kernels.h"
#include "listing.h"
#include "page.h"
#include "rules.h"

namespace {

using gate::DeviceClass;
using gate::Kernel;
using gate::LaunchShape;
using gate::Resources;
using gate::Scale;

gate::Work nothing(Scale) { return {}; }
LaunchShape plain(const DeviceClass &) { return {256, 0}; }
LaunchShape all_shared(const DeviceClass &device) { return {256, device.shared_optin}; }

std::vector<Kernel> one_kernel(LaunchShape (*launch)(const DeviceClass &) = plain) {
    return {{"fcm_k_some", "some", "", "", "", nothing, launch}};
}

// The same for every architecture, except for a change on one of them.
template <class Change>
std::vector<Resources> everywhere(int arch, Change change) {
    std::vector<Resources> all;
    for (const DeviceClass &device : gate::device_classes()) {
        Resources resources;
        resources.kernel = "fcm_k_some";
        resources.arch = device.arch;
        resources.registers = 40;
        resources.barriers = 1;
        if (device.arch == arch) change(resources);
        all.push_back(resources);
    }
    return all;
}

void refused(const char *what, const std::vector<Kernel> &kernels, const std::vector<Resources> &listing) {
    const std::vector<std::string> found = gate::violations(kernels, listing);
    CHECK(found.size() == 1, "%s: %zu violations", what, found.size());
    for (const std::string &line : found) CHECK(line.find(what) != std::string::npos, "%s: %s", what, line.c_str());
}

constexpr const char *kListing =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'fcm_k_one' for 'sm_75'\n"
    "ptxas info    : Function properties for fcm_k_one\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 48 registers, used 1 barriers, 64 bytes smem, 400 bytes cmem[0], 8 bytes cmem[2]\n"
    "ptxas info    : Compile time = 13.522 ms\n"
    "ptxas info    : Compiling entry function 'fcm_k_two' for 'sm_120'\n"
    "ptxas info    : Function properties for fcm_k_two\n"
    "    16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
    "ptxas info    : Used 255 registers, used 0 barriers, 16 bytes cumulative stack size\n";

}  // namespace

TEST(listing_is_read) {
    std::istringstream listing(kListing);
    const std::vector<Resources> all = gate::read_listing(listing);
    CHECK(all.size() == 2, "%zu kernels", all.size());
    if (all.size() != 2) return;
    const Resources &one = all[0];
    CHECK(one.kernel == "fcm_k_one" && one.arch == 75, "%s for %d", one.kernel.c_str(), one.arch);
    CHECK(one.registers == 48 && one.barriers == 1 && one.shared == 64 && one.constant == 408, "%d %d %ld %ld", one.registers,
          one.barriers, long(one.shared), long(one.constant));
    CHECK(one.stack == 0 && one.spill_stores == 0 && one.spill_loads == 0, "%ld", long(one.stack));
    const Resources &two = all[1];
    CHECK(two.kernel == "fcm_k_two" && two.arch == 120, "%s for %d", two.kernel.c_str(), two.arch);
    CHECK(two.stack == 16 && two.spill_stores == 12 && two.spill_loads == 20 && two.shared == 0, "%ld %ld %ld",
          long(two.stack), long(two.spill_stores), long(two.spill_loads));
}

TEST(listing_in_other_words_is_refused) {
    std::istringstream lines(kListing);
    for (std::string line, all; std::getline(lines, line); all += line + "\n") {
        if (line.find("Used") == std::string::npos && line.find("spill") == std::string::npos) continue;
        std::string without = kListing;
        without.erase(without.find(line), line.size());
        std::istringstream listing(without);
        bool thrown = false;
        try {
            gate::read_listing(listing);
        } catch (const std::runtime_error &) {
            thrown = true;
        }
        CHECK(thrown, "taken without: %s", line.c_str());
    }
}

TEST(good_kernel_passes) {
    const auto found = gate::violations(one_kernel(), everywhere(0, [](Resources &) {}));
    CHECK(found.empty(), "%s", found[0].c_str());
    const auto full = gate::violations(one_kernel(all_shared), everywhere(0, [](Resources &) {}));
    CHECK(full.empty(), "%s", full[0].c_str());
}

TEST(bad_kernels_are_refused) {
    refused("stored to memory", one_kernel(), everywhere(89, [](Resources &r) { r.spill_stores = 4; }));
    refused("loaded back", one_kernel(), everywhere(120, [](Resources &r) { r.spill_loads = 8; }));
    refused("a stack of 16 bytes", one_kernel(), everywhere(75, [](Resources &r) { r.stack = 16; }));
    refused("bytes of shared memory", one_kernel(all_shared), everywhere(86, [](Resources &r) { r.shared = 16; }));
    refused("not one block", one_kernel(), everywhere(90, [](Resources &r) { r.registers = 264; }));
    refused("how it is launched", one_kernel(), [] {
        auto all = everywhere(0, [](Resources &) {});
        Resources other = all[0];
        other.kernel = "fcm_k_other";
        all.push_back(other);
        return all;
    }());
    refused("was not compiled", one_kernel(), [] {
        auto all = everywhere(0, [](Resources &) {});
        all.pop_back();
        return all;
    }());
}

// Computed by hand: of 65536 registers, 256 threads of 64 registers allow four blocks, that is 1024 threads.
TEST(occupancy_is_what_it_is_by_hand) {
    Resources resources;
    resources.kernel = "fcm_k_some";
    resources.registers = 64;
    resources.barriers = 1;
    for (const DeviceClass &device : gate::device_classes()) {
        const gate::Occupancy by_registers = gate::occupancy(device, resources, {256, 0});
        CHECK(by_registers.blocks == 4, "%s: %d blocks", device.name, by_registers.blocks);
        CHECK(by_registers.warps == 1024.0 / device.threads, "%s: %g", device.name, by_registers.warps);
        const gate::Occupancy by_shared = gate::occupancy(device, resources, {256, device.shared_optin});
        CHECK(by_shared.blocks == 1, "%s: %d blocks", device.name, by_shared.blocks);
    }
    const DeviceClass *ada = gate::device_class(89);
    CHECK(ada != nullptr && gate::occupancy(*ada, resources, {256, 49 * 1024}).blocks == 2, "two halves");
}

TEST(roofline_is_the_slowest_part) {
    const DeviceClass &device = *gate::device_class(80);
    const gate::Roofline memory = gate::roofline(device, {2039e9, 1.0, 1.0, 1.0, 0.0, 0.0});
    CHECK(memory.by == gate::Bound::kMemory && memory.seconds == 1.0, "%g", memory.seconds);
    const gate::Roofline fp64 = gate::roofline(device, {2039e9, 1.0, 9.7e12, 1.0, 0.0, 0.0});
    CHECK(fp64.by == gate::Bound::kFp64 && fp64.seconds == 2.0, "%g", fp64.seconds);
    const gate::Roofline fp32 = gate::roofline(device, {1.0, 39e12, 1.0, 1.0, 0.0, 0.0});
    CHECK(fp32.by == gate::Bound::kFp32 && fp32.seconds == 2.0, "%g", fp32.seconds);
    const gate::Roofline longest = gate::roofline(device, {1.0, 1.0, 1.0, 19.5e12, 0.0, 0.0});
    CHECK(longest.by == gate::Bound::kLongest && longest.seconds > 107.0, "%g", longest.seconds);
    const gate::Roofline bf16 = gate::roofline(device, {1.0, 1.0, 1.0, 1.0, 312e12, 0.0});
    CHECK(bf16.by == gate::Bound::kTensor && bf16.seconds == 1.0, "%g", bf16.seconds);
    const gate::Roofline tf32 = gate::roofline(device, {1.0, 1.0, 1.0, 1.0, 0.0, 312e12});
    CHECK(tf32.by == gate::Bound::kTensor && tf32.seconds == 2.0, "%g", tf32.seconds);
    CHECK(std::isinf(gate::roofline(*gate::device_class(75), {1.0, 1.0, 1.0, 1.0, 1.0, 0.0}).seconds), "not on Turing");
}

TEST(page_names_its_compiler) {
    std::vector<Resources> listing;
    for (const Kernel &kernel : gate::kernels()) {
        for (const DeviceClass &device : gate::device_classes()) {
            Resources resources;
            resources.kernel = kernel.name;
            resources.arch = device.arch;
            resources.registers = 32;
            listing.push_back(resources);
        }
    }
    const std::string line =
        "{\"case\": \"some, 2 x 3\", \"kernel\": \"fcm_k_some\", \"blocks\": 8, \"observed_blocks\": 2, \"instructions\": 200, \"classes\": {\"fma\": 50}, "
        "\"active_lanes\": 0.75, \"active_lanes_fma\": 1, \"balance\": 0.5, \"shared_requests\": 1, \"bank_conflicts\": 0.25, "
        "\"inner_loops\": {\"bank_conflicts\": 0}, \"sectors_per_request\": 4.5, \"least_sectors_per_request\": 4, "
        "\"fma_per_shared_load\": 16, \"roofline\": {\"RTX 4090\": {\"bound_by\": \"issue\", \"share\": 0.9}, "
        "\"H100 SXM\": {\"bound_by\": \"fma\", \"share\": 1}}}";
    const auto profile = fcm::profile::read_profile(line);
    const std::string page = gate::page(listing, {profile, profile}, "13.0.1");
    const std::string row = "| some, 2 x 3 (2 of 8 blocks) | `fcm_k_some` | 200 | 25.0% | 0.0% | 0.0% | 0.0% | 75.0% | 100.0% | 50.0% | 25.0% | 0.0% | "
                            "4.50 | 4.00 | 16.0 | 90.0% issue | 100.0% fma |\n";
    const size_t at = page.find(row);
    CHECK(at != std::string::npos && page.find(row, at + 1) == std::string::npos, "the profile is on the page, not once");
    CHECK(gate::compiler_of(page) == "13.0.1", "%s", gate::compiler_of(page).c_str());
    CHECK(gate::compiler_of("another page").empty(), "a compiler from nowhere");
}
