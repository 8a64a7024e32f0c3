// What an agent changed in its own state, looked for in the layer that is dropped at the end of a run, and
// kept for a person.
//
// The layer is the upper directory of an overlay: new and changed files as they are, removed names as
// character devices 0/0, directories that replace one of the host's marked as opaque (the kernel's
// overlayfs.rst). Collector walks it beside the host's directory and files each difference into one of three
// trees: changed, removed, left out. Names that only serve a run are passed over, as are answers that are
// kept in another way (answers.cc).
//
// All of it came from inside and may be hostile. So files are opened without following links and without
// blocking, only regular ones are read, numbers and sizes and depths are limited, and nothing is applied
// without a person's word. What is shown is escaped line by line.
//
// Applying writes a new file beside the old one and renames it, in a directory that is opened component by
// component below the home: a symbolic link that a command left there must not choose what is overwritten.
#include "cli/dropped.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "base/made_directories.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "base/real_path.h"
#include "base/remove_tree.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "cli/agent_state.h"
#include "cli/answers.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "policy/agents.h"
#include "policy/paths.h"
#include "runtime/run.h"
#include "txn/lines.h"

namespace belljar::cli {
namespace {

constexpr std::uint64_t kMostBytes = 16ULL << 20, kMostOfAFile = 4ULL << 20;
constexpr std::size_t kMostFiles = 2000, kMostSeen = 50'000;
constexpr int kDeepest = 32;

// Of what is kept: one tree for each of these, with the host's whole paths below it.
constexpr char kChanged[] = "changed", kRemoved[] = "removed", kLeftOut[] = "left-out";

// STATE/agents/NAME; empty: there is no state directory.
std::string place_of(std::string_view agent) {
  const std::string state = default_state_dir();
  return state.empty() ? state : format("{}/agents/{}", state, agent);
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy), ::closedir);
  if (!stream) {
    ::close(copy);
    return names;
  }
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    if (names.size() > kMostFiles) break;
  }
  std::ranges::sort(names);
  return names;
}

enum class Replace { kNo, kYes };

