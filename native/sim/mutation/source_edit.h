// Applies the edits of a mutant to a copy of the sources.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mutants.h"

namespace mutation {

// Copies the files (not the directories) of `from` to `to`.
void copy_sources(const std::filesystem::path &from, const std::filesystem::path &to);
// Throws std::runtime_error if a text to be replaced does not occur exactly once: then the table is out of date.
void apply(const std::vector<Edit> &edits, const std::filesystem::path &folder);

}  // namespace mutation
