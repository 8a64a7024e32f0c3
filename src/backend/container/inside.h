// belljar-inside, the program that is pid 1 of every container, as bytes that this library carries.
#pragma once

#include <string>
#include <string_view>

#include "backend/container/spec.h"
#include "belljar/result.h"

namespace belljar::backend::container {

std::string_view inside_program() noexcept;

// The files of InstalledFiles below `directory` (made when it is not there), which the engine must see under the same path. Files
// that are there and as they should be are left alone; others are replaced in one step, so that who starts at the same time sees
// either. Errors: kFailedPrecondition, kResourceExhausted: they cannot be written.
Result<InstalledFiles> install_inside(const std::string& directory);

}  // namespace belljar::backend::container
