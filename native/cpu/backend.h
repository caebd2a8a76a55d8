// Backends are libraries with the same interface as this one, loaded at run time. A context of a backend's kind stands for
// one of the backend's own contexts, and calls with it are forwarded; see entry.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "context.h"
#include "entry.h"

namespace fcm {

// A backend must bind its own calls to itself (-Bsymbolic): in a process that links this library, its symbols are found
// first.
struct Backend : Functions {
    std::string path;
    int32_t kind = FCM_CPU;
    void *handle = nullptr;
};

// Returns the backend of a kind, or null if none is loaded. A backend that has been loaded keeps its address.
const Backend *backend_of(int32_t kind);

// All backends, in the order in which they were loaded.
std::vector<const Backend *> backends();

}  // namespace fcm
