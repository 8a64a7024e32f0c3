// A tree while its operations are being written: what should be seen, what has been written so far, and the few operations that
// most steps (tree_steps.h) are made of.
#pragma once

#include <sys/mount.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backend/paths/host.h"
#include "backend/paths/view.h"
#include "launch/plan.h"

namespace belljar::backend {

inline constexpr std::uint64_t kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
inline constexpr std::string_view kStage = "/tmp";  // exists everywhere; always covered at the end (cover_stage)

// One mount to attach in phase B.
struct Placement {
  std::string target;
  int slot = -1;
  std::uint32_t flags = 0;
  bool directory = true;
  bool cover = false;  // hides its target
};

// A copy on the stage of a folder that a mask shows.
struct Floor {
  int slot = -1;
  std::string path;
};

// To the command's own identity, where it is not the maker's (root).
enum class GiveAway { kNo, kYes };

struct TreeDraft {
  TreeDraft(const Host& the_host, const View& the_view, launch::Plan& the_plan)
      : host(the_host), view(the_view), plan(the_plan), slots(the_plan.slots) {}

  // --- what is asked, and where the operations go; all outlive the draft

  const Host& host;
  const View& view;
  launch::Plan& plan;

  // --- what is written so far

  int slots;
  int proc_slot = -1;
  int below_slot = -1, layers_slot = -1;  // of a transaction
  int kept_slot = -1;
  std::vector<Placement> placements;
  std::vector<std::string> put_back;       // what the host has mounted in a layered workspace
  std::map<std::string, std::string> own;  // private target -> its path on the stage
  std::map<std::string, Floor> floors;     // by masked folder
  std::unordered_set<std::string> made;    // on the stage
  std::vector<launch::MountOp>* stage_ops = &plan.stage_rest;

  // --- names

  std::string stage(std::string_view name) const;  // on the stage
  // Where `target` is attached: a restricted root is put together on the stage.
  std::string at(std::string_view target) const;

  // --- operations

  int new_slot() { return slots++; }
  void add(launch::MountOp op);
  // What is made on the stage, in whichever list is being written. A restricted root is a mount of `newroot` there.
  void add_stage(launch::MountOp op);
  void place(std::string target, int from, bool directory = true, std::uint32_t flags = 0);
  // Captured mounts, in a slot of their own: `source` of the host; the same, unless the parent has captured it already (`fd` is not
  // -1); something on the stage.
  int capture(std::string source, std::uint64_t attributes, std::uint32_t flags);
  int take(int fd, const std::string& source, std::uint64_t attributes, std::uint32_t flags = 0);
  int capture_own(std::string source, std::uint64_t attributes, std::uint32_t flags = 0);
  // Attaches it on the stage, in a directory made for it.
  void put(int from, std::string_view name);
  // Once what was made of it needs it no more: /proc/self/mountinfo would tell the command where on the host it lies.
  void drop(std::string_view name) { add({.kind = launch::MountOpKind::kDetach, .target = stage(name)}); }
  void mkdir(const std::string& path, mode_t mode, GiveAway give_away = GiveAway::kNo);
  // mkdir -p below a stage directory; the last component is a file when `directory` is false.
  void make_path(const std::string& base, const std::string& relative, bool directory, mode_t mode);
};

// In the workspace of a transaction.
bool in_layered(const View& view, const std::string& path);
// Path arithmetic: `name` below `folder`, and back.
std::string join(std::string_view folder, std::string_view name);
std::string relative_to(std::string_view path, std::string_view folder);

}  // namespace belljar::backend
