#include "process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace mutation {
namespace {

class Actions {
   public:
    explicit Actions(const std::string &log) {
        posix_spawn_file_actions_init(&actions_);
        posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
        posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
        posix_spawnattr_init(&attributes_);
        // A separate process group, so that stopping the process also stops its children.
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    }
    ~Actions() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }
    Actions(const Actions &) = delete;
    Actions &operator=(const Actions &) = delete;

    pid_t spawn(const std::vector<std::string> &words, const std::vector<std::string> &environment) const {
        pid_t process = 0;
        const int error = posix_spawnp(&process, words[0].c_str(), &actions_, &attributes_, pointers(words).data(),
                                       pointers(environment).data());
        if (error != 0) throw std::runtime_error("cannot start " + words[0] + ": " + std::strerror(error));
        return process;
    }

   private:
    static std::vector<char *> pointers(const std::vector<std::string> &words) {
        std::vector<char *> all;
        for (const std::string &word : words) all.push_back(const_cast<char *>(word.c_str()));
        all.push_back(nullptr);
        return all;
    }

    posix_spawn_file_actions_t actions_;
    posix_spawnattr_t attributes_;
};

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>> &added) {
    std::vector<std::string> all;
    for (char **entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        bool replaced = false;
        for (const auto &[name, value] : added) replaced = replaced || text.compare(0, name.size() + 1, name + "=") == 0;
        if (!replaced) all.push_back(text);
    }
    for (const auto &[name, value] : added) all.push_back(name + "=" + value);
    return all;
}

std::string contents(const std::string &file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

}  // namespace

Outcome run(const Command &command, const std::string &log) {
    const Actions actions(log);
    const pid_t process = actions.spawn(command.words, environment_with(command.environment));
    const auto end = std::chrono::steady_clock::now() + command.limit;
    Outcome outcome;
    int status = 0;
    for (;;) {
        const pid_t ended = waitpid(process, &status, WNOHANG);
        if (ended == process) break;
        if (!outcome.timed_out && std::chrono::steady_clock::now() > end) {
            outcome.timed_out = true;
            kill(-process, SIGKILL);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (WIFEXITED(status) && !outcome.timed_out) outcome.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
    outcome.output = contents(log);
    return outcome;
}

}  // namespace mutation
