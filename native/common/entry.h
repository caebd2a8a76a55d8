// How a function of the interface reaches a device. A call with a context of a loaded backend is forwarded unchanged to that
// backend. Otherwise the arguments are checked, and this library's own implementation is called.
#pragma once

#include "arguments.h"
#include "device_functions.h"

namespace fcm {

// The functions of a library with this interface.
struct Functions {
#define FCM_MEMBER(name) decltype(&::fcm_##name) name = nullptr;
    FCM_EVERY_FUNCTION(FCM_MEMBER)
#undef FCM_MEMBER
};

// The backend's context that a context of this library stands for; `functions` is null if the context is this library's own.
struct Remote {
    const Functions *functions = nullptr;
    fcm_context *context = nullptr;
};

// Defined by each library; the context may be null.
Remote remote_of(const fcm_context *context) noexcept;

namespace entry {
#define FCM_ENTRY(NAME)                                       \
    struct NAME {                                             \
        static constexpr const char *name = "fcm_" #NAME;     \
        static constexpr auto backend = &Functions::NAME;     \
        static constexpr auto implementation = &device::NAME; \
    };
FCM_EVERY_FUNCTION(FCM_ENTRY)
#undef FCM_ENTRY
}  // namespace entry

// Calls body(arguments) unless the context belongs to a backend. `values` are the call's arguments between context and
// error.
template <class Entry, class Context, class Body, class... Values>
fcm_status enter_with(Context *context, fcm_error *error, Body &&body, Values... values) noexcept {
    const Remote remote = remote_of(context);
    if (remote.functions != nullptr) return (remote.functions->*Entry::backend)(remote.context, values..., error);
    return guarded(Entry::name, error, [&] {
        Arguments arguments(Entry::name, error);
        arguments.context(context);
        return body(arguments);
    });
}

// check(arguments) checks the values and returns whether there is any work to do.
template <class Entry, class Context, class Check, class... Values>
fcm_status enter(Context *context, fcm_error *error, Check &&check, Values... values) noexcept {
    const auto body = [&](Arguments &arguments) {
        const bool anything = check(arguments);
        return arguments.ok() && anything ? Entry::implementation(context, values..., error) : arguments.status();
    };
    return enter_with<Entry>(context, error, body, values...);
}

// The same for functions that are never forwarded unchanged: those without a context, or with more than one handle.
template <class Entry, class Check, class... Values>
fcm_status enter_here(fcm_error *error, Check &&check, Values... values) noexcept {
    return guarded(Entry::name, error, [&] {
        Arguments arguments(Entry::name, error);
        const bool anything = check(arguments);
        return arguments.ok() && anything ? Entry::implementation(values..., error) : arguments.status();
    });
}

}  // namespace fcm
