// The simulated CUDA for kernel sources and their host code. The names are CUDA's, in a separate namespace, so that a real
// CUDA in the same process is not affected.
#pragma once

#include "cudasim/device.h"
#include "cudasim/launch.h"
#include "cudasim/runtime.h"
#include "cudasim/types.h"

using namespace cudasim;
