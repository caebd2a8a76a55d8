// Decodes a parsed file to executable code.
#pragma once

#include "code.h"

namespace fcm::ptx {

// Functions refer to each other, so a module must not be copied or moved afterwards.
void decode(const FileText &text, Module &module);

}  // namespace fcm::ptx
