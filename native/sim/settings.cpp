#include "settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace cudasim {

namespace {

struct Architecture {
    int number;
    size_t most_shared;
    size_t per_multiprocessor;
};
constexpr Architecture kArchitectures[] = {{75, 65536, 65536},    {80, 166912, 167936},  {86, 101376, 102400},
                                           {89, 101376, 102400},  {90, 232448, 233472},  {100, 232448, 233472},
                                           {120, 101376, 102400}};

const Architecture *architecture(int number) {
    for (const Architecture &a : kArchitectures) {
        if (a.number == number) return &a;
    }
    return nullptr;
}

// The architecture that the first PTX file is made for, 0 if there is none; what is wrong with the files is reported by the
// interpreter, which reads them all.
int ptx_target(const std::string &paths) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    std::istringstream list(paths);
    for (std::string path; std::getline(list, path, ':');) {
        std::vector<fs::path> files;
        if (fs::is_directory(path, ignored)) {
            for (const auto &entry : fs::directory_iterator(path, ignored)) files.push_back(entry.path());
        } else {
            files.emplace_back(path);
        }
        for (const fs::path &file : files) {
            if (file.extension() != ".ptx") continue;
            std::ifstream in(file);
            for (std::string line; std::getline(in, line);) {
                int number = 0;
                if (std::sscanf(line.c_str(), ".target sm_%d", &number) == 1) return number;
            }
        }
    }
    return 0;
}

class Variable {
   public:
    explicit Variable(const char *name) : name_(std::string("FEDCOMUON_CUDASIM_") + name) {
        const char *text = std::getenv(name_.c_str());
        if (text != nullptr) text_ = text;
    }

    bool set() const { return !text_.empty(); }
    const std::string &text() const { return text_; }

    // One of two values; the first is the default.
    bool is_second(const char *first, const char *second) const {
        if (!set() || text_ == first) return false;
        if (text_ == second) return true;
        throw wrong(std::string(first) + " or " + second);
    }
    long long number(long long least, long long most, long long otherwise) const {
        return set() ? parse(text_, least, most) : otherwise;
    }
    long long parse(const std::string &digits, long long least, long long most) const {
        char *end = nullptr;
        const long long value = std::strtoll(digits.c_str(), &end, 10);
        if (digits.empty() || *end != '\0' || value < least || value > most) {
            throw wrong("a number from " + std::to_string(least) + " to " + std::to_string(most));
        }
        return value;
    }
    // Numbers of devices, separated by commas.
    std::set<int> numbers(int below) const {
        std::set<int> all;
        for (size_t at = 0; set() && at <= text_.size();) {
            const size_t end = std::min(text_.find(',', at), text_.size());
            all.insert(static_cast<int>(parse(text_.substr(at, end - at), 0, below - 1)));
            at = end + 1;
        }
        return all;
    }
    std::runtime_error wrong(const std::string &wanted) const {
        return std::runtime_error(name_ + "=" + text_ + ": expected " + wanted);
    }

   private:
    std::string name_;
    std::string text_;
};

void read_order(Settings &settings) {
    const Variable order("ORDER");
    const std::string random = "random:";
    if (!order.set() || order.text() == "forward") {
        settings.order = OrderKind::forward;
    } else if (order.text() == "reverse") {
        settings.order = OrderKind::reverse;
    } else if (order.text().compare(0, random.size(), random) == 0) {
        settings.order = OrderKind::random;
        settings.seed = static_cast<uint64_t>(order.parse(order.text().substr(random.size()), 0, INT64_MAX));
    } else {
        throw order.wrong("forward, reverse or random:SEED");
    }
}

// A GPU cannot run PTX for a newer one. And the host code chooses kernels by the compute capability: a GPU of 80 or later must
// not be given PTX that lacks what such a GPU has.
void fit_ptx(Settings &settings, const Variable &arch) {
    const int target = ptx_target(settings.ptx_paths);
    if (arch.set()) {
        if (settings.arch < target) throw arch.wrong("at least " + std::to_string(target) + ", as the PTX is");
        return;
    }
    if (target == 0 || (target >= 80 && target <= settings.arch)) return;
    for (const Architecture &a : kArchitectures) {
        settings.arch = a.number;
        if (a.number >= target) break;
    }
}

}  // namespace

size_t Settings::most_shared() const { return architecture(arch)->most_shared; }
size_t Settings::shared_per_multiprocessor() const { return architecture(arch)->per_multiprocessor; }

Settings Settings::from_environment() {
    Settings settings;
    settings.devices = static_cast<int>(Variable("DEVICES").number(0, 64, settings.devices));
    settings.memory = static_cast<size_t>(
        Variable("MEMORY").number(1 << 16, 1LL << 40, static_cast<long long>(settings.memory)));
    const Variable arch("ARCH");
    settings.arch = static_cast<int>(arch.number(0, 999, settings.arch));
    if (architecture(settings.arch) == nullptr) throw arch.wrong("75, 80, 86, 89, 90, 100 or 120");
    settings.lazy = !Variable("STREAMS").is_second("lazy", "eager");
    read_order(settings);
    settings.threads = static_cast<int>(Variable("THREADS").number(1, 256, settings.threads));
    settings.ptx = Variable("ENGINE").is_second("source", "ptx");
    settings.ptx_paths = Variable("PTX").text();
    if (settings.ptx) fit_ptx(settings, arch);
    settings.protect = !Variable("PROTECT").is_second("on", "off");
    settings.poison = !Variable("POISON").is_second("on", "off");
    settings.peers = !Variable("PEERS").is_second("on", "off");
    settings.exclusive = Variable("EXCLUSIVE").numbers(settings.devices);
    settings.sick = Variable("SICK").numbers(settings.devices);
    return settings;
}

}  // namespace cudasim
