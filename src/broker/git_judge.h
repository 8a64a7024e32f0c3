// Is the content of a git control file inert? Pure: text in, objection or nothing out.
//
// The lists say what is *allowed*: a key of git-config(1) that nobody put there is refused, so a new git with a new key that runs
// something finds it refused. What stood in the file before may stay as it is (`old_content`).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "broker/git_names.h"

namespace belljar::broker {

inline constexpr std::size_t kMaxControlFile = 1 << 20;  // bytes; what is longer is refused unread
// The same of one kind: an index is larger than other files.
std::size_t max_control_file(GitName kind) noexcept;

struct GitContext {
  // What stands at that very name now, if it was a control name before this act. Never the content of another name: a file that
  // was written while its name meant nothing to git was not judged.
  std::optional<std::string_view> old_content;
  // Absolute directories in which a pointer may lead: host directories that are writable inside, where every git directory's
  // control files are judged. None: any pointer is refused.
  std::span<const std::string> roots;
  // Whether the command itself may reach the URL of a git server. Empty: none.
  std::function<bool(std::string_view url)> reaches;
  // Whether a symbolic link stands at an absolute path, as git on the host will find it. A pointer that leads through one is
  // refused: where it ends nobody judges. Empty: there are no links.
  std::function<bool(const std::string& path)> is_link;
};

// nullopt: inert. Otherwise one sentence that says what in it could run code or point elsewhere; it may quote `content`, escaped.
// `path` is the control file's own, absolute and normal; relative pointers are resolved against it as text.
std::optional<std::string> git_objection(GitName kind, std::string_view path, std::string_view content, const GitContext& context);

}  // namespace belljar::broker
