#include "ptx_engine.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <sstream>

#include "program.h"
#include "settings.h"

namespace cudasim {

namespace {

namespace ptx = fcm::ptx;

std::atomic<ptx::Observer *> observer{nullptr};

class MappedMemory : public ptx::Memory {
public:
    explicit MappedMemory(const MemoryMap &map) : map_(map) {}

    int device() const override { return map_.device(); }

    bool find(uint64_t address, ptx::Extent &extent) const override {
        const void *pointer = reinterpret_cast<const void *>(address);
        if (!map_.allows(pointer, 1)) return false;
        const Place place = map_.find(pointer);
        extent = {reinterpret_cast<uint64_t>(place.base), place.bytes};
        return true;
    }

    std::string describe(uint64_t address) const override {
        return map_.describe(reinterpret_cast<const void *>(address));
    }

private:
    const MemoryMap &map_;
};

ptx::Order order_of(const Settings &settings) {
    ptx::Order order;
    order.seed = settings.seed;
    switch (settings.order) {
        case OrderKind::forward: order.kind = ptx::Order::Kind::forward; break;
        case OrderKind::reverse: order.kind = ptx::Order::Kind::reverse; break;
        case OrderKind::random: order.kind = ptx::Order::Kind::random; break;
    }
    return order;
}

class PtxEngine : public Engine {
public:
    explicit PtxEngine(const std::vector<std::string> &files) : order_(order_of(Settings::from_environment())) {
        for (const std::string &file : files) program_.load_file(file);
    }

    void launch(const char *kernel, Dim3 grid, Dim3 block, size_t shared_bytes, const void *args,
                const size_t *arg_offsets, const size_t *arg_sizes, int arg_count, const MemoryMap &memory) override {
        ptx::Launch launch;
        launch.kernel = kernel;
        launch.grid = {grid.x, grid.y, grid.z};
        launch.block = {block.x, block.y, block.z};
        launch.shared_bytes = shared_bytes;
        launch.order = order_;
        launch.observer = observer;
        for (int i = 0; i < arg_count; ++i) {
            launch.arguments.push_back({static_cast<const unsigned char *>(args) + arg_offsets[i], arg_sizes[i]});
        }
        try {
            program_.launch(launch, MappedMemory(memory));
        } catch (const ptx::Fault &fault) {
            throw KernelFault(fault.what());
        } catch (const ptx::Mistake &mistake) {
            throw KernelFault(mistake.what());
        }
    }

private:
    ptx::Program program_;
    ptx::Order order_;
};

}  // namespace

void observe_launches(ptx::Observer *now) { observer = now; }

std::unique_ptr<Engine> make_ptx_engine(const std::vector<std::string> &ptx_files) {
    return std::make_unique<PtxEngine>(ptx_files);
}

std::unique_ptr<Engine> make_ptx_engine(const std::string &paths) {
    std::vector<std::string> files;
    std::istringstream list(paths);
    for (std::string path; std::getline(list, path, ':');) {
        if (path.empty()) continue;
        if (!std::filesystem::is_directory(path)) {
            files.push_back(path);
            continue;
        }
        // Directory listings have no defined order; sorting makes the first error reproducible.
        std::vector<std::string> found;
        for (const auto &entry : std::filesystem::directory_iterator(path)) {
            if (entry.path().extension() == ".ptx") found.push_back(entry.path().string());
        }
        std::sort(found.begin(), found.end());
        files.insert(files.end(), found.begin(), found.end());
    }
    if (files.empty()) throw std::runtime_error("FEDCOMUON_CUDASIM_PTX names no PTX file");
    return make_ptx_engine(files);
}

}  // namespace cudasim