// The directory of a file of the host's, made where it is missing; below the home never through a link.
UniqueFd directory_for(const std::string& path) {
  const std::string folder = parent_of(path);
  const std::string given = own_variable("HOME");
  const std::string home = given.starts_with('/') ? policy::normal(given) : std::string();
  const bool at_home = !home.empty() && home != "/" && policy::is_within(folder, home);
  UniqueFd top(::open((at_home ? home : folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at_home || folder == home) return top;
  return open_made(std::move(top), std::string_view(folder).substr(home.size() + 1));
}

// All of it or nothing, by way of a temporary file beside it. 0, or an errno.
int put_file(const std::string& path, std::string_view text, mode_t mode, Replace replace) {
  const UniqueFd folder = directory_for(path);
  if (!folder.valid()) return errno;
  const std::string name(file_name(path));
  const std::string temporary = format(".{}.belljar-{}", name.substr(0, 200), ::getpid());
  struct stat owner{};
  const UniqueFd file(::openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid() || ::fstat(folder.get(), &owner) != 0) return errno;
  bool done = write_all(file.get(), text) && ::fchmod(file.get(), mode) == 0;
  if (done && ::geteuid() == 0) done = ::fchown(file.get(), owner.st_uid, owner.st_gid) == 0;
  if (done && replace == Replace::kYes) done = ::renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) == 0;
  else if (done) done = ::linkat(folder.get(), temporary.c_str(), folder.get(), name.c_str(), 0) == 0;
  const int failed = done ? 0 : errno;
  if (failed != 0 || replace == Replace::kNo) ::unlinkat(folder.get(), temporary.c_str(), 0);
  return failed;
}

// `text` as the file `path` below the directory `top`, parents made.
int write_below(const std::string& top, const std::string& path, std::string_view text, mode_t mode) {
  const UniqueFd folder = open_made(UniqueFd(::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), parent_of(path).substr(1));
  if (!folder.valid()) return errno;
  const std::string name(file_name(path));
  const UniqueFd file(::openat(folder.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  return file.valid() && write_all(file.get(), text) ? 0 : errno;
}

// Looks through one layer.
class Collector {
 public:
  Collector(std::string top, const policy::Agent& agent, const LoadedPolicy& loaded)
      : top_(std::move(top)), agent_(agent), loaded_(loaded) {}

  void collect(int layer, const std::string& place) { walk(layer, place, place.size(), 0); }
  std::size_t count() const { return count_; }

 private:
  void walk(int folder, const std::string& at, std::size_t place, int depth) {
    for (const std::string& name : names_in(folder)) {
      const std::string path = at + "/" + name;
      struct stat status{};
      if (++seen_ > kMostSeen) return;
      if (policy::is_private_to_run(agent_, std::string_view(path).substr(place))) continue;
      if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISDIR(status.st_mode)) {
        const UniqueFd below(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!below.valid() || depth >= kDeepest) {
          keep(kLeftOut, path, {}, 0600);
          continue;
        }
        walk(below.get(), path, place, depth + 1);
        if (is_opaque(below.get())) keep_removed(path, below.get(), place, depth + 1);
      } else {
        inspect(folder, name, path, place, depth, status);
      }
    }
  }

  void inspect(int folder, const std::string& name, const std::string& path, std::size_t place, int depth,
               const struct stat& status) {
    struct stat host{};
    const bool there = ::lstat(path.c_str(), &host) == 0;
    // A name that was removed: "a character device with device number 0/0", the kernel's overlayfs.rst.
    if (S_ISCHR(status.st_mode) && status.st_rdev == ::makedev(0, 0)) {
      if (there && !S_ISDIR(host.st_mode)) keep(kRemoved, path, {}, 0600);
      else if (there) keep_removed(path, -1, place, depth + 1);
      return;
    }
    if (S_ISSOCK(status.st_mode) || S_ISFIFO(status.st_mode)) return;
    const auto text = read_plain_at(folder, name, kMostOfAFile);
    if (!text || text->size() > kMostBytes - bytes_) return keep(kLeftOut, path, {}, 0600);
    const UniqueFd parent(::open(parent_of(path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto before = there && parent.valid() ? read_plain_at(parent.get(), name, kMostOfAFile) : std::nullopt;
    if (before == text) return;
    if (depth == 0 && differs_in_answers_alone(loaded_, name, before ? &*before : nullptr, *text)) return;
    if (!there && persists(path)) {
      // Its directory is made by now, and what is new in it would have been written there if a file could be mounted that is not.
      if (put_file(path, *text, 0600, Replace::kNo) == 0) return;
    }
    if (!there && is_empty_config(*text)) return;
    bytes_ += text->size();
    keep(kChanged, path, *text, (status.st_mode & 0111) != 0 ? 0700 : 0600);
  }

  // Made anew over one that the host has, overlayfs.rst; the second name is that of mounts in user namespaces.
  static bool is_opaque(int folder) {
    char value = 0;
    return (::fgetxattr(folder, "trusted.overlay.opaque", &value, 1) == 1 ||
            ::fgetxattr(folder, "user.overlay.opaque", &value, 1) == 1) &&
           value == 'y';
  }

  // The host's files below `at` that are not in `anew` (-1: a directory that is gone), each by its name, as they are removed by
  // hand. Where the new one has the name, walk() has looked at it.
  void keep_removed(const std::string& at, int anew, std::size_t place, int depth) {
    const UniqueFd folder(::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.valid() || depth > kDeepest) return;
    for (const std::string& name : names_in(folder.get())) {
      const std::string path = at + "/" + name;
      struct stat host{}, ours{};
      if (++seen_ > kMostSeen) return;
      if (policy::is_private_to_run(agent_, std::string_view(path).substr(place))) continue;
      if (::fstatat(folder.get(), name.c_str(), &host, AT_SYMLINK_NOFOLLOW) != 0) continue;
      const bool stays = anew >= 0 && ::fstatat(anew, name.c_str(), &ours, AT_SYMLINK_NOFOLLOW) == 0;
      if (stays) continue;
      if (S_ISDIR(host.st_mode)) keep_removed(path, -1, place, depth + 1);
      else keep(kRemoved, path, {}, 0600);
    }
  }

  // What opencode lays out at each start: it names its schema and sets nothing.
  static bool is_empty_config(std::string text) {
    constexpr std::string_view kBegin = "{\"$schema\":\"https://", kEnd = "\"}";
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
    return text.starts_with(kBegin) && text.size() >= kBegin.size() + kEnd.size() &&
           text.find('"', kBegin.size()) == text.size() - kEnd.size() && text.ends_with(kEnd);
  }

  bool persists(const std::string& path) const {
    // The layer lies where a link leads to, the profile names the link.
    const auto named = std::ranges::find_if(loaded_.state_files, [&](const std::string& file) {
      return file == path || format("{}/{}", real_path(parent_of(file)), file_name(file)) == path;
    });
    if (named == loaded_.state_files.end()) return false;
    const FsEntry* const rule = find_rule(loaded_.effective.complete, *named);
    return rule != nullptr && rule->access == Access::kWrite;
  }

  void keep(const char* tree, const std::string& path, std::string_view text, mode_t mode) {
    if (count_ >= kMostFiles) return;
    ++count_;
    ::mkdir((top_ + "/" + tree).c_str(), 0700);
    if (write_below(top_ + "/" + tree, path, text, mode) != 0 && tree == std::string_view(kChanged)) {
      ::mkdir((top_ + "/" + kLeftOut).c_str(), 0700);
      (void)write_below(top_ + "/" + kLeftOut, path, {}, 0600);
    }
  }

  std::string top_;
  const policy::Agent& agent_;
  const LoadedPolicy& loaded_;
  std::uint64_t bytes_ = 0;
  std::size_t count_ = 0, seen_ = 0;
};

void list_tree(int folder, const std::string& at, std::string_view tree, int depth, std::vector<DroppedFile>& files) {
  for (const std::string& name : names_in(folder)) {
    const std::string path = at + "/" + name;
    const UniqueFd below(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!below.valid()) files.push_back({.path = path, .removed = tree == kRemoved, .left_out = tree == kLeftOut});
    else if (depth < 4 * kDeepest) list_tree(below.get(), path, tree, depth + 1, files);
  }
}

std::optional<std::string> kept_text(std::string_view agent, const std::string& path) {
  return read_plain_at(AT_FDCWD, place_of(agent) + "/" + kChanged + path, kMostOfAFile);
}

// What was kept of it is there by now, by `belljar agents keep` or otherwise.
bool is_made(std::string_view agent, const DroppedFile& file) {
  struct stat status{};
  if (file.removed) return ::lstat(file.path.c_str(), &status) != 0 && errno == ENOENT;
  const auto text = file.left_out ? std::nullopt : kept_text(agent, file.path);
  return text && read_plain(file.path, kMostOfAFile) == text;
}

std::string link_target(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
  return {target, length > 0 ? static_cast<std::size_t>(length) : 0};
}

}  // namespace

std::optional<std::string> read_plain_at(int folder, const std::string& name, std::uint64_t most) {
  const UniqueFd file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (static_cast<std::uint64_t>(status.st_size) > most) return std::nullopt;
  return read_at_most(file.get(), static_cast<std::size_t>(status.st_size));
}

std::optional<std::string> read_plain(const std::string& path, std::uint64_t most) { return read_plain_at(AT_FDCWD, path, most); }

void keep_dropped(const runtime::RunOutcome& ran, const LoadedPolicy& loaded) {
  const policy::Agent* const agent = policy::find_agent_of_profile(loaded.effective.policy.profile);
  if (agent == nullptr || ran.scratch.empty()) return;
  const std::string place = place_of(agent->name);
  if (place.empty()) return;
  const std::string fresh = format("{}.{}", place, ::getpid());
  MadeDirectories made;
  if (made.make(fresh).errnum != 0) return;
  made.keep();
  Collector collector(fresh, *agent, loaded);
  for (const runtime::ScratchLayer& layer : ran.scratch) collector.collect(layer.content.get(), layer.path);
  // What an earlier run left may still be kept by who comes to it late.
  if (collector.count() == 0) return (void)remove_tree(fresh);
  // Both names are ours alone; of two runs that end together the last one counts.
  // Not atomic: between the two calls there are no dropped files at all, which readers take for
  // "nothing changed".
  (void)remove_tree(place);
  if (::rename(fresh.c_str(), place.c_str()) != 0) (void)remove_tree(fresh);
  print_note(format("{} of {}'s own state {} changed, and dropped: belljar agents diff {}",
                    collector.count() == 1 ? "one file" : format("{} files", collector.count()), agent->name,
                    collector.count() == 1 ? "was" : "were", agent->name));
}

Result<std::vector<DroppedFile>> dropped_files(std::string_view agent) {
  if (policy::find_agent_of_profile(format("agent-{}", agent)) == nullptr) {
    std::string all;
    for (const policy::Agent& known : policy::agents()) all += format("{}{}", all.empty() ? "" : ", ", known.name);
    return Error(Code::kNotFound, format("there is no agent {}", quoted(agent))).reason("known are " + all);
  }
  std::vector<DroppedFile> files;
  for (const char* tree : {kChanged, kRemoved, kLeftOut}) {
    const UniqueFd top(::open((place_of(agent) + "/" + tree).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (top.valid()) list_tree(top.get(), "", tree, 0, files);
  }
  std::erase_if(files, [&](const DroppedFile& file) { return is_made(agent, file); });
  std::ranges::sort(files, {}, &DroppedFile::path);
  return files;
}

std::string show_dropped(std::string_view agent, const DroppedFile& file) {
  struct stat status{};
  const bool there = ::lstat(file.path.c_str(), &status) == 0;
  std::string text = format("{} {}", file.removed ? 'D' : there ? 'M' : 'A', escaped(file.path));
  if (there && S_ISLNK(status.st_mode)) text += format(" (there it is a link to {})", escaped(link_target(file.path)));
  if (file.left_out) return text + " (not kept: too large, or no plain file)\n";
  text += '\n';
  if (file.removed) return text;
  const auto now = kept_text(agent, file.path);
  if (!now) return text + "  cannot be read\n";
  const std::string before = read_plain_at(AT_FDCWD, file.path, kMostOfAFile).value_or("");
  if (txn::is_binary(*now) || txn::is_binary(before)) return text + format("  binary, {} bytes\n", now->size());
  // Line by line: what came from inside must not reach the terminal as it is.
  const std::string hunks = txn::unified_hunks(before, *now);
  for (const std::string_view line : txn::split_lines(hunks))
    text += escaped(line.ends_with('\n') ? line.substr(0, line.size() - 1) : line) + "\n";
  return text;
}

Result<void> apply_dropped(std::string_view agent, const DroppedFile& file) {
  const auto refused = [&](int errnum, const char* call) {
    return Error(Code::kPermissionDenied, format("cannot change {}", quoted(file.path))).sys(errnum, call);
  };
  if (file.left_out)
    return Error(Code::kFailedPrecondition, format("{} was not kept", quoted(file.path)))
        .reason("it was too large, or no plain file")
        .next("do the same in a session that runs outside");
  if (file.removed) {
    if (::unlink(file.path.c_str()) != 0 && errno != ENOENT) return refused(errno, "unlink");
    return {};
  }
  const std::string kept = place_of(agent) + "/" + kChanged + file.path;
  struct stat status{};
  const auto text = kept_text(agent, file.path);
  if (!text || ::stat(kept.c_str(), &status) != 0) return refused(errno, "open");
  struct stat host{};
  mode_t mode = status.st_mode & 0777;
  const bool there = ::lstat(file.path.c_str(), &host) == 0;
  if (there && S_ISLNK(host.st_mode))
    return Error(Code::kFailedPrecondition, format("cannot change {}", quoted(file.path)))
        .reason(format("it is a link to {}, which a plain file would replace", quoted(link_target(file.path))))
        .next("change what it leads to, or remove the link first");
  if (there && S_ISREG(host.st_mode)) mode = (host.st_mode & 0666) | (mode & 0100);
  if (const int failed = put_file(file.path, *text, mode, Replace::kYes); failed != 0) return refused(failed, "openat");
  return {};
}

}  // namespace belljar::cli
