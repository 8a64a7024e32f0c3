#include "mcp/uri.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace belljar::mcp {
namespace {

int hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::optional<std::string> path_of_uri(std::string_view uri) {
  constexpr std::string_view kScheme = "file://", kHost = "localhost";
  if (!uri.starts_with(kScheme)) return {};
  uri.remove_prefix(kScheme.size());
  if (uri.starts_with(kHost)) uri.remove_prefix(kHost.size());
  if (!uri.starts_with('/')) return {};
  std::string path;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    if (uri[i] != '%') {
      path += uri[i];
      continue;
    }
    if (i + 2 >= uri.size() || hex(uri[i + 1]) < 0 || hex(uri[i + 2]) < 0) return {};
    path += static_cast<char>(hex(uri[i + 1]) * 16 + hex(uri[i + 2]));
    i += 2;
  }
  if (path.find('\0') != std::string::npos) return {};
  return path;
}

}  // namespace belljar::mcp
