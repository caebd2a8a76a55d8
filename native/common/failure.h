// How an entry point reports a failure: a status as the return value, and a message in the caller's fcm_error.
#pragma once

#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>

#include "fedcomuon.h"

namespace fcm {

// Where something was found.
struct Place {
    int64_t client = -1;
    int64_t block = -1;
    int64_t index = -1;
    const void *address = nullptr;
};

__attribute__((format(printf, 4, 5))) inline fcm_status fail(fcm_error *error, fcm_status status, Place place,
                                                             const char *format, ...) {
    if (error != nullptr) {
        *error = fcm_error{status, 0, place.client, place.block, place.index, 0, reinterpret_cast<uintptr_t>(place.address), -1,
                           {}};
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return status;
}

// Reports NaN or Inf at a place in the operand called `name`.
inline fcm_status fail_not_finite(const char *function, const char *name, Place place, fcm_error *error) {
    if (place.block >= 0) {
        return fail(error, FCM_NOT_FINITE, place,
                    "%s: block %" PRId64 " of %s of client %" PRId64 " is not finite at element %" PRId64, function,
                    place.block, name, place.client, place.index);
    }
    return fail(error, FCM_NOT_FINITE, place, "%s: %s of client %" PRId64 " is not finite at element %" PRId64, function,
                name, place.client, place.index);
}
inline fcm_status fail_out_of_range(const char *function, Place place, fcm_error *error) {
    return fail(error, FCM_NOT_FINITE, place,
                "%s: the coefficients drive the iteration out of range, block %" PRId64 " of client %" PRId64, function,
                place.block, place.client);
}
// A norm that an operation was given.
inline fcm_status fail_norm(const char *function, Place place, fcm_error *error) {
    return fail(error, FCM_NOT_FINITE, place, "%s: the norm of client %" PRId64 " is not finite", function, place.client);
}
// Eigenvectors that an operation was given.
inline fcm_status fail_converged(const char *function, Place place, fcm_error *error) {
    return fail(error, FCM_NOT_FINITE, place, "%s: the eigenvectors of client %" PRId64 " did not converge", function,
                place.client);
}
inline fcm_status fail_computed(const char *function, Place place, fcm_error *error) {
    return fail(error, FCM_NOT_FINITE, place, "%s: what was computed for client %" PRId64 " is out of range", function,
                place.client);
}

// No exception may cross the C boundary. `body` is everything that an entry point does.
template <class Body>
fcm_status guarded(const char *function, fcm_error *error, Body &&body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return fail(error, FCM_OUT_OF_MEMORY, {}, "%s: out of host memory", function);
    } catch (const std::exception &e) {
        return fail(error, FCM_INTERNAL, {}, "%s: %s", function, e.what());
    } catch (...) {
        return fail(error, FCM_INTERNAL, {}, "%s: unknown fault", function);
    }
}

}  // namespace fcm
