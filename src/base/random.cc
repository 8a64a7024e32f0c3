#include "base/random.h"

#include <sys/random.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "base/encoding.h"

namespace belljar {

std::string random_hex(std::size_t bytes) {
  std::string random(bytes, '\0');
  ssize_t got = 0;
  do got = ::getrandom(random.data(), bytes, 0);
  while (got < 0 && errno == EINTR);  // early at boot it waits; up to 256 bytes come whole
  if (got != static_cast<ssize_t>(bytes)) return {};
  return to_hex(random);
}

}  // namespace belljar
