// A launch: the arguments are converted to the kernel's parameters and copied, packed as a GPU driver packs them (each at
// its natural alignment), because the kernel may run long after the call.
#pragma once

#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime.h"
#include "types.h"

namespace cudasim::detail {

// Calls a kernel with the arguments at `packed`.
using KernelEntry = void (*)(const void *function, const unsigned char *packed);

struct PackedArguments {
    const unsigned char *bytes;
    size_t total;
    const size_t *offsets;
    const size_t *sizes;
    const bool *is_pointer;  // pointers are checked against the device's memory
    int count;
};

struct KernelCall {
    const char *name;
    const void *function;
    KernelEntry entry;
    dim3 grid;
    dim3 block;
    size_t shared_bytes;
    cudaStream_t stream;
    PackedArguments arguments;
};

CUDASIM_API void launch(const KernelCall &call);

template <class... Parameters>
struct ParameterLayout {
    static constexpr size_t count = sizeof...(Parameters);
    size_t offsets[count + 1] = {};
    size_t sizes[count + 1] = {};
    bool is_pointer[count + 1] = {};
    size_t total = 0;

    constexpr ParameterLayout() {
        size_t i = 0;
        (add<Parameters>(i++), ...);
    }

   private:
    template <class P>
    constexpr void add(size_t i) {
        static_assert(std::is_trivially_copyable_v<P>, "a kernel's parameters are copied as bytes");
        total = (total + alignof(P) - 1) / alignof(P) * alignof(P);
        offsets[i] = total;
        sizes[i] = sizeof(P);
        is_pointer[i] = std::is_pointer_v<P>;
        total += sizeof(P);
    }
};

template <class P>
P unpack(const unsigned char *from) {
    std::remove_cv_t<P> value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class... Parameters>
class Kernel {
   public:
    using Function = void (*)(Parameters...);
    static constexpr ParameterLayout<Parameters...> layout{};

    static void enter(const void *function, const unsigned char *packed) {
        enter(reinterpret_cast<Function>(const_cast<void *>(function)), packed, std::index_sequence_for<Parameters...>());
    }

   private:
    template <size_t... I>
    static void enter(Function function, [[maybe_unused]] const unsigned char *packed, std::index_sequence<I...>) {
        function(unpack<Parameters>(packed + layout.offsets[I])...);
    }
};

class Launcher {
   public:
    Launcher(const char *name, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream)
        : name_(name), grid_(grid), block_(block), shared_bytes_(shared_bytes), stream_(stream) {}

    template <class... Parameters, class... Arguments>
    void run(void (*function)(Parameters...), Arguments &&...arguments) const {
        static_assert(sizeof...(Parameters) == sizeof...(Arguments), "as many arguments as the kernel has parameters");
        using Called = Kernel<Parameters...>;
        constexpr const auto &layout = Called::layout;
        alignas(16) unsigned char packed[layout.total + 1] = {};
        [[maybe_unused]] size_t i = 0;
        (pack<Parameters>(packed + layout.offsets[i++], std::forward<Arguments>(arguments)), ...);
        launch({name_, reinterpret_cast<const void *>(function), &Called::enter, grid_, block_, shared_bytes_, stream_,
                {packed, layout.total, layout.offsets, layout.sizes, layout.is_pointer,
                 static_cast<int>(sizeof...(Parameters))}});
    }

   private:
    template <class P, class A>
    static void pack(unsigned char *to, A &&argument) {
        const P value = static_cast<A &&>(argument);
        std::memcpy(to, &value, sizeof value);
    }

    const char *name_;
    dim3 grid_;
    dim3 block_;
    size_t shared_bytes_;
    cudaStream_t stream_;
};

}  // namespace cudasim::detail
