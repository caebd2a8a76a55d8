// Checks the kernels as compiled by nvcc.
//   kernel_gate check LISTING...                            fails if a kernel breaks a rule on one of the GPUs
//   kernel_gate write COMPILER PAGE PROFILE LISTING...      writes the page about the kernels
//   kernel_gate compare COMPILER PAGE PROFILE LISTING...    fails if the page differs from what `write` would write
#include <cstdio>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "listing.h"
#include "page.h"
#include "rules.h"

namespace {

constexpr int kSkipped = 77;

int check(const std::vector<gate::Resources> &listing) {
    const std::vector<std::string> found = gate::violations(gate::kernels(), listing);
    for (const std::string &line : found) std::printf("%s\n", line.c_str());
    std::printf("%zu kernels for %zu architectures: %zu violations\n", gate::kernels().size(),
                gate::device_classes().size(), found.size());
    return found.empty() ? 0 : 1;
}

void write(const std::string &file, const std::string &page) {
    std::ofstream out(file, std::ios::binary);
    out << page;
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file);
}

std::string read(const std::string &file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

int compare(const std::string &file, const std::string &compiler, const std::string &page) {
    const std::string there = read(file);
    if (there == page) return 0;
    if (gate::compiler_of(there) != compiler) {
        std::printf("%s was made with nvcc %s; this is %s, whose registers may be others\n", file.c_str(),
                    gate::compiler_of(there).c_str(), compiler.c_str());
        return kSkipped;
    }
    std::istringstream old_lines(there), new_lines(page);
    std::string old_line, new_line;
    for (int line = 1;; ++line) {
        const bool old_there = static_cast<bool>(std::getline(old_lines, old_line));
        const bool new_there = static_cast<bool>(std::getline(new_lines, new_line));
        if (old_there && new_there && old_line == new_line) continue;
        std::printf("%s is not current; the first line that differs is %d:\n- %s\n+ %s\n", file.c_str(), line,
                    old_there ? old_line.c_str() : "", new_there ? new_line.c_str() : "");
        return 1;
    }
}

int run(const std::vector<std::string> &words) {
    if (words.size() >= 2 && words[0] == "check") {
        return check(gate::read_listings({words.begin() + 1, words.end()}));
    }
    if (words.size() >= 5 && (words[0] == "write" || words[0] == "compare")) {
        const std::string page = gate::page(gate::read_listings({words.begin() + 4, words.end()}),
                                            fcm::profile::read_profiles(words[3]), words[1]);
        if (words[0] == "compare") return compare(words[2], words[1], page);
        write(words[2], page);
        return 0;
    }
    std::printf("kernel_gate check LISTING... | write COMPILER PAGE PROFILE LISTING... | compare COMPILER PAGE PROFILE "
                "LISTING...\n");
    return 2;
}

}  // namespace

int main(int count, char **words) {
    try {
        return run({words + 1, words + count});
    } catch (const std::exception &e) {
        std::printf("%s\n", e.what());
        return 1;
    }
}
