#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mutants.h"

namespace mutation {

// Copies the files (no folders) of `from` to `to`.
void copy_sources(const std::filesystem::path &from, const std::filesystem::path &to);
// std::runtime_error if a text to be replaced is not there exactly once: then the table is out of date.
void apply(const std::vector<Edit> &edits, const std::filesystem::path &folder);

}  // namespace mutation
