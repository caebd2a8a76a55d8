// Builds the library from modified sources and runs the tests on it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "mutants.h"
#include "process.h"

namespace mutation {

// The build commands from CMake: lines of "key value", with one line for each value of a list.
class Recipe {
   public:
    explicit Recipe(const std::filesystem::path &file);

    const std::string &one(const std::string &key) const;
    const std::vector<std::string> &all(const std::string &key) const;
    bool has(const std::string &key) const { return values_.count(key) != 0; }

   private:
    std::map<std::string, std::vector<std::string>> values_;
};

// A build that the tests run on.
struct Build {
    std::string library;
    std::string ptx;  // files of the kernels for the interpreter; empty for the source simulator
};

struct Trial {
    std::string order;
    Outcome outcome;
};

class Workshop {
   public:
    Workshop(const Recipe &recipe, const std::filesystem::path &folder) : recipe_(recipe), folder_(folder) {}

    // Builds with `edits` in `unit`; without edits, returns the existing build. `name` is a directory of its own.
    Build build(const std::string &name, const std::vector<Edit> &edits, const std::string &unit) const;
    // The same, with the PTX of the unit in place of the unmodified one, as a GPU of the architecture runs it. The host code is
    // that of `host`.
    Build build_ptx(const std::string &name, const std::vector<Edit> &edits, const std::string &unit, const Build &host,
                    int arch) const;

    // Runs the tests in one order after the other, until one fails.
    Trial try_orders(const std::string &name, const Build &build, const Mutant &mutant) const;

   private:
    std::filesystem::path prepare(const std::string &name, const std::vector<Edit> &edits) const;
    void make(const Command &command, const std::filesystem::path &log) const;

    const Recipe &recipe_;
    std::filesystem::path folder_;
};

}  // namespace mutation
