#include "rules.h"

#include <map>
#include <set>
#include <utility>

namespace gate {
namespace {

class Violations {
   public:
    void add(const std::string &kernel, int arch, const std::string &what) {
        all_.push_back(kernel + " for sm_" + std::to_string(arch) + ": " + what);
    }
    void add(const std::string &what) { all_.push_back(what); }
    std::vector<std::string> all() { return std::move(all_); }

   private:
    std::vector<std::string> all_;
};

void look_at(const Kernel &kernel, const DeviceClass &device, const Resources &resources, Violations &found) {
    const std::string &name = resources.kernel;
    // Every kernel is part of the inner loop of training, so local memory in place of registers is never acceptable.
    if (resources.spill_stores > 0 || resources.spill_loads > 0) {
        found.add(name, device.arch, std::to_string(resources.spill_stores) + " bytes of registers are stored to memory and " +
                                         std::to_string(resources.spill_loads) + " loaded back");
    }
    if (resources.stack > 0) {
        found.add(name, device.arch, "a stack of " + std::to_string(resources.stack) + " bytes a thread");
    }
    const LaunchShape launch = kernel.launch(device);
    const int64_t shared = resources.shared + launch.dynamic_shared;
    if (shared > device.shared_optin) {
        found.add(name, device.arch, std::to_string(shared) + " bytes of shared memory a block, " +
                                         std::to_string(device.shared_optin) + " are there");
    } else if (occupancy(device, resources, launch).blocks < 1) {
        found.add(name, device.arch, "not one block of " + std::to_string(launch.threads) + " threads with " +
                                         std::to_string(resources.registers) + " registers fits a multiprocessor");
    }
}

}  // namespace

std::vector<std::string> violations(const std::vector<Kernel> &kernels, const std::vector<Resources> &listing) {
    Violations found;
    std::map<std::string, std::set<int>> compiled;
    for (const Resources &resources : listing) {
        compiled[resources.kernel].insert(resources.arch);
        const Kernel *kernel = nullptr;
        for (const Kernel &known : kernels) {
            if (resources.kernel == known.name) kernel = &known;
        }
        const DeviceClass *device = device_class(resources.arch);
        if (kernel == nullptr) {
            found.add(resources.kernel, resources.arch, "how it is launched is not in the table of kernels");
        } else if (device == nullptr) {
            found.add(resources.kernel, resources.arch, "an architecture that is not in the table of devices");
        } else {
            look_at(*kernel, *device, resources, found);
        }
    }
    for (const Kernel &kernel : kernels) {
        for (const DeviceClass &device : device_classes()) {
            const auto here = compiled.find(kernel.name);
            if (here == compiled.end() || here->second.count(device.arch) == 0) {
                found.add(kernel.name, device.arch, "was not compiled");
            }
        }
    }
    return found.all();
}

}  // namespace gate
