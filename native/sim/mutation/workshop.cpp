#include "workshop.h"

#include <fstream>
#include <stdexcept>

#include "source_edit.h"

namespace mutation {

namespace fs = std::filesystem;

namespace {

// A fixed order misses bugs that another one finds.
const char *const kOrders[] = {"reverse", "forward", "random:1", "random:2", "random:3"};
// The interpreter finds a race in any order.
const char *const kFewOrders[] = {"forward", "random:1"};

}  // namespace

Recipe::Recipe(const fs::path &file) {
    std::ifstream in(file);
    if (!in) throw std::runtime_error("cannot read " + file.string());
    for (std::string line; std::getline(in, line);) {
        const size_t space = line.find(' ');
        if (space == std::string::npos || space + 1 == line.size()) continue;
        values_[line.substr(0, space)].push_back(line.substr(space + 1));
    }
}

const std::string &Recipe::one(const std::string &key) const {
    const std::vector<std::string> &values = all(key);
    if (values.size() != 1) throw std::runtime_error("the recipe has several of " + key);
    return values[0];
}

const std::vector<std::string> &Recipe::all(const std::string &key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) throw std::runtime_error("the recipe has no " + key);
    return found->second;
}

fs::path Workshop::prepare(const std::string &name, const std::vector<Edit> &edits) const {
    const fs::path here = folder_ / name;
    fs::remove_all(here);
    copy_sources(recipe_.one("sources"), here);
    apply(edits, here);
    return here;
}

void Workshop::make(const Command &command, const fs::path &log) const {
    const Outcome outcome = run(command, log);
    if (outcome.succeeded()) return;
    std::string words;
    for (const std::string &word : command.words) words += word + " ";
    throw std::runtime_error("a changed source must compile" + std::string(outcome.timed_out ? " in time" : "") + ":\n" + words +
                             "\n" + outcome.output);
}

Build Workshop::build(const std::string &name, const std::vector<Edit> &edits, const std::string &unit) const {
    if (edits.empty()) return {recipe_.one("library"), ""};
    const fs::path here = prepare(name, edits);
    const fs::path object = here / "changed.o";
    Command compile;
    compile.words = recipe_.all("compile");
    for (const std::string &word : {std::string("-o"), object.string(), std::string("-c"), (here / unit).string()}) {
        compile.words.push_back(word);
    }
    make(compile, here / "compile.log");

    // Only the object file of the unit differs.
    const fs::path library = here / fs::path(recipe_.one("library")).filename();
    Command link;
    link.words = recipe_.all("link");
    bool replaced = false;
    for (const std::string &built : recipe_.all("object")) {
        const bool same = fs::path(built).filename() == unit + ".o";
        replaced = replaced || same;
        link.words.push_back(same ? object.string() : built);
    }
    if (!replaced) throw std::runtime_error("the library has no object of " + unit);
    link.words.insert(link.words.end(), {"-o", library.string()});
    link.words.insert(link.words.end(), recipe_.all("libraries").begin(), recipe_.all("libraries").end());
    make(link, here / "link.log");
    return {library.string(), ""};
}

Build Workshop::build_ptx(const std::string &name, const std::vector<Edit> &edits, const std::string &unit,
                          const Build &host, int arch) const {
    // The newest PTX that the GPU can run, from which the library's machine code for it is made.
    int from = 0;
    for (const std::string &architecture : recipe_.all("architecture")) {
        const int number = std::stoi(architecture);
        if (number <= arch) from = std::max(from, number);
    }
    const std::string kernels = fs::path(unit).stem().string() + ".ptx";
    std::string ptx;
    if (!edits.empty()) {
        const fs::path here = prepare(name, edits);
        Command compile;
        compile.words = recipe_.all("nvcc");
        compile.words.insert(compile.words.end(), {"-arch=compute_" + std::to_string(from), "-o", (here / kernels).string(),
                                                   (here / unit).string()});
        make(compile, here / "compile.log");
        ptx = (here / kernels).string();
    }
    for (const std::string &built : recipe_.all("ptx_" + std::to_string(from))) {
        if (!edits.empty() && fs::path(built).filename() == kernels) continue;
        ptx += (ptx.empty() ? "" : ":") + built;
    }
    return {host.library, ptx};
}

Trial Workshop::try_orders(const std::string &name, const Build &build, const Mutant &mutant) const {
    std::vector<std::string> orders(std::begin(kOrders), std::end(kOrders));
    if (!build.ptx.empty()) orders.assign(std::begin(kFewOrders), std::end(kFewOrders));
    fs::create_directories(folder_ / name);
    Trial trial;
    for (const std::string &order : orders) {
        Command command;
        command.words = {recipe_.one("tests")};
        command.words.insert(command.words.end(), mutant.tests.begin(), mutant.tests.end());
        command.environment = {{"FCM_TEST_BACKEND", build.library},
                               {"FEDCOMUON_CUDASIM_ORDER", order},
                               {"FEDCOMUON_CUDASIM_ARCH", std::to_string(mutant.arch)},
                               {"FEDCOMUON_CUDASIM_STREAMS", "lazy"},
                               {"FEDCOMUON_CUDASIM_THREADS", "1"},
                               {"FEDCOMUON_CUDASIM_ENGINE", build.ptx.empty() ? "source" : "ptx"},
                               {"FEDCOMUON_CUDASIM_PTX", build.ptx}};
        trial = {order, run(command, folder_ / name / "tests.log")};
        if (!trial.outcome.succeeded()) break;
    }
    return trial;
}

}  // namespace mutation
