// Profiles the kernels without a GPU, by interpreting the PTX that nvcc made of them.
//   kernel_profile write PTX FILE [WORDS...]   runs all cases, or those whose titles begin with one of the words, on the PTX
//                                              files of a directory, and writes a line of JSON for each case and kernel, with
//                                              the limits that it has to keep
//   kernel_profile lines PTX WORDS...          shows the instructions of such cases that take more wavefronts or sectors than
//                                              the least, by their lines in the PTX
//   kernel_profile check FILE                  fails if a kernel does not keep a limit
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.h"
#include "counters.h"
#include "figures.h"
#include "limits.h"
#include "ptx/ptx_engine.h"

namespace {

using namespace fcm::profile;

void need(fcm_status status, const fcm_error &error) {
    if (status != FCM_OK) throw std::runtime_error(error.message);
}

bool wanted(const std::string &title, const std::vector<std::string> &words) {
    for (const std::string &word : words) {
        if (title.rfind(word, 0) == 0) return true;
    }
    return words.empty();
}

std::vector<KernelCounts> counts_of(const Case &one) {
    fcm_context *context = nullptr;
    fcm_error error{};
    need(fcm_context_create(FCM_CUDASIM, 0, 1, FCM_ISA_AUTO, &context, &error), error);
    const std::unique_ptr<fcm_context, void (*)(fcm_context *)> owner(context, fcm_context_destroy);
    Counters counters;
    counters.sample(one.blocks, fcm::ptx::Observer::Plan::run);
    one.run(context, [&] {
        // What prepares the operands is not profiled.
        need(fcm_synchronize(context, &error), error);
        cudasim::observe_launches(&counters);
    });
    cudasim::observe_launches(nullptr);
    return counters.take();
}

std::vector<Case> begin(const std::string &ptx, const std::vector<std::string> &words) {
    setenv("FEDCOMUON_CUDASIM_ENGINE", "ptx", 1);
    setenv("FEDCOMUON_CUDASIM_PTX", ptx.c_str(), 1);
    std::vector<Case> chosen;
    for (Case &one : all_cases()) {
        if (wanted(one.title, words)) chosen.push_back(std::move(one));
    }
    if (chosen.empty()) throw std::runtime_error("no case begins with these words");
    return chosen;
}

int show_lines(const std::string &ptx, const std::vector<std::string> &words) {
    for (const Case &one : begin(ptx, words)) {
        for (const KernelCounts &counts : counts_of(one)) {
            std::printf("%s, %s\n", one.title.c_str(), counts.kernel.c_str());
            std::printf("%10s %10s %6s %10s %10s %10s %10s  %s\n", "line", "issued", "lanes", "wavefronts", "least", "sectors",
                        "least", "instruction");
            for (const Waste &waste : counts.waste) {
                const Counts &c = waste.counts;
                std::printf("%10u %10llu %6.1f %10llu %10llu %10llu %10llu  %s\n", waste.line,
                            static_cast<unsigned long long>(c.issued()), 32 * active_lanes(c),
                            static_cast<unsigned long long>(c.shared_taken), static_cast<unsigned long long>(c.shared_least),
                            static_cast<unsigned long long>(c.sectors), static_cast<unsigned long long>(c.least_sectors),
                            waste.opcode.c_str());
            }
        }
    }
    return 0;
}

// The kernels in the PTX files of a directory.
std::set<std::string> kernels_in(const std::string &ptx) {
    static const std::string kEntry = ".entry ";
    std::set<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(ptx)) {
        if (entry.path().extension() != ".ptx") continue;
        std::ifstream in(entry.path());
        for (std::string line; std::getline(in, line);) {
            const size_t at = line.find(kEntry);
            if (at != std::string::npos) names.insert(line.substr(at + kEntry.size(), line.find('(') - at - kEntry.size()));
        }
    }
    return names;
}

int write(const std::string &ptx, const std::string &file, const std::vector<std::string> &words) {
    const std::vector<Case> chosen = begin(ptx, words);
    std::set<std::string> missing = words.empty() ? kernels_in(ptx) : std::set<std::string>();
    std::ofstream out(file);
    for (size_t i = 0; i < chosen.size(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        const std::vector<KernelCounts> all = counts_of(chosen[i]);
        for (const KernelCounts &counts : all) {
            std::string line = json_of(chosen[i].title, counts, chosen[i].bytes);
            const std::string aims = json_of_limits(read_profile(line), limits());
            line.insert(line.size() - 1, ", \"aims\": " + aims);
            out << line << '\n';
            missing.erase(counts.kernel);
        }
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        std::printf("%zu/%zu %s: %.1f s%s\n", i + 1, chosen.size(), chosen[i].title.c_str(), seconds.count(),
                    all.empty() ? ", not on this device" : "");
        std::fflush(stdout);
    }
    for (const std::string &kernel : missing) std::printf("no case launches %s\n", kernel.c_str());
    if (!missing.empty()) return 1;
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file);
    return 0;
}

int check(const std::string &file) {
    const std::vector<std::string> found = violations(read_profiles(file), limits(), exceptions());
    for (const std::string &line : found) std::printf("%s\n", line.c_str());
    std::printf("%zu limits, %zu exceptions: %zu violations\n", limits().size(), exceptions().size(), found.size());
    return found.empty() ? 0 : 1;
}

}  // namespace

int main(int count, char **arguments) {
    const std::vector<std::string> words(arguments + 1, arguments + count);
    try {
        if (words.size() >= 3 && words[0] == "write") return write(words[1], words[2], {words.begin() + 3, words.end()});
        if (words.size() >= 3 && words[0] == "lines") return show_lines(words[1], {words.begin() + 2, words.end()});
        if (words.size() == 2 && words[0] == "check") return check(words[1]);
    } catch (const std::exception &e) {
        std::printf("%s\n", e.what());
        return 1;
    }
    std::printf("kernel_profile write PTX FILE [WORDS...] | lines PTX WORDS... | check FILE\n");
    return 2;
}
