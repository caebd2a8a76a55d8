// Parses tokens to a FileText. It knows the grammar, but not the opcodes.
#pragma once

#include <string>
#include <string_view>

#include "syntax.h"

namespace fcm::ptx {

FileText parse(std::string_view text, const std::string &file);

}  // namespace fcm::ptx
