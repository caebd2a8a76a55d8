// Device memory is not accessible to the host: an access ends the process, after a message that says what was accessed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

extern "C" __global__ void sets_cells(float *cells) { cells[threadIdx.x] = 1.0f; }

namespace {

// Runs body in a child process; returns its output to stderr and how it ended.
template <class Body>
std::string run_apart(int *status, Body &&body) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        body();
        _exit(0);
    }
    close(ends[1]);
    std::string words;
    char buffer[512];
    for (ssize_t n = read(ends[0], buffer, sizeof buffer); n > 0; n = read(ends[0], buffer, sizeof buffer)) {
        words.append(buffer, static_cast<size_t>(n));
    }
    close(ends[0]);
    waitpid(child, status, 0);
    return words;
}

bool died_of(int status, int signal) { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }

}  // namespace

TEST(the_host_cannot_touch_device_memory) {
    int status = 0;
    const std::string words = run_apart(&status, [] {
        const Simulated machine;
        const Array<float> array(std::vector<float>(32, 5.0f));
        LAUNCH(sets_cells, 1, 32, 0, nullptr, array.data());
        cudaDeviceSynchronize();
        *const_cast<volatile float *>(array.data() + 3) = 1.0f;
    });
    CHECK(died_of(status, SIGSEGV), "status %d", status);
    CHECK(words.find("the host touched device memory") != std::string::npos, "%s", words.c_str());
    CHECK(words.find("byte 12 of an allocation of 128 bytes on device 0") != std::string::npos, "%s", words.c_str());
}

TEST(nor_memory_that_was_only_just_allocated) {
    int status = 0;
    const std::string words = run_apart(&status, [] {
        const Simulated machine;
        const Array<float> array(32);
        *const_cast<volatile float *>(array.data()) = 1.0f;
    });
    CHECK(died_of(status, SIGSEGV), "status %d", status);
    CHECK(words.find("the host touched device memory") != std::string::npos, "%s", words.c_str());
}

TEST(protection_can_be_switched_off) {
    int status = 0;
    run_apart(&status, [] {
        const Simulated machine({{"PROTECT", "off"}});
        const Array<float> array(std::vector<float>(32, 5.0f));
        *const_cast<volatile float *>(array.data()) = 1.0f;
    });
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}

namespace {

void own_handler(int, siginfo_t *, void *) { _exit(42); }

}  // namespace

TEST(faults_that_are_not_ours_go_to_the_handler_before) {
    int status = 0;
    const std::string words = run_apart(&status, [] {
        struct sigaction action {};
        action.sa_sigaction = own_handler;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, nullptr);
        const Simulated machine;
        const Array<float> array(std::vector<float>(32, 5.0f));
        volatile int *volatile nowhere = nullptr;
        *nowhere = 1;
    });
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42, "status %d", status);
    CHECK(words.empty(), "%s", words.c_str());
}

TEST(a_device_function_called_by_the_host_is_told_so) {
    int status = 0;
    const std::string words = run_apart(&status, [] { __syncthreads(); });
    CHECK(died_of(status, SIGABRT), "status %d", status);
    CHECK(words.find("__syncthreads outside of a kernel") != std::string::npos, "%s", words.c_str());
}
