// The engine that the settings ask for.
#pragma once

#include <memory>

#include "engine.h"
#include "kernel_table.h"
#include "settings.h"

namespace cudasim {

// Throws std::exception when it cannot be had.
std::unique_ptr<Engine> make_engine(const Settings &settings, const KernelTable &kernels);

}  // namespace cudasim
