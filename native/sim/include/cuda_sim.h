// The simulated CUDA, as a kernel source and its host code see it: the names are CUDA's, in a namespace of their own,
// so that a real CUDA in the same process is not disturbed.
#pragma once

#include "cudasim/device.h"
#include "cudasim/launch.h"
#include "cudasim/runtime.h"
#include "cudasim/types.h"

using namespace cudasim;
