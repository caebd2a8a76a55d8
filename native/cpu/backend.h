// Backends: libraries with the interface of this one, loaded at run time. A context of a backend's kind wraps the
// backend's own, and each entry point begins by handing the call on when its context is such a one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "context.h"
#include "fedcomuon.h"
#include "functions.h"

namespace fcm {

// A backend must bind its own calls to itself (-Bsymbolic): in a process that links us, our names come first.
struct Backend {
    std::string path;
    int32_t kind = FCM_CPU;
    void *handle = nullptr;
#define FCM_MEMBER(name) decltype(&::fcm_##name) name = nullptr;
    FCM_EVERY_FUNCTION(FCM_MEMBER)
#undef FCM_MEMBER
};

// The backend of a kind; null when none is loaded. Once loaded it stays where it is.
const Backend *backend_of(int32_t kind);

// All of them, in the order they were loaded.
std::vector<const Backend *> backends();

// Whether calls with this context go to a backend; the check for null is the entry point's own.
inline bool is_remote(const fcm_context *context) { return context != nullptr && context->backend != nullptr; }

}  // namespace fcm
