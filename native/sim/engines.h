// Creates the engine selected in the settings.
#pragma once

#include <memory>

#include "engine.h"
#include "kernel_table.h"
#include "settings.h"

namespace cudasim {

// Throws std::exception if it is not available.
std::unique_ptr<Engine> make_engine(const Settings &settings, const KernelTable &kernels);

}  // namespace cudasim
