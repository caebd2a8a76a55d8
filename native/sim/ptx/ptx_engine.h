// The engine that interprets the PTX nvcc made of the kernels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine.h"

namespace cudasim {

// Throws std::runtime_error that names file and line of what cannot be read. The order of threads is the one in the
// environment.
std::unique_ptr<Engine> make_ptx_engine(const std::vector<std::string> &ptx_files);

// The same for a list parted by ':' of files and directories, of which every *.ptx is taken.
std::unique_ptr<Engine> make_ptx_engine(const std::string &paths);

}  // namespace cudasim
