#include "backend/native/tree_draft.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "launch/plan.h"

namespace belljar::backend {

using launch::MountOp;
using launch::MountOpKind;

std::string join(std::string_view folder, std::string_view name) {
  std::string path(folder == "/" ? "" : folder);
  if (!name.empty() && name.front() != '/') path += '/';
  path += name;
  return path;
}

std::string relative_to(std::string_view path, std::string_view folder) {
  if (path == folder) return "";
  return std::string(path.substr(folder == "/" ? 1 : folder.size() + 1));
}

bool in_layered(const View& view, const std::string& path) { return view.layered && is_under(path, view.layered->path); }

std::string TreeDraft::stage(std::string_view name) const { return join(kStage, name); }

std::string TreeDraft::at(std::string_view target) const {
  return view.whole_root ? std::string(target) : join(join(kStage, "root"), target);
}

void TreeDraft::add(MountOp op) { plan.mounts.push_back(std::move(op)); }

void TreeDraft::add_stage(MountOp op) {
  op.target.erase(0, kStage.size() + 1);
  if (op.target.starts_with("root/")) op.target.insert(0, "new");
  stage_ops->push_back(std::move(op));
}

void TreeDraft::place(std::string target, int from, bool directory, std::uint32_t flags) {
  placements.push_back({.target = std::move(target), .slot = from, .flags = flags, .directory = directory});
}

int TreeDraft::capture(std::string source, std::uint64_t attributes, std::uint32_t flags) {
  const int to = new_slot();
  add({.kind = MountOpKind::kCapture, .flags = flags, .slot = to, .attr_set = attributes, .source = std::move(source)});
  return to;
}

int TreeDraft::capture_own(std::string source, std::uint64_t attributes, std::uint32_t flags) {
  return capture(std::move(source), attributes, launch::kOwnPlace | flags);
}

int TreeDraft::take(int fd, const std::string& source, std::uint64_t attributes, std::uint32_t flags) {
  if (fd < 0) return capture(source, attributes, flags);
  const int to = new_slot();
  add({.kind = MountOpKind::kUseFd, .slot = to, .fd = fd});
  return to;
}

void TreeDraft::put(int from, std::string_view name) {
  mkdir(stage(name), 0755);
  add({.kind = MountOpKind::kAttach, .flags = launch::kOwnPlace, .slot = from, .target = stage(name)});
}

void TreeDraft::mkdir(const std::string& path, mode_t mode, GiveAway give_away) {
  if (!made.insert(path).second) return;
  add_stage({.kind = MountOpKind::kMkdir, .mode = mode, .target = path});
  if (give_away == GiveAway::kYes && view.chown_private)
    add_stage({.kind = MountOpKind::kChown, .target = path, .uid = view.owner_uid, .gid = view.owner_gid});
}

void TreeDraft::make_path(const std::string& base, const std::string& relative, bool directory, mode_t mode) {
  std::size_t from = 0;
  while (from < relative.size()) {
    const std::size_t slash = relative.find('/', from);
    const std::string path = base + "/" + relative.substr(0, slash);
    const bool last = slash == std::string::npos;
    if (last && !directory) {
      if (made.insert(path).second) add_stage({.kind = MountOpKind::kMkfile, .mode = 0600, .target = path});
    } else {
      mkdir(path, mode);
    }
    if (last) return;
    from = slash + 1;
  }
}

}  // namespace belljar::backend
