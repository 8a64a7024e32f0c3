// Spelling of the enumerations of include/belljar/policy.h.
#include "policy/names.h"

#include "base/format.h"
#include "belljar/policy.h"

namespace belljar {

std::string_view to_string(Mode mode) noexcept { return policy::name_of(mode); }
std::string_view to_string(Access access) noexcept { return policy::name_of(access); }
std::string_view to_string(NetMode mode) noexcept { return policy::name_of(mode); }
std::string_view to_string(Protect protect) noexcept { return policy::name_of(protect); }
std::string_view to_string(Isolation isolation) noexcept { return policy::name_of(isolation); }

std::string to_string(const PortPair& ports) {
  return ports.host == ports.inside ? format("{}", ports.host) : format("{}:{}", ports.host, ports.inside);
}

std::string to_string(const Origin& origin) {
  if (origin.file.empty()) return escaped(origin.layer);
  if (origin.line == 0) return format("{} {}", escaped(origin.layer), escaped(origin.file));
  return format("{} {}:{}", escaped(origin.layer), escaped(origin.file), origin.line);
}

}  // namespace belljar
