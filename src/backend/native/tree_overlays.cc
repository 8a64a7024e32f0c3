#include "backend/native/tree_overlays.h"

#include <string>
#include <string_view>

#include "backend/native/tree_draft.h"
#include "backend/paths/host.h"
#include "base/format.h"

namespace belljar::backend {

std::string names_of(int number) { return format("{}/mask{}", kStage, number); }

std::string escape_layer(const std::string& path) {
  std::string result;
  for (const char c : path) {
    if (c == ':' || c == '\\') result.push_back('\\');
    result.push_back(c);
  }
  return result;
}

std::string reachable(const TreeDraft& draft, const std::string& path) {
  for (const auto& [folder, floor] : draft.floors) {
    if (is_under(path, folder)) return path == folder ? floor.path : floor.path + "/" + relative_to(path, folder);
  }
  return path;
}

std::string make_upper(TreeDraft& draft, const std::string& name) {
  const std::string dir = draft.stage(name);
  for (const std::string_view part : {"", "/up", "/work", "/merged"})
    draft.mkdir(dir + std::string(part), part == "/work" ? 0700 : 0755, part == "/up" ? GiveAway::kYes : GiveAway::kNo);
  std::string options = "upperdir=" + dir + "/up" + '\0' + "workdir=" + dir + "/work" + '\0';
  // In a user namespace trusted.* attributes cannot be written: without this a directory that was removed cannot be made again
  // (EIO).
  if (!draft.view.chown_private) options += std::string("userxattr") + '\0';
  return options;
}

}  // namespace belljar::backend
