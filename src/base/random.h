// Names and tokens that cannot be guessed.
#pragma once

#include <cstddef>
#include <string>

namespace belljar {

// `bytes` (256 at most) of the kernel's randomness, as twice as many hexadecimal digits; getrandom(2). Empty: a filter forbids it.
std::string random_hex(std::size_t bytes);

}  // namespace belljar
