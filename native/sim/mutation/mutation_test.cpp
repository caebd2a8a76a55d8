// Tests of the mutation tests: they must be able to fail.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "check.h"
#include "mutants.h"
#include "process.h"
#include "source_edit.h"
#include "verdict.h"

namespace {

namespace fs = std::filesystem;
using namespace mutation;

// A directory that is removed when the test ends.
class Folder {
   public:
    Folder() : path_(fs::temp_directory_path() / ("mutation_test-" + std::to_string(getpid()))) {
        fs::remove_all(path_);
        fs::create_directories(path_);
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;

    const fs::path &path() const { return path_; }
    void write(const std::string &name, const std::string &text) const { std::ofstream(path_ / name) << text; }
    std::string read(const std::string &name) const {
        std::ifstream in(path_ / name);
        std::ostringstream text;
        text << in.rdbuf();
        return text.str();
    }

   private:
    fs::path path_;
};

template <class Body>
bool throws(Body body) {
    try {
        body();
    } catch (const std::runtime_error &) {
        return true;
    }
    return false;
}

Outcome shell(const Folder &folder, const std::string &script, int seconds = 20) {
    Command command;
    command.words = {"sh", "-c", script};
    command.environment = {{"MUTATION_TEST", "a word"}};
    command.limit = std::chrono::seconds(seconds);
    return run(command, folder.path() / "log");
}

}  // namespace

TEST(an_edit_is_made_once) {
    const Folder folder;
    folder.write("a.cu", "one two two three");
    apply({{"a.cu", "one", "1"}, {"a.cu", "three", "3"}}, folder.path());
    CHECK(folder.read("a.cu") == "1 two two 3", "%s", folder.read("a.cu").c_str());
    CHECK(throws([&] { apply({{"a.cu", "four", "4"}}, folder.path()); }), "what is not there was replaced");
    CHECK(throws([&] { apply({{"a.cu", "two", "2"}}, folder.path()); }), "one of two was replaced");
    CHECK(throws([&] { apply({{"a.cu", "1 two", "1 two"}}, folder.path()); }), "nothing was replaced");
    CHECK(throws([&] { apply({{"b.cu", "two", "2"}}, folder.path()); }), "a file that is not there was changed");
}

// The table matches these sources: every text to be replaced occurs exactly once.
TEST(every_mutant_can_be_made) {
    std::set<std::string> names;
    for (const Mutant &mutant : mutants()) {
        CHECK(names.insert(mutant.name).second, "two are called %s", mutant.name.c_str());
        CHECK(!mutant.tests.empty() && !mutant.edits.empty(), "%s has no test or no edit", mutant.name.c_str());
        const Folder folder;
        copy_sources(FCM_CUDA_FOLDER, folder.path());
        CHECK(fs::exists(folder.path() / mutant.unit), "%s: there is no %s", mutant.name.c_str(), mutant.unit.c_str());
        try {
            apply(mutant.edits, folder.path());
            if (mutant.few_blocks) apply({few_blocks()}, folder.path());
        } catch (const std::runtime_error &e) {
            CHECK(false, "%s: %s", mutant.name.c_str(), e.what());
        }
    }
    CHECK(names.size() >= 18, "%zu mutants", names.size());
}

TEST(a_program_is_watched) {
    const Folder folder;
    const Outcome good = shell(folder, "echo $MUTATION_TEST; echo error >&2");
    CHECK(good.succeeded() && good.output == "a word\nerror\n", "%d: %s", good.exit_code, good.output.c_str());
    const Outcome bad = shell(folder, "exit 1");
    CHECK(!bad.succeeded() && bad.exit_code == 1, "%d", bad.exit_code);
    const Outcome killed = shell(folder, "kill -9 $$");
    CHECK(!killed.succeeded() && killed.signal == 9, "%d", killed.signal);
    const Outcome endless = shell(folder, "sleep 600 & wait", 1);
    CHECK(!endless.succeeded() && endless.timed_out, "%d", endless.exit_code);
    CHECK(throws([&] { run({{"/no/such/program"}, {}}, folder.path() / "log"); }), "a program from nowhere");
}

TEST(what_noticed_is_told) {
    const auto verdict = [](int exit_code, const std::string &output) {
        Outcome outcome;
        outcome.exit_code = exit_code;
        outcome.output = output;
        return judge(outcome);
    };
    CHECK(!verdict(0, "a race").caught, "a test that passed");
    const Verdict race = verdict(1, "/a/b/x_test.cpp:7: 1 == 2: \ncudasim: race: writes 8 bytes\n");
    CHECK(race.caught && race.detector == "race detector", "%s", race.detector.c_str());
    const Verdict test = verdict(1, "passed one\n/a/b/x_test.cpp:7: 1 == 2: \n");
    CHECK(test.detector == "a test" && test.words == "x_test.cpp:7: 1 == 2: ", "%s: %s", test.detector.c_str(),
          test.words.c_str());
    CHECK(throws([&] { verdict(2, "0 of the tests asked for exist"); }), "a test that is not there noticed something");
    CHECK(throws([&] { verdict(3, "no library to test"); }), "a library that is not there was noticed");
    Outcome crashed;
    crashed.signal = 11;
    CHECK(judge(crashed).caught && judge(crashed).detector == "crash", "%s", judge(crashed).detector.c_str());
}
