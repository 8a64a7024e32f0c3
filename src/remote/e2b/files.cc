// File calls by the daemon where it has one, by a helper inside where it has not (modes, append).
//
// Most begin with a Stat. A read of a FIFO would have the daemon wait for a writer, and some calls make missing
// parents, which the caller did not ask for. The look and the act are two calls, so a command may change the
// file in between; the machine is the commands' own, and nothing but their files is at stake.
//
// An atomic write goes to a temporary name and is moved. What was written is removed when the move fails, also
// for a caller who has no time left, with a bound of its own. An append opens the file inside with O_APPEND
// (">>"): to read, join and write back would lose what others append meanwhile.
#include "remote/e2b/files.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/patience.h"
#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "remote/e2b/e2b_instance.h"
#include "remote/e2b/events.h"
#include "remote/paths.h"
#include "remote/search.h"
#include "runtime/json.h"

namespace belljar::remote::e2b {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr std::uint64_t kLargestRead = 256ULL << 20;
constexpr std::chrono::milliseconds kHelp = 60s;  // for a command of ours that does one thing
constexpr std::chrono::milliseconds kClearing = 1s;
constexpr unsigned kDeepest = 200;

}  // namespace

// --- names

// The daemon's names are JSON.
Result<std::string> RemoteFiles::as_text(const std::string& path, std::string full) {
  if (runtime::to_utf8(full).replaced > 0)
    return Error(Code::kUnimplemented, format("cannot use path {}", belljar::quoted(path)))
        .reason("it is no UTF-8, and E2B takes names as JSON")
        .next("use it from a command inside");
  return full;
}

Result<std::string> RemoteFiles::below(const std::string& path) const {
  return as_text(path, BELLJAR_TRY(remote::below(instance_->workspace(), path)));
}

Result<std::string> RemoteFiles::named_below(const std::string& path) const {
  return as_text(path, BELLJAR_TRY(remote::named_below(instance_->workspace(), path)));
}

Result<std::string> RemoteFiles::call(const char* method, const std::string& json, std::string_view doing,
                                      const std::string& path) const {
  const std::string name = std::string("filesystem.Filesystem/") + method;
  const Envd& envd = instance_->envd();
  return envd.call(name.c_str(), json, format("cannot {} {}", doing, belljar::quoted(path)), envd.patience(), end_.fd());
}

Result<Entry> RemoteFiles::look(const std::string& full, const std::string& path, std::string_view doing) const {
  return parse_entry(BELLJAR_TRY(call("Stat", Json{{"path", full}}.dump(), doing, path)));
}

Result<std::string> RemoteFiles::find_cwd(const std::string& cwd) const {
  // A missing one the daemon itself complains of.
  return as_text(cwd, BELLJAR_TRY(cwd_below(instance_->workspace(), cwd)));
}

Result<void> RemoteFiles::make_workspace() const {
  const auto made = call("MakeDir", Json{{"path", instance_->workspace()}}.dump(), "make the workspace", instance_->workspace());
  if (made || made.error().code() == Code::kAlreadyExists) return {};
  return made.error();
}

// --- what changes nothing

Result<FileInfo> RemoteFiles::stat(const std::string& path) const {
  const std::string full = BELLJAR_TRY(below(path));
  Entry entry = BELLJAR_TRY(look(full, path, "look at"));
  entry.info.path = path;
  return std::move(entry.info);
}

Result<std::string> RemoteFiles::read(const std::string& path, const ReadOptions& options) const {
  const std::string full = BELLJAR_TRY(below(path));
  const std::string what = format("cannot read {}", belljar::quoted(path));
  // A FIFO would hold the answer until somebody writes to it.
  const Entry entry = BELLJAR_TRY(look(full, path, "read"));
  if (entry.info.type == FileType::kDirectory || entry.info.type == FileType::kOther)
    return wrong_kind("read", path, entry.info.type);
  const std::uint64_t size = entry.info.size;
  if (!options.limit && size > options.offset && size - options.offset > kLargestRead)
    return Error(Code::kOutOfRange, what)
        .reason(format("it has {} bytes, and at most {} are read at once", size, kLargestRead))
        .next("read it in parts, with an offset and a limit");
  if (options.offset == 0 && !options.limit) return instance_->envd().read(full, {}, what, end_.fd());
  const std::uint64_t most = std::min(options.limit.value_or(kLargestRead), kLargestRead);
  if (most == 0) return std::string();
  return instance_->envd().read(full, std::pair(options.offset, options.offset + most - 1), what, end_.fd());
}

