// Refusals of past runs, one file each, and no lock: the kernel's own guarantees are enough. A file
// is written without a name (O_TMPFILE, open(2)) and linked when it is whole, so a reader sees all
// or nothing, and a writer that is killed leaves nothing. linkat(2) does not replace: of two runs
// with the same time the second gets EEXIST and takes the next microsecond. Where O_TMPFILE is not
// to be had, a file with a name that no reader takes does the same; what a killed writer leaves is
// removed after an hour.
//
// A workspace's last run (note_last) is one file that each run writes over where it stands, by one
// write(2) of whole blocks: a rename over it would give a block away with every run, which costs
// more than the rest (with the mount option discard the device is waited for). A reader who comes
// in between, or after a crash of the machine, finds nothing that it can parse: the file is a
// convenience. Names are times, so sorting names sorts runs, and pruning removes the first. Two
// processes may prune at once; each removes names that both would have removed.
//
// Directories are opened without following links and must be ours alone to write: nobody else may
// choose where a record lands, or add one.
#include "runtime/violation_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/made_directories.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "base/write_all.h"
#include "policy/paths.h"

namespace belljar::runtime {
namespace {

constexpr std::size_t kIdSize = sizeof "20261121-064030-123456" - 1;
constexpr std::string_view kSuffix = ".json";
constexpr std::string_view kUnfinished = ".unfinished-";
constexpr std::string_view kLast = "last-";  // of a workspace, by a number of its path
constexpr std::size_t kMaxRead = kMaxKeptBytes * 2;
constexpr std::time_t kUnfinishedAge = 3600;  // seconds, after which its writer is surely gone

Error failed(std::string what, const char* call, int errnum) {
  const Code code = errnum == ENOSPC || errnum == EDQUOT                     ? Code::kResourceExhausted
                    : errnum == EACCES || errnum == EPERM || errnum == EROFS ? Code::kPermissionDenied
                                                                             : Code::kUnavailable;
  return Error(code, std::move(what)).sys(errnum, call);
}

std::string id_of(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const std::time_t whole = std::chrono::system_clock::to_time_t(seconds);
  std::tm utc{};
  ::gmtime_r(&whole, &utc);
  return format("{:04}{:02}{:02}-{:02}{:02}{:02}-{:06}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                utc.tm_sec, std::chrono::duration_cast<std::chrono::microseconds>(time - seconds).count());
}

bool is_id(std::string_view text) {
  if (text.size() != kIdSize || text[8] != '-' || text[15] != '-') return false;
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

// `name` in `parent`, made when it is missing; no link is followed, and it must be ours alone to write.
Result<UniqueFd> own_directory(int parent, const std::string& name, const std::string& shown) {
  const std::string what = format("cannot keep refusals in {}", quoted(shown));
  if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) return failed(what, "mkdirat", errno);
  UniqueFd directory(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid()) return failed(what, "openat", errno);
  struct stat status{};
  if (::fstat(directory.get(), &status) != 0) return failed(what, "fstat", errno);
  if (status.st_uid != ::geteuid() || (status.st_mode & 022) != 0)
    return Error(Code::kFailedPrecondition, what)
        .reason("the directory belongs to another user, or others may write there")
        .next(format("give it to yourself, with mode 700: {}", escaped(shown)));
  if ((status.st_mode & kTemporary) != 0) ::fchmod(directory.get(), 0700);
  return directory;
}

// 0, or the errno; EEXIST: another run has this name.
int write_whole(int directory, const std::string& name, std::string_view text) {
  if (const UniqueFd file(::openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)); file.valid()) {
    if (!write_all(file.get(), text)) return errno;
    const std::string self = format("/proc/self/fd/{}", file.get());
    return ::linkat(AT_FDCWD, self.c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
  }
  // A file system without O_TMPFILE (NFS, some FUSE).
  const std::string unfinished = std::string(kUnfinished) + name;
  const UniqueFd file(::openat(directory, unfinished.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return errno;
  int status = write_all(file.get(), text) ? 0 : errno;
  if (status == 0 && ::linkat(directory, unfinished.c_str(), directory, name.c_str(), 0) != 0) status = errno;
  ::unlinkat(directory, unfinished.c_str(), 0);
  return status;
}

// Names in `directory`, sorted: ids are times.
std::vector<std::string> names_in(const UniqueFd& directory) {
  std::vector<std::string> names;
  // fdopendir takes its descriptor over.
  const int copy = ::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy), ::closedir);
  if (!stream) {
    ::close(copy);
    return names;
  }
  while (const dirent* entry = ::readdir(stream.get())) names.emplace_back(entry->d_name);  // NOLINT(concurrency-mt-unsafe)
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> ids_in(const UniqueFd& directory) {
  std::vector<std::string> ids;
  for (const std::string& name : names_in(directory)) {
    if (!name.ends_with(kSuffix)) continue;
    const std::string id = name.substr(0, name.size() - kSuffix.size());
    if (is_id(id)) ids.push_back(id);
  }
  return ids;
}

std::time_t status_time(const UniqueFd& directory, const std::string& name) {
  struct stat status{};
  return ::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_mtime : 0;
}

// The oldest go. Another process may do the same at this moment: what is gone is gone.
void prune(const UniqueFd& directory) {
  const std::vector<std::string> ids = ids_in(directory);
  for (std::size_t i = 0; i + ViolationStore::kMaxRuns < ids.size(); ++i)
    ::unlinkat(directory.get(), (ids[i] + std::string(kSuffix)).c_str(), 0);
  std::vector<std::pair<std::time_t, std::string>> notes;
  for (const std::string& name : names_in(directory)) {
    struct stat status{};
    if (name.starts_with(kLast)) notes.emplace_back(status_time(directory, name), name);
    if (name.starts_with(kUnfinished) && ::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_mtime + kUnfinishedAge < std::time(nullptr))
      ::unlinkat(directory.get(), name.c_str(), 0);
  }
  std::ranges::sort(notes);
  for (std::size_t i = 0; i + ViolationStore::kMaxRuns < notes.size(); ++i) ::unlinkat(directory.get(), notes[i].second.c_str(), 0);
}

// Of the name that a workspace's last run has: any number that is the same for each process.
std::string last_name(std::string_view workspace) {
  std::uint64_t number = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : workspace) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return format("{}{:016x}", kLast, number);
}

Result<std::string> read_file(int directory, const std::string& name) {
  const std::string what = format("cannot read what was kept of a run in {}", quoted(name));
  const UniqueFd file(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) return failed(what, "openat", errno);
  auto text = read_at_most(file.get(), kMaxRead + 1);
  if (!text) return failed(what, "read", errno);
  if (text->size() > kMaxRead) return Error(Code::kDataLoss, what).reason("the file is larger than any that is written");
  return *std::move(text);
}

}  // namespace

Result<UniqueFd> ViolationStore::open_for_keeping() const {
  if (state_.empty())
    return Error(Code::kFailedPrecondition, "cannot keep refusals").reason("neither HOME nor XDG_STATE_HOME names a directory");
  const std::string parent = state_.substr(0, std::max<std::size_t>(state_.rfind('/'), 1));
  make_directories(parent);  // mode 0700, as the XDG Base Directory Specification asks
  const UniqueFd above(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!above.valid()) return failed(format("cannot keep refusals in {}", quoted(state_)), "open", errno);
  const UniqueFd state = BELLJAR_TRY(own_directory(above.get(), std::string(file_name(state_)), state_));
  return own_directory(state.get(), "violations", path());
}

Result<std::string> ViolationStore::keep(KeptRun run) const {
  const UniqueFd directory = BELLJAR_TRY(open_for_keeping());
  auto time = std::chrono::system_clock::now();
  for (int tries = 0; tries < 1000; ++tries, time += std::chrono::microseconds(1)) {
    run.result.id = id_of(time);
    const int status = write_whole(directory.get(), run.result.id + std::string(kSuffix), to_json(run) + "\n");
    if (status == EEXIST) continue;
    if (status != 0) return failed(format("cannot keep refusals in {}", quoted(path())), "write", status);
    prune(directory);
    return run.result.id;
  }
  return Error(Code::kUnavailable, format("cannot keep refusals in {}", quoted(path()))).reason("no free name was found");
}

Result<std::vector<std::string>> ViolationStore::list() const {
  if (state_.empty()) return std::vector<std::string>();
  const UniqueFd directory(::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid() && errno == ENOENT) return std::vector<std::string>();
  if (!directory.valid()) return failed(format("cannot read {}", quoted(path())), "open", errno);
  return ids_in(directory);
}

Result<KeptRun> ViolationStore::load(std::string_view id) const {
  const std::vector<std::string> ids = BELLJAR_TRY(list());
  if (ids.empty()) return nothing();
  std::vector<std::string> fitting;
  std::ranges::copy_if(ids, std::back_inserter(fitting),
                       [&](const std::string& known) { return !id.empty() && (known.starts_with(id) || known.ends_with(id)); });
  if (id == "last") fitting = {ids.back()};
  if (fitting.empty())
    return Error(Code::kNotFound, format("there is no run {}", quoted(id)))
        .reason(format("the last {} runs with refusals are kept", kMaxRuns))
        .next("`belljar explain --list` names them");
  if (fitting.size() > 1)
    return Error(Code::kInvalidArgument, format("{} fits {} runs", quoted(id), fitting.size()))
        .next(format("write more of it, for example {}", fitting.back()));
  const UniqueFd directory(::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid()) return failed(format("cannot read {}", quoted(path())), "open", errno);
  return parse_kept_run(BELLJAR_TRY(read_file(directory.get(), fitting[0] + std::string(kSuffix))));
}

Error ViolationStore::nothing() const {
  return Error(Code::kNotFound, "there is nothing to explain")
      .reason(state_.empty() ? "neither HOME nor XDG_STATE_HOME names a directory, so no run keeps its refusals"
                             : format("no run of yours with a refusal was kept in {}", quoted(path())))
      .next(
          "a run keeps them when something was refused and that directory can be written; `belljar run --json` tells them always");
}

void ViolationStore::note_last(KeptRun run) const {
  if (state_.empty()) return;
  const UniqueFd directory(::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!directory.valid() || ::fstat(directory.get(), &status) != 0 || status.st_uid != ::geteuid() || (status.st_mode & 022) != 0)
    return;
  run.result.id = id_of(std::chrono::system_clock::now());
  const std::string name = last_name(run.workspace);
  bool first = false;
  UniqueFd file(::openat(directory.get(), name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) {
    first = true;
    file = UniqueFd(::openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  }
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  // Padded to whole blocks, so that a shorter one seldom gives any back: JSON allows spaces behind.
  constexpr std::size_t kBlock = 4096;
  std::string text = to_json(run) + "\n";
  text.resize((text.size() + kBlock - 1) / kBlock * kBlock, ' ');
  const auto size = static_cast<off_t>(text.size());
  const bool whole = write_all(file.get(), text) && ::fstat(file.get(), &status) == 0;
  if (!whole || (status.st_size > size && ::ftruncate(file.get(), size) != 0)) ::unlinkat(directory.get(), name.c_str(), 0);
  if (first) prune(directory);
}

Result<KeptRun> ViolationStore::load_last(std::string_view directory) const {
  const std::vector<std::string> ids = BELLJAR_TRY(list());
  if (ids.empty()) return nothing();
  const UniqueFd folder(::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) return failed(format("cannot read {}", quoted(path())), "open", errno);
  std::vector<std::string> names;
  for (const std::string& id : ids) names.push_back(id + std::string(kSuffix));
  for (std::string up(directory);; up.resize(std::max<std::size_t>(up.rfind('/'), 1))) {
    names.push_back(last_name(up));
    if (up.size() <= 1) break;
  }
  std::optional<KeptRun> last;
  for (const std::string& name : names) {
    const auto text = read_file(folder.get(), name);
    auto run = text ? parse_kept_run(*text) : Result<KeptRun>(text.error());
    if (!run || !policy::is_within(directory, run->workspace)) continue;

    if (!last || run->result.id > last->result.id) last = *std::move(run);
  }
  if (last) return *std::move(last);
  return Error(Code::kNotFound, format("there is nothing to explain in {}", quoted(directory)))
      .reason("no run of a workspace there was kept")
      .next("`belljar explain --list` names the runs of others; `belljar explain ID` explains one");
}

}  // namespace belljar::runtime
