#include "backend/paths/view.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "backend/paths/host.h"

namespace belljar::backend {

bool is_hidden(const View& view, std::string_view path) {
  return std::ranges::any_of(view.hide_dirs, [&](const std::string& dir) { return is_under(path, dir); }) ||
         std::ranges::any_of(view.masks, [&](const auto& mask) {
           if (!is_under(path, mask.first) || path == mask.first) return false;
           const std::string_view inner = path.substr(mask.first.size() + 1);
           return std::ranges::any_of(mask.second.hidden, [&](const std::string& name) { return is_under(inner, name); });
         });
}

std::string behind(const View& view, const std::string& path) {
  const Bind* bind = deepest_at(view.binds, path);
  if (bind == nullptr || bind->source == bind->target) return path;
  return path == bind->target ? bind->source : (bind->source == "/" ? "" : bind->source) + path.substr(bind->target.size());
}

bool mounted_under(std::string_view path) { return is_under(path, "/dev") || is_under(path, "/proc") || is_under(path, "/sys"); }

bool is_kernels(std::string_view path) { return mounted_under(path) && !is_under(path, "/dev/shm"); }

}  // namespace belljar::backend
