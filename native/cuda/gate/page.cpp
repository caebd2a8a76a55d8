#include "page.h"

#include <cmath>
#include <cstdio>
#include <sstream>
#include <stdexcept>

namespace gate {
namespace {

using fcm::profile::Profile;

constexpr const char *kMadeWith = "Made with nvcc ";

const char *word(Bound by) {
    switch (by) {
        case Bound::kMemory:
            return "m";
        case Bound::kFp32:
            return "f";
        case Bound::kFp64:
            return "d";
        case Bound::kLongest:
            return "l";
        case Bound::kTensor:
            return "t";
    }
    return "";
}

std::string printed(const char *format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string amount(double value) {
    if (value == 0.0) return "0";
    return value < 1e5 ? printed("%.0f", value) : printed("%.3g", value);
}

std::string microseconds(double seconds) {
    const double value = seconds * 1e6;
    return value < 0.01 ? "< 0.01" : value < 100.0 ? printed("%.2g", value) : printed("%.0f", value);
}

const Resources &find(const std::vector<Resources> &listing, const char *kernel, int arch) {
    for (const Resources &resources : listing) {
        if (resources.kernel == kernel && resources.arch == arch) return resources;
    }
    throw std::runtime_error(std::string(kernel) + " was not compiled for sm_" + std::to_string(arch));
}

void rule(std::ostream &out, size_t words, size_t numbers) {
    for (size_t i = 0; i < words; ++i) out << "|---";
    for (size_t i = 0; i < numbers; ++i) out << "|---:";
    out << "|\n";
}

void device_heads(std::ostream &out) {
    for (const DeviceClass &device : device_classes()) out << " | " << device.name;
    out << " |\n";
}

void devices(std::ostream &out) {
    out << "## The GPUs\n\n"
           "One for each architecture. Peak rates are the maker's figures (NVIDIA's data sheets and architecture papers); the\n"
           "limits of a multiprocessor (SM) are those of the CUDA programming guide.\n\n"
           "| GPU | architecture | SMs | threads an SM | shared KiB an SM | a block | GB/s | fp32 Tflop/s | fp64 Tflop/s | tf32 Tflop/s | bf16 Tflop/s |\n";
    rule(out, 2, 9);
    for (const DeviceClass &device : device_classes()) {
        out << "| " << device.name << " | sm_" << device.arch << " | " << device.multiprocessors << " | " << device.threads
            << " | " << device.shared / 1024 << " | " << device.shared_optin / 1024 << " | "
            << printed("%.0f", device.bandwidth / 1e9) << " | " << printed("%.3g", device.fp32 / 1e12) << " | "
            << printed("%.3g", device.fp64 / 1e12) << " | " << amount(device.tf32 / 1e12) << " | " << amount(device.bf16 / 1e12)
            << " |\n";
    }
}

void resources(std::ostream &out, const std::vector<Resources> &listing) {
    out << "\n## What a kernel takes\n\n"
           "Registers a thread, blocks an SM, and the part of an SM's warps that these are, for the launch that asks for most.\n"
           "No kernel spills registers or has a stack; a test sees to it.\n\n"
           "| kernel | threads | shared bytes";
    device_heads(out);
    rule(out, 1, 2 + device_classes().size());
    for (const Kernel &kernel : kernels()) {
        const DeviceClass &first = device_classes().front();
        const LaunchShape launch_there = kernel.launch(first);
        out << "| `" << kernel.name << "` | " << launch_there.threads << " | ";
        // Shared memory has a single column unless it differs between GPUs.
        const bool asks = launch_there.dynamic_shared > 0;
        if (asks) {
            out << "up to";
        } else {
            out << find(listing, kernel.name, first.arch).shared;
        }
        for (const DeviceClass &device : device_classes()) {
            const Resources &used = find(listing, kernel.name, device.arch);
            const LaunchShape launch = kernel.launch(device);
            const Occupancy fits = occupancy(device, used, launch);
            out << " | " << used.registers << ", " << fits.blocks << ", " << printed("%.0f%%", 100.0 * fits.warps);
            if (asks) out << " (" << used.shared + launch.dynamic_shared << ")";
        }
        out << " |\n";
    }
}

void work(std::ostream &out) {
    out << "\n## What a launch has to do\n\n"
           "N elements of K clients together; H has d N. Matrices are m x n with an inner side of l. Bytes are what has to cross\n"
           "the memory bus when nothing is cached between launches. fp64 counts instructions: sums and factors are in double, and\n"
           "to convert a float counts as one; a division or a root counts as ten. B is the number of matrices of a client. What\n"
           "`fcm_k_newton_schulz`, in any precision, moves to and from its workspace, where a matrix does not stay in shared memory,\n"
           "is not counted.\n\n"
           "| kernel | operations | bytes | fp32 operations | fp64 instructions |\n";
    rule(out, 5, 0);
    for (const Kernel &kernel : kernels()) {
        out << "| `" << kernel.name << "` | " << kernel.operations << " | " << kernel.bytes << " | " << kernel.fp32 << " | "
            << kernel.fp64 << " |\n";
    }
}

void times(std::ostream &out, Scale scale) {
    out << "\n| kernel | bytes | fp32 | fp64";
    device_heads(out);
    rule(out, 1, 3 + device_classes().size());
    for (const Kernel &kernel : kernels()) {
        const Work needed = kernel.work(scale);
        out << "| `" << kernel.name << "` | " << amount(needed.bytes) << " | " << amount(needed.fp32) << " | "
            << amount(needed.fp64);
        for (const DeviceClass &device : device_classes()) {
            const Roofline least = roofline(device, needed);
            out << " | ";
            if (std::isinf(least.seconds)) {
                out << "-";
            } else {
                out << microseconds(least.seconds) << " " << word(least.by);
            }
        }
        out << " |\n";
    }
}

std::string percent(double share) { return printed("%.1f%%", 100.0 * share); }

// The share of a class, or of several, in all instructions.
double part_of(const Profile &profile, std::initializer_list<const char *> classes) {
    double count = 0.0;
    for (const char *name : classes) {
        const std::string key = std::string("classes.") + name;
        if (profile.has(key)) count += profile.number(key);
    }
    return count / profile.number("instructions");
}

// Of most kernels one case is enough; those of matrices depend on the sizes.
bool is_shown(const std::vector<Profile> &profiles, size_t index) {
    const Profile &profile = profiles[index];
    // In each precision.
    if (profile.kernel.rfind("fcm_k_newton_schulz", 0) == 0 || profile.kernel.rfind("fcm_k_products", 0) == 0) return true;
    for (size_t i = 0; i < index; ++i) {
        if (profiles[i].kernel == profile.kernel) return false;
    }
    return true;
}

void profile_of(std::ostream &out, const std::vector<Profile> &profiles) {
    static const char *const kGpus[] = {"RTX 4090", "H100 SXM"};
    out << "\n## What a profiler would say\n\n"
           "Counted without a GPU, by interpreting the PTX of nvcc in lockstep (`./fedcomuon bench kernels` prints more of it).\n"
           "Instructions are those of PTX, issued for a warp; ptxas drops or joins some. A warp of 32 lanes executes the least\n"
           "program counter first. Other choices of the hardware, latencies and caches are not modelled.\n\n"
           "- **lanes**: active ones per issued instruction, as `thread_inst_executed_per_inst_executed`; and per fma or mma\n"
           "- **balance**: fma and mma of the average warp, over those of the busiest warp of its block\n"
           "- **conflicts**: extra wavefronts of shared memory over the least, of all accesses, and of those in innermost loops.\n"
           "  Lanes that access 8 bytes are served by half-warps, 16 bytes by quarter-warps; a word is given to any number of lanes\n"
           "- **sectors**: of 32 bytes, per request of global memory, and how many the requested bytes would fill\n"
           "- **fma a load**: fma and mma instructions per load of shared memory\n"
           "- **share**: of the peak, that the schedule allows. A multiprocessor has, in a cycle, 4 schedulers that issue an\n"
           "  instruction (each for every fourth warp of a block), 128 lanes of fma, a wavefront of shared memory (the fewest\n"
           "  that are possible: parts of a warp that read the same words share one), 64 bytes from L2,\n"
           "  and its part of fp64 and of the bandwidth (2 lanes and 3.1 bytes on an RTX 4090, 64 and 12.8 on an H100). The largest\n"
           "  of these cycles is the bound; the share is fma or mma, or memory (every sector once), over the bound.\n\n"
           "| case | kernel | instructions | fma, mma | shared | global | integer | lanes | of fma | balance | conflicts | inner loops |"
           " sectors | least | fma a load";
    for (const char *gpu : kGpus) out << " | " << gpu;
    out << " |\n";
    rule(out, 2, 15);
    for (size_t i = 0; i < profiles.size(); ++i) {
        if (!is_shown(profiles, i)) continue;
        const Profile &profile = profiles[i];
        const bool multiplies = part_of(profile, {"fma", "mma"}) > 0.0, shares = profile.number("shared_requests") > 0.0;
        out << "| " << profile.title;
        if (profile.number("observed_blocks") < profile.number("blocks")) {
            out << " (" << amount(profile.number("observed_blocks")) << " of " << amount(profile.number("blocks")) << " blocks)";
        }
        out << " | `" << profile.kernel << "` | " << amount(profile.number("instructions")) << " | "
            << percent(part_of(profile, {"fma", "mma"})) << " | " << percent(part_of(profile, {"shared"})) << " | "
            << percent(part_of(profile, {"global"})) << " | " << percent(part_of(profile, {"integer"})) << " | "
            << percent(profile.number("active_lanes")) << " | "
            << (multiplies ? percent(profile.number("active_lanes_fma")) : "") << " | "
            << (multiplies ? percent(profile.number("balance")) : "") << " | "
            << (shares ? percent(profile.number("bank_conflicts")) : "") << " | "
            << (shares ? percent(profile.number("inner_loops.bank_conflicts")) : "") << " | "
            << printed("%.2f", profile.number("sectors_per_request")) << " | "
            << printed("%.2f", profile.number("least_sectors_per_request")) << " | "
            << (multiplies && shares ? printed("%.1f", profile.number("fma_per_shared_load")) : "");
        for (const char *gpu : kGpus) {
            const std::string roofline = std::string("roofline.") + gpu;
            out << " | " << percent(profile.number(roofline + ".share")) << " " << profile.words.at(roofline + ".bound_by");
        }
        out << " |\n";
    }
}

}  // namespace

std::string page(const std::vector<Resources> &listing, const std::vector<Profile> &profiles, const std::string &compiler) {
    std::ostringstream out;
    out << "# The CUDA kernels\n\n"
           "Generated: `cmake --build --preset cpu --target kernel_table`. "
        << kMadeWith << compiler
        << ".\n\n"
           "Registers, shared memory and occupancy are facts: what nvcc says, put through its `cuda_occupancy.h`. **The times are\n"
           "a model, not a measurement**: the longer of what the peak rates of a GPU allow for the bytes and the operations of one\n"
           "launch. No kernel can be faster; none has been timed on a GPU for this page. The few microseconds that a launch costs\n"
           "by itself are not in it.\n\n";
    devices(out);
    resources(out, listing);
    profile_of(out, profiles);
    work(out);
    out << "\n## The least time, in microseconds\n\n"
           "With what it is bound by: m memory, f fp32, d fp64, t tensor cores, l the longest task, which one SM does alone.\n\n"
           "### LeNet, ten clients\n\n"
           "The whole model of every client, 34622 elements, d = 1; the Gram matrix is that of the 120 x 256 layer.\n"
           "Five steps of Newton-Schulz.\n";
    times(out, Scale::kLeNet);
    out << "\n### 10^8 elements\n\n"
           "Ten clients. H has 10^8 elements with d = 8; the Gram matrix is that of one 1024 x 4096 matrix.\n"
           "Newton-Schulz takes five steps of 763 matrices of 128 x 1024.\n";
    times(out, Scale::kLarge);
    return out.str();
}

std::string compiler_of(const std::string &page) {
    const size_t at = page.find(kMadeWith);
    if (at == std::string::npos) return {};
    const size_t start = at + std::string(kMadeWith).size();
    const size_t end = page.find(".\n", start);
    return end == std::string::npos ? std::string() : page.substr(start, end - start);
}

}  // namespace gate
