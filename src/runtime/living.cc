// A record of a living sandbox is a file that its owner holds locked, flock(2). The kernel releases
// the lock whatever ends the owner, so who can lock a record knows that nobody holds it, and
// removes it. No pid is kept, because it could be another process's by now.
//
// A record is written under a name with a dot, locked, filled, and then renamed. So a reader never
// sees one under its final name that is unlocked or half written. A reader that meets the file with
// the dot before it is locked removes it as a left one; then the rename fails with ENOENT, and the
// record is made again. The folder may go at the same time, when the last sandbox ends. Both are
// tried kTries times.
//
// Each sandbox writes its record first and reads those of the others afterwards. In the other order
// two that start at once could each read before the other wrote, and neither would hide its
// workspace from the other.
#include "runtime/living.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "base/format.h"
#include "base/made_directories.h"
#include "base/owner.h"
#include "base/random.h"
#include "base/real_path.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "policy/paths.h"
#include "policy/siblings.h"

namespace belljar::runtime {
namespace {

bool lock(int file, int operation) noexcept {
  int status = 0;
  do status = ::flock(file, operation | LOCK_NB);
  while (status < 0 && errno == EINTR);
  return status == 0;
}

// The record of one sandbox; removed with it. Where Belljar kept nothing before it keeps nothing after it: a state directory that
// was made for it goes, too. Else the folder stays, empty: to make and remove it costs more than all the rest.
struct Record {
  Record(std::string its_path, UniqueFd its_file) : path(std::move(its_path)), file(std::move(its_file)) {}
  // Of a forked child it is the parent's.
  ~Record() {
    if (owner.is_this()) ::unlink(path.c_str());
  }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  const std::string path;
  const UniqueFd file;
  MadeDirectories made;
  const OwningProcess owner;
};

// Null: errno. Nobody takes it for one that is left before it is locked.
std::shared_ptr<Record> write_record(const std::string& folder, const std::string& text) {
  const std::string name = random_hex(16);
  if (name.empty()) return errno = EACCES, nullptr;
  const std::string unlocked = folder + "/." + name, path = folder + "/" + name;
  UniqueFd file(::open(unlocked.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return nullptr;
  if (lock(file.get(), LOCK_EX) && write_all(file.get(), text) && ::rename(unlocked.c_str(), path.c_str()) == 0)
    return std::make_shared<Record>(path, std::move(file));
  const int error = errno;
  ::unlink(unlocked.c_str());
  errno = error;
  return nullptr;
}

// One that nobody holds is removed; it never has the name of another.
void read_record(const std::string& path, bool complete, std::vector<std::string>& directories) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) return;
  if (lock(file.get(), LOCK_SH)) {
    ::unlink(path.c_str());
    return;
  }
  char text[4 * PATH_MAX];
  const ssize_t size = complete ? ::read(file.get(), text, sizeof text) : 0;
  std::string_view rest(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size() - 1);
    directories.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
}

std::vector<std::string> read_others(const std::string& folder, const std::string& own) {
  std::vector<std::string> directories;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), ::closedir);
  if (stream == nullptr) return directories;
  while (const dirent* entry = ::readdir(stream.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string_view name = entry->d_name;
    const std::string path = format("{}/{}", folder, name);
    if (name != "." && name != ".." && path != own) read_record(path, !name.starts_with('.'), directories);
  }
  return directories;
}

// What the user's rules open, by the names that the kernel knows it by. A file of the workspace opens nothing.
std::vector<std::string> opened_by(const Filesystem& filesystem) {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& path) { paths.push_back(real_path_or_given(path)); };
  for (const FsEntry& entry : filesystem.entries) {
    if (!entry.glob && entry.access != Access::kNone && entry.kind == RuleKind::kGiven && entry.path != "/") add(entry.path);
  }
  if (filesystem.temp_dir) add(*filesystem.temp_dir);
  return paths;
}

}  // namespace

Living enter_living(const std::string& state_dir, const std::vector<std::string>& directories, Others others) {
  Living living;
  if (state_dir.empty()) {
    living.why_not = "there is no state directory: set XDG_STATE_HOME or HOME";
    return living;
  }
  const std::string folder = state_dir + "/living";
  std::string text;
  for (const std::string& directory : directories) text.append(directory).push_back('\0');
  const auto holds_it = [&](const std::string& directory) { return policy::is_within(state_dir, directory); };
  if (std::ranges::any_of(directories, holds_it) && ::access(state_dir.c_str(), F_OK) != 0) {
    living.why_not = format("{} lies in the workspace, and is not made there", state_dir);
    return living;
  }
  MadeDirectories made;
  std::shared_ptr<Record> record;
  // Once more where there is no folder yet, who ended removed it, or who tidied up met the record before it was locked.
  constexpr int kTries = 16;
  for (int tries = 0; record == nullptr && tries < kTries; ++tries) {
    record = write_record(folder, text);
    if (record != nullptr || (errno != ENOENT && errno != EWOULDBLOCK)) break;
    if (const auto failure = made.make(folder); failure.errnum != 0 && failure.errnum != ENOENT) {
      errno = failure.errnum;
      break;
    }
  }
  if (record == nullptr) {
    living.why_not = format("{} cannot be written: {}", folder, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
    return living;
  }
  if (made.count() > 1) record->made = std::move(made);
  else made.keep();
  // Who does not ask tidies up now and then: a thousand starts of which each reads a thousand records would take seconds.
  const bool tidies = record->path.ends_with("00");
  if (others == Others::kAsked || tidies) living.others = read_others(folder, record->path);
  living.record = std::move(record);
  return living;
}

Living look_at_living(const std::string& state_dir) { return {.others = read_others(state_dir + "/living", {})}; }

Result<std::optional<backend::SiblingWorkspaces>> hide_siblings(const Policy& policy, Siblings unset,
                                                                const backend::Workplace& place, const Living& living) {
  const Filesystem& filesystem = policy.filesystem;
  if (filesystem.siblings.value_or(unset) == Siblings::kShown) return std::optional<backend::SiblingWorkspaces>();
  if (policy.mode == Mode::kDangerFullAccess || policy.mode == Mode::kExternalSandbox) {
    if (!filesystem.siblings) return std::optional<backend::SiblingWorkspaces>();
    return Error(Code::kInvalidArgument, format("filesystem.siblings hidden cannot hold in mode {}", to_string(policy.mode)))
        .reason("the mode drops file rules")
        .next("choose mode workspace-write, or leave the key out");
  }
  backend::SiblingWorkspaces places;
  places.asked = filesystem.siblings.has_value();
  places.unknown = living.why_not;
  policy::SiblingQuestion question{.workspace = real_path_or_given(place.workspace),
                                   .home = real_path_or_given(place.home),
                                   .opened = opened_by(filesystem),
                                   .volumes = {},
                                   .others = {}};
  for (const Volume& volume : filesystem.volumes) question.volumes.push_back(real_path_or_given(volume.source));
  for (const std::string& other : living.others) {
    const std::string real = real_path(other);
    if (real == other) question.others.push_back(other);
    // Never what a link leads to: who could put it there would choose what others do not see.
    else if (!real.empty()) places.visible.push_back(format("{} (it was moved)", quoted(other)));
  }
  policy::SiblingAnswer answer = policy::choose_siblings(std::move(question));
  places.hidden = std::move(answer.hidden);
  places.visible.insert(places.visible.end(), answer.visible.begin(), answer.visible.end());
  return std::optional<backend::SiblingWorkspaces>(std::move(places));
}

}  // namespace belljar::runtime
