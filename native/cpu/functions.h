// Every function of the interface, as X(name without fcm_). front_door_test compares the list with the header, and calls
// each of them through a backend.
#pragma once

#define FCM_EVERY_FUNCTION(X)         \
    X(abi_version)                    \
    X(build_info)                     \
    X(backend_load)                   \
    X(device_count)                   \
    X(device_describe)                \
    X(context_create)                 \
    X(context_destroy)                \
    X(context_isa)                    \
    X(synchronize)                    \
    X(context_stream)                 \
    X(event_create)                   \
    X(event_destroy)                  \
    X(event_record)                   \
    X(event_wait)                     \
    X(buffer_allocate)                \
    X(buffer_free)                    \
    X(live_bytes)                     \
    X(host_allocate)                  \
    X(host_free)                      \
    X(zero)                           \
    X(copy_in)                        \
    X(copy_out)                       \
    X(copy_in_async)                  \
    X(copy_out_async)                 \
    X(copy)                           \
    X(ema)                            \
    X(compose_momentum)               \
    X(sum_workspace)                  \
    X(storm)                          \
    X(project_compose_momentum)       \
    X(project)                        \
    X(norm)                           \
    X(vector_step)                    \
    X(adaptive_step)                  \
    X(top_k)                          \
    X(average)                        \
    X(all_finite)                     \
    X(newton_schulz_small_workspace)  \
    X(newton_schulz_small)            \
    X(normalize)                      \
    X(rearrange)                      \
    X(multiply_workspace)             \
    X(multiply)                       \
    X(triad)
