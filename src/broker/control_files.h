// Git's control files: what stands at their names is a fresh file of ours with content that was judged.
//
// A judged file must not change afterwards through a descriptor or a hard link that somebody kept from before, so the file that was
// judged is never the file that is put in place: its content is read once, judged, written to a new private file beside the name,
// and that is renamed over the name. The private file has a reserved name that no call of the sandbox may touch.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "broker/file_call.h"

namespace belljar::broker {

// Names that are the broker's own; calls on them are refused (EACCES).
bool is_reserved(std::string_view name);

// Content of a regular file up to max_control_file(kind). EACCES for what is longer or no regular file.
OrErrno<std::string> read_control_file(int dir, const std::string& name, GitName kind);

// Judges `content` for `dir_entry` and puts a fresh file there with mode, group, times and extended attributes of `like`. 0 or
// -errno, a violation recorded where the judge objects. With the caller's permissions.
struct FreshFile {
  Act act = Act::kWrite;
  std::string_view content;
  int like = -1;  // a descriptor of the file it replaces or comes from
  mode_t mode = 0644;
  unsigned rename_flags = 0;  // RENAME_NOREPLACE
};
int judge_and_install(FileCall& file, DirEntry& dir_entry, const Ruling& ruling, const FreshFile& fresh);
// Its two halves. What git would object to in `content` at `path`; `old` is what stands there now.
std::optional<std::string> objection_to(const FileRules& rules, const std::string& path, GitName git, std::string_view content,
                                        const std::optional<std::string>& old);
// The same in a sandbox: what the command itself took away may stand there again, too.
std::optional<std::string> objection_in(const Context& context, const std::string& path, GitName git, std::string_view content,
                                        const std::optional<std::string>& old);
int install_fresh(const DirEntry& dir_entry, const FreshFile& fresh);
// A new private file in `dir`, open for reading and writing. `name` is its reserved name.
OrErrno<UniqueFd> make_private(int dir, mode_t mode, std::string& name);

// The act on `dir_entry` completes a git directory: all its control files are judged and replaced by fresh ones. `ruling` was asked
// with the directories owned. 0: go on with the act.
int admit_git_dir(FileCall& file, Act act, DirEntry& dir_entry, const Ruling& ruling);

// The same of a directory that nobody in a sandbox writes to by us: nothing is replaced. Why what stands below `dir`, which is seen
// as `top` and becomes a git directory, may not: "NAME: reason". `skip`: names below it that are judged elsewhere.
std::optional<std::string> git_dir_objection(const FileRules& rules, int dir, const std::string& top,
                                             const std::function<bool(const std::string& relative)>& skip);

// The file at `dir_entry`, or the directory with its git settings, is about to go away: its content is remembered.
void remember_file(FileCall& file, DirEntry& dir_entry);
void remember_directory(FileCall& file, DirEntry& dir_entry);

// `from`, a directory, is to get the path of `to`: what lies below is judged under its new names, control files are replaced by
// fresh ones. `arrives` is the ruling on the new name. Directories owned. 0: go on.
int admit_tree(FileCall& file, DirEntry& from, DirEntry& to, const Ruling& arrives);

}  // namespace belljar::broker
