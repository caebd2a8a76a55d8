// The directories with PTX made of fixtures/*.cu: what is kept, and what today's nvcc made.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace ptxtest {

inline std::vector<std::string> fixture_files(const std::string &name) {
    std::vector<std::string> files;
    std::istringstream list(FCM_PTX_DIRECTORIES);
    for (std::string directory; std::getline(list, directory, ':');) files.push_back(directory + "/" + name + ".ptx");
    return files;
}

}  // namespace ptxtest
