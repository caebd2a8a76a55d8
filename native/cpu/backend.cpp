// Loads backends and keeps the list of those that are loaded.
#include "backend.h"

#include <dlfcn.h>

#include <memory>
#include <mutex>


namespace fcm {

namespace {

struct Registry {
    std::mutex mutex;
    std::vector<std::unique_ptr<const Backend>> loaded;
};

// Never destroyed: in the threads of a JVM, contexts may outlive main().
Registry &registry() {
    static Registry &only = *std::make_unique<Registry>().release();
    return only;
}

// Closes the library on destruction, unless keep() was called.
class Library {
   public:
    explicit Library(const char *path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {}
    ~Library() {
        if (handle_ != nullptr) dlclose(handle_);
    }
    Library(const Library &) = delete;
    Library &operator=(const Library &) = delete;

    void *handle() const { return handle_; }
    void *symbol(const char *name) const { return dlsym(handle_, name); }
    void keep() { handle_ = nullptr; }

   private:
    void *handle_;
};

// Returns the name of the first function that is missing from the library, or null if it has all of them.
const char *look_up(const Library &library, Backend &backend) {
    const char *missing = nullptr;
#define FCM_LOOK_UP(name)                                                                              \
    backend.name = reinterpret_cast<decltype(backend.name)>(library.symbol("fcm_" #name));             \
    if (backend.name == nullptr && missing == nullptr) missing = "fcm_" #name;
    FCM_EVERY_FUNCTION(FCM_LOOK_UP)
#undef FCM_LOOK_UP
    return missing;
}

// Determines the kind of the backend's devices, also if it only reports one as missing; FCM_CPU if it has none of its own.
fcm_status find_kind(Backend &backend, fcm_error *error) {
    int32_t count = 0;
    fcm_status status = backend.device_count(&count, error);
    for (int32_t i = 0; status == FCM_OK && i < count && backend.kind == FCM_CPU; ++i) {
        fcm_device_info info{};
        status = backend.device_describe(i, &info, error);
        if (status == FCM_OK) backend.kind = info.kind;
    }
    return status;
}

fcm_status load(const char *function, const char *path, int32_t *kind, fcm_error *error) {
    Library library(path);
    if (library.handle() == nullptr) {
        const char *words = dlerror();
        return fail(error, FCM_UNSUPPORTED, {}, "%s: %s", function, words == nullptr ? path : words);
    }
    for (const auto &known : registry().loaded) {
        if (known->handle == library.handle()) {
            *kind = known->kind;
            return FCM_OK;
        }
    }
    const auto version = reinterpret_cast<decltype(&::fcm_abi_version)>(library.symbol("fcm_abi_version"));
    if (version == nullptr) {
        return fail(error, FCM_UNSUPPORTED, {}, "%s: %s has no fcm_abi_version", function, path);
    }
    if (version == &::fcm_abi_version) {
        return fail(error, FCM_INVALID_ARGUMENT, {}, "%s: %s is this library itself", function, path);
    }
    if (version() != FCM_ABI_VERSION) {
        return fail(error, FCM_UNSUPPORTED, {}, "%s: %s has ABI version %d, but version %d is needed", function, path,
                    version(), FCM_ABI_VERSION);
    }
    auto backend = std::make_unique<Backend>();
    backend->path = path;
    backend->handle = library.handle();
    const char *missing = look_up(library, *backend);
    if (missing != nullptr) return fail(error, FCM_UNSUPPORTED, {}, "%s: %s has no %s", function, path, missing);
    const fcm_status status = find_kind(*backend, error);
    if (status != FCM_OK) return status;
    if (backend->kind != FCM_CUDA && backend->kind != FCM_CUDASIM) {
        return fail(error, FCM_UNSUPPORTED, {}, "%s: %s has no devices but the CPU", function, path);
    }
    for (const auto &known : registry().loaded) {
        if (known->kind == backend->kind) {
            return fail(error, FCM_INVALID_ARGUMENT, {}, "%s: %s has devices of the kind that %s has", function, path,
                        known->path.c_str());
        }
    }
    *kind = backend->kind;
    registry().loaded.push_back(std::move(backend));
    library.keep();
    return FCM_OK;
}

}  // namespace

const Backend *backend_of(int32_t kind) {
    std::lock_guard<std::mutex> lock(registry().mutex);
    for (const auto &backend : registry().loaded) {
        if (backend->kind == kind) return backend.get();
    }
    return nullptr;
}

std::vector<const Backend *> backends() {
    std::lock_guard<std::mutex> lock(registry().mutex);
    std::vector<const Backend *> all;
    for (const auto &backend : registry().loaded) all.push_back(backend.get());
    return all;
}

}  // namespace fcm

fcm_status fcm_backend_load(const char *path, int32_t *kind, fcm_error *error) {
    constexpr const char *function = "fcm_backend_load";
    return fcm::guarded(function, error, [&] {
        fcm::Arguments arguments(function, error);
        arguments.require(path != nullptr, "the path is null").require(kind != nullptr, "the place for the kind is null");
        if (!arguments.ok()) return arguments.status();
        std::lock_guard<std::mutex> lock(fcm::registry().mutex);
        return fcm::load(function, path, kind, error);
    });
}
