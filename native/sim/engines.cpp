#include "engines.h"

#include <stdexcept>

#include "source_engine.h"
#if defined(FCM_HAVE_PTX)
#include "ptx/ptx_engine.h"
#endif

namespace cudasim {

std::unique_ptr<Engine> make_engine(const Settings &settings, const KernelTable &kernels) {
    if (!settings.ptx) return std::make_unique<SourceEngine>(settings, kernels);
#if defined(FCM_HAVE_PTX)
    return make_ptx_engine(settings.ptx_paths);
#else
    throw std::runtime_error("FEDCOMUON_CUDASIM_ENGINE=ptx: this build has no PTX interpreter");
#endif
}

}  // namespace cudasim
