// Every function of the interface, as X(name without fcm_). front_door_test compares the list with the header and calls each
// function through a backend; operations_test has an entry for each operation.
#pragma once

// Operations on batches, the queries for the size of their workspace, and its preparation. average_rows, mean_combine and
// mean_finish take addresses that lie anywhere, and keep_directions and inverse_roots take what solvers make, so that the
// table does not fit them; their tests are in special_cases_test, cuda_device_test, refusals_test and machines_test.
#define FCM_EVERY_OPERATION(X)        \
    X(ema)                            \
    X(compose_momentum)               \
    X(sum_workspace)                  \
    X(storm)                          \
    X(project_compose_momentum)       \
    X(project)                        \
    X(norm)                           \
    X(vector_step)                    \
    X(vector_steps_workspace)         \
    X(vector_steps_prepare)           \
    X(vector_steps)                   \
    X(adaptive_step)                  \
    X(top_k)                          \
    X(average)                        \
    X(mean_exponents)                 \
    X(mean_sums)                      \
    X(all_finite)                     \
    X(require_finite)                 \
    X(newton_schulz_workspace)        \
    X(newton_schulz_prepare)          \
    X(newton_schulz)                  \
    X(normalize)                      \
    X(rearrange)                      \
    X(dropout_mask)                   \
    X(widen)                          \
    X(narrow)                         \
    X(multiply_workspace)             \
    X(multiply)                       \
    X(triad)

// Functions whose first argument is their only context. With a context of a backend they are forwarded unchanged.
#define FCM_EVERY_FORWARDED(X)  \
    X(context_isa)              \
    X(synchronize)              \
    X(context_mark)             \
    X(query)                    \
    X(context_stream)           \
    X(buffer_allocate)          \
    X(buffer_free)              \
    X(live_bytes)               \
    X(host_allocate)            \
    X(host_free)                \
    X(zero)                     \
    X(copy_in)                  \
    X(copy_out)                 \
    X(copy_in_async)            \
    X(copy_out_async)           \
    X(average_rows)             \
    X(mean_combine)             \
    X(mean_finish)              \
    X(keep_directions)          \
    X(inverse_roots)            \
    FCM_EVERY_OPERATION(X)

#define FCM_EVERY_FUNCTION(X)  \
    X(abi_version)             \
    X(build_info)              \
    X(backend_load)            \
    X(device_count)            \
    X(device_describe)         \
    X(context_create)          \
    X(context_destroy)         \
    X(context_reaches)         \
    X(event_create)            \
    X(event_destroy)           \
    X(event_record)            \
    X(event_wait)              \
    X(copy)                    \
    FCM_EVERY_FORWARDED(X)