Result<std::vector<FileInfo>> RemoteFiles::list(const std::string& path) const {
  const std::string full = BELLJAR_TRY(below(path));
  const auto reply = call("ListDir", Json{{"path", full}, {"depth", 1}}.dump(), "list", path);
  if (!reply && reply.error().code() == Code::kInvalidArgument)
    return Error(Code::kFailedPrecondition, reply.error().what()).reason(reply.error().reason());
  if (!reply) return reply.error();
  const auto entries = BELLJAR_TRY(parse_entries(*reply));
  std::vector<FileInfo> files;
  for (const Entry& entry : entries) files.push_back(entry.info);
  std::ranges::sort(files, {}, &FileInfo::path);
  return files;
}

// For glob and grep.
Result<std::vector<FileInfo>> RemoteFiles::tree(const WalkOptions& options, bool& complete) const {
  BELLJAR_CHECK(check_walk(options));
  const std::string& top = instance_->workspace();
  auto reply = instance_->envd().call("filesystem.Filesystem/ListDir", Json{{"path", top}, {"depth", kDeepest}}.dump(),
                                      "cannot search the workspace", bounded(options.timeout), options.cancel.fd());
  complete = reply.has_value();
  if (!reply && reply.error().code() != Code::kDeadlineExceeded && reply.error().code() != Code::kCanceled) return reply.error();
  if (!reply) return std::vector<FileInfo>();
  auto entries = BELLJAR_TRY(parse_entries(*reply));
  // Relative to the workspace, whatever the way there is called inside.
  std::string prefix = top;
  if (!entries.empty() && !entries[0].path.starts_with(top + "/")) prefix = entries[0].path.substr(0, entries[0].path.rfind('/'));
  std::vector<FileInfo> files;
  for (Entry& entry : entries) {
    if (!entry.path.starts_with(prefix + "/")) continue;
    entry.info.path = entry.path.substr(prefix.size() + 1);
    files.push_back(std::move(entry.info));
  }
  std::ranges::sort(files, {}, &FileInfo::path);
  return files;
}

// --- what does

Result<void> RemoteFiles::need_parent(const std::string& full, const std::string& path, std::string_view doing) const {
  return look(parent_of(full), path, doing).map([](const Entry&) {});
}

Result<void> RemoteFiles::set_mode(const std::string& full, const std::string& path, unsigned mode) const {
  const HelperResult helped = BELLJAR_TRY(instance_->help({"chmod", format("{:04o}", mode), "--", full}, {}, kHelp, end_));
  if (helped.exit_code == 0) return {};
  return complaint_of(helped.err, "set the mode of", path);
}

// By a command that opens it for appending: no copy of ours goes back and forth, so what others append meanwhile is not lost.
Result<void> RemoteFiles::append(const std::string& full, const std::string& path, std::string_view bytes) const {
  const HelperResult helped =
      BELLJAR_TRY(instance_->help({"/bin/sh", "-c", R"sh(up=${1%/*}; mkdir -p -- "${up:-/}" && exec cat >>"$1")sh", "sh", full},
                                  std::string(bytes), 10min, end_));
  if (helped.exit_code == 0) return {};
  return complaint_of(helped.err, "append to", path);
}

