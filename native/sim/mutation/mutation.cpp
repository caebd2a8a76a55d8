// mutation RECIPE FOLDER [NAME...]
// Inserts every bug of the table (or those that are named) into the kernels and runs the tests that should detect it. Fails
// if a bug is not detected, if a test fails without a bug, or if a bug can no longer be inserted.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "mutants.h"
#include "verdict.h"
#include "workshop.h"

namespace {

using namespace mutation;

constexpr unsigned kWorkers = 2;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Runs the tasks on a few threads; the first exception is rethrown here when all have ended.
void in_parallel(const std::vector<std::function<void()>> &tasks) {
    std::atomic<size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < kWorkers; ++i) {
        workers.emplace_back([&] {
            for (size_t task = next++; task < tasks.size(); task = next++) {
                try {
                    tasks[task]();
                } catch (...) {
                    std::lock_guard<std::mutex> lock(mutex);
                    if (!failure) failure = std::current_exception();
                }
            }
        });
    }
    for (std::thread &worker : workers) worker.join();
    if (failure) std::rethrow_exception(failure);
}

struct Row {
    const Mutant *mutant = nullptr;
    Verdict verdict;
    std::string order;
    double seconds = 0.0;
};

// Mutants with the same key share the baseline run: the same tests, on the same library without a bug, must pass.
std::string ground_of(const Mutant &mutant) {
    std::string ground = mutant.engine == Engine::kPtx ? "ptx" : "source";
    ground += "-sm_" + std::to_string(mutant.arch);
    if (mutant.few_blocks) ground += "-few-" + mutant.unit;
    for (const std::string &test : mutant.tests) ground += "-" + test;
    return ground;
}

class Proof {
   public:
    Proof(const Recipe &recipe, const std::string &folder) : workshop_(recipe, folder), interpreter_(recipe.has("nvcc")) {}

    bool can(const Mutant &mutant) const { return mutant.engine == Engine::kSource || interpreter_; }

    // The libraries without bugs that the mutants start from, and the tests run on them.
    void grounds(const std::vector<const Mutant *> &wanted) {
        std::vector<std::function<void()>> builds;
        for (const Mutant *mutant : wanted) {
            if (!mutant->few_blocks || !few_.emplace(mutant->unit, Build{}).second) continue;
            builds.emplace_back([this, mutant, &build = few_[mutant->unit]] {
                build = workshop_.build("few-" + mutant->unit, {few_blocks()}, mutant->unit);
            });
        }
        in_parallel(builds);

        std::map<std::string, const Mutant *> different;
        for (const Mutant *mutant : wanted) different.emplace(ground_of(*mutant), mutant);
        std::vector<std::function<void()>> trials;
        int number = 0;
        for (const auto &[ground, mutant] : different) {
            trials.emplace_back([this, mutant = mutant, ground = ground, name = "ground-" + std::to_string(number++)] {
                Build build = host(*mutant);
                if (mutant->engine == Engine::kPtx) build = workshop_.build_ptx(name, {}, mutant->unit, build, mutant->arch);
                const Trial trial = workshop_.try_orders(name, build, *mutant);
                if (!trial.outcome.succeeded()) {
                    throw std::runtime_error("false alarm, " + ground + ", order " + trial.order + ":\n" +
                                             trial.outcome.output);
                }
            });
        }
        in_parallel(trials);
        std::printf("%zu sets of tests pass without a bug\n", different.size());
    }

    Row try_mutant(const Mutant &mutant) const {
        const auto start = std::chrono::steady_clock::now();
        std::vector<Edit> edits = mutant.edits;
        Build build;
        if (mutant.engine == Engine::kPtx) {
            const Build own = mutant.host_too ? workshop_.build(mutant.name + "-host", edits, mutant.unit) : host(mutant);
            build = workshop_.build_ptx(mutant.name, edits, mutant.unit, own, mutant.arch);
        } else {
            if (mutant.few_blocks) edits.push_back(few_blocks());
            build = workshop_.build(mutant.name, edits, mutant.unit);
        }
        const Trial trial = workshop_.try_orders(mutant.name, build, mutant);
        return {&mutant, judge(trial.outcome), trial.order, seconds_since(start)};
    }

   private:
    Build host(const Mutant &mutant) const {
        return mutant.few_blocks ? few_.at(mutant.unit) : workshop_.build("", {}, mutant.unit);
    }

    Workshop workshop_;
    bool interpreter_;
    std::map<std::string, Build> few_;  // by unit
};

void print(const std::vector<Row> &rows) {
    std::printf("\n%-34s %-66s %-7s %-9s %6s  %s\n", "mutant", "bug", "engine", "order", "s", "caught by");
    for (const Row &row : rows) {
        const std::string words = row.verdict.caught ? row.verdict.words.substr(0, 150) : row.verdict.words;
        std::printf("%-34s %-66s %-7s %-9s %6.1f  %s%s%s\n", row.mutant->name.c_str(), row.mutant->bug.c_str(),
                    row.mutant->engine == Engine::kPtx ? "ptx" : "source", row.order.c_str(), row.seconds,
                    row.verdict.caught ? row.verdict.detector.c_str() : "NOT CAUGHT", words.empty() ? "" : ": ", words.c_str());
    }
}

int prove(const Recipe &recipe, const std::string &folder, const std::vector<std::string> &names) {
    const auto start = std::chrono::steady_clock::now();
    Proof proof(recipe, folder);
    std::vector<const Mutant *> wanted;
    size_t left_out = 0;
    for (const Mutant &mutant : mutants()) {
        if (!names.empty() && std::find(names.begin(), names.end(), mutant.name) == names.end()) continue;
        if (proof.can(mutant)) {
            wanted.push_back(&mutant);
        } else {
            ++left_out;
        }
    }
    if (wanted.empty()) throw std::runtime_error("there is no such mutant");
    proof.grounds(wanted);
    const double ground_seconds = seconds_since(start);

    std::vector<Row> rows(wanted.size());
    std::vector<std::function<void()>> tasks;
    for (size_t i = 0; i < wanted.size(); ++i) {
        tasks.emplace_back([&, i] {
            // An error of one mutant does not affect the others.
            try {
                rows[i] = proof.try_mutant(*wanted[i]);
            } catch (const std::exception &e) {
                rows[i].mutant = wanted[i];
                rows[i].verdict.words = e.what();
            }
        });
    }
    in_parallel(tasks);
    print(rows);
    const auto caught =
        std::count_if(rows.begin(), rows.end(), [](const Row &row) { return row.verdict.caught; });
    std::printf("\n%td of %zu mutants caught, no false alarm; %.0f s, of which %.0f without a bug\n", caught, rows.size(),
                seconds_since(start), ground_seconds);
    if (left_out > 0) std::printf("nvcc is not here: left out are the %zu that only the PTX interpreter can see\n", left_out);
    return static_cast<size_t>(caught) == rows.size() ? 0 : 1;
}

}  // namespace

int main(int count, char **words) {
    if (count < 3) {
        std::printf("mutation RECIPE FOLDER [NAME...]\n");
        return 2;
    }
    try {
        return prove(Recipe(words[1]), words[2], {words + 3, words + count});
    } catch (const std::exception &e) {
        std::printf("%s\n", e.what());
        return 1;
    }
}