Result<void> RemoteFiles::replace(const std::string& full, const std::string& path, std::string_view bytes,
                                  const WriteOptions& options, const Result<Entry>& before) const {
  static std::atomic<unsigned> serial{0};
  const std::string temporary = format("{}/.belljar-{}{}.tmp", parent_of(full), instance_->nonce(), serial++);
  const std::string what = format("cannot write {}", belljar::quoted(path));
  auto done = instance_->envd().write(temporary, bytes, what, end_.fd());
  const bool keep = before && before->info.type == FileType::kFile;
  if (done && (options.mode || keep)) done = set_mode(temporary, path, options.mode.value_or(keep ? before->info.mode & 0777U : 0));
  if (done)
    done = call("Move", Json{{"source", temporary}, {"destination", full}}.dump(), "write", path).map([](const std::string&) {});
  // Also by a caller who has no time any more.
  const Envd& envd = instance_->envd();
  const auto patience = end_.cancelled() ? std::min<std::chrono::milliseconds>(envd.patience(), kClearing) : envd.patience();
  if (!done) (void)envd.call("filesystem.Filesystem/Remove", Json{{"path", temporary}}.dump(), "cannot remove it", patience, -1);
  return done;
}

Result<void> RemoteFiles::write(const std::string& path, std::string_view bytes, const WriteOptions& options) const {
  BELLJAR_CHECK(check_mode(options.mode));
  const std::string full = BELLJAR_TRY(named_below(path));
  const auto before = look(full, path, "write");
  // Only what is not there is made anew: any other failure would lose what is.
  if (!before && before.error().code() != Code::kNotFound) return before.error();
  const FileType type = before ? before->info.type : FileType::kFile;
  if (path.ends_with('/') || type == FileType::kDirectory) return wrong_kind("write", path, FileType::kDirectory);
  if (type == FileType::kOther) return wrong_kind("write", path, type);
  if (!before && options.parents == Parents::kMustExist) BELLJAR_CHECK(need_parent(full, path, "write"));
  if (options.how == WriteMode::kAtomic) return replace(full, path, bytes, options, before);
  BELLJAR_CHECK(options.how == WriteMode::kAppend
                    ? append(full, path, bytes)
                    : instance_->envd().write(full, bytes, format("cannot write {}", belljar::quoted(path)), end_.fd()));
  if (options.mode) return set_mode(full, path, *options.mode);
  return {};
}

Result<void> RemoteFiles::make_dir(const std::string& path, const MakeDirOptions& options) const {
  BELLJAR_CHECK(check_mode(options.mode));
  const std::string full = BELLJAR_TRY(below(path));
  const bool alone = options.parents == Parents::kMustExist;
  if (alone) BELLJAR_CHECK(need_parent(full, path, "make directory"));
  const auto made = call("MakeDir", Json{{"path", full}}.dump(), "make directory", path);
  if (!made && made.error().code() == Code::kAlreadyExists && !alone) return {};
  if (!made && made.error().code() == Code::kInvalidArgument)  // a file has the name
    return Error(alone ? Code::kAlreadyExists : Code::kFailedPrecondition, made.error().what()).reason(made.error().reason());
  if (!made) return made.error();
  if (options.mode) return set_mode(full, path, *options.mode);
  return {};
}

Result<void> RemoteFiles::rename(const std::string& from, const std::string& to) const {
  const std::string source = BELLJAR_TRY(named_below(from));
  const std::string target = BELLJAR_TRY(named_below(to));
  BELLJAR_CHECK(need_parent(target, to, "rename"));  // the daemon would make it
  return call("Move", Json{{"source", source}, {"destination", target}}.dump(), "rename", from).map([](const std::string&) {});
}

Result<void> RemoteFiles::remove(const std::string& path, const RemoveOptions& options) const {
  const std::string full = BELLJAR_TRY(named_below(path));
  const Entry entry = BELLJAR_TRY(look(full, path, "remove"));  // to the daemon what is not there is removed
  if (entry.info.type != FileType::kDirectory || options.depth == Depth::kTree)
    return call("Remove", Json{{"path", full}}.dump(), "remove", path).map([](const std::string&) {});
  // The daemon removes whole trees, also one that was empty a moment ago.
  const HelperResult helped = BELLJAR_TRY(instance_->help({"rmdir", "--", full}, {}, kHelp, end_));
  if (helped.exit_code == 0) return {};
  return complaint_of(helped.err, "remove", path);
}

}  // namespace belljar::remote::e2b
