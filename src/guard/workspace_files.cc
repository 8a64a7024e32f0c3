// What a Turn sees of a sandbox's files.
//
// A file counts as changed by its ctime. The kernel sets it at every change of content, mode, links and name,
// and no call sets it to another time, so what was unpacked with the times of an archive, copied with `cp -p`
// or touched is as new as it is. It also counts for what somebody else changed meanwhile, which only leads to
// more being read.
//
// File calls do not reach /tmp and its kin, which are the sandbox's own; there a command of ours reads.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/sandbox.h"
#include "belljar/turn.h"

namespace belljar {
namespace {

using Clock = std::chrono::system_clock;

constexpr std::size_t kMostText = 256U << 10;
constexpr std::size_t kMostNames = 64;
constexpr std::chrono::milliseconds kPatience{2000};

CallOptions in_time() { return {.deadline = std::chrono::steady_clock::now() + kPatience}; }

class SandboxFiles {
 public:
  SandboxFiles(std::shared_ptr<Sandbox> sandbox, Clock::time_point since) : sandbox_(std::move(sandbox)), since_(since) {}

  std::optional<WorkspaceFile> read(const std::string& path) const {
    if (!can_tell()) return std::nullopt;
    if (is_temporary(path)) return read_inside(path);
    const CallOptions call = in_time();
    bool changed = false;
    std::string name = path;
    for (int links = 0; links < 4; ++links) {
      const auto info = sandbox_->stat(name, call);
      if (!info) return std::nullopt;
      changed = changed || is_new(*info);  // a link that was made now gives what it leads to a new name
      if (info->type == FileType::kFile) {
        auto text = sandbox_->read_file(name, {.limit = kMostText, .call = call});
        if (!text) return std::nullopt;
        return WorkspaceFile{.text = *std::move(text), .changed = changed, .whole = info->size <= kMostText};
      }
      if (info->type != FileType::kSymlink || info->target.empty()) return std::nullopt;
      const std::size_t slash = name.rfind('/');
      name = info->target.starts_with('/') || slash == std::string::npos ? info->target : name.substr(0, slash + 1) + info->target;
    }
    return std::nullopt;
  }

  std::vector<std::string> changed_in(const std::string& directory) const {
    std::vector<std::string> names;
    if (!can_tell()) return names;
    const auto entries = sandbox_->list(directory, in_time());
    if (!entries) return names;
    for (const FileInfo& entry : *entries) {
      const bool file = entry.type == FileType::kFile || entry.type == FileType::kSymlink;
      if (file && is_new(entry) && names.size() < kMostNames) names.push_back(entry.path);
    }
    return names;
  }

 private:
  bool is_new(const FileInfo& info) const { return info.changed && *info.changed >= since_; }
  // Asked once: of a backend that cannot tell each look would be a question to a distant machine, for nothing.
  bool can_tell() const {
    std::call_once(asked_, [this] {
      const auto info = sandbox_->stat(".", in_time());
      can_tell_ = info && info->changed;
    });
    return can_tell_;
  }

  static bool is_temporary(std::string_view path) {
    return path.find("/../") == std::string_view::npos &&
           (path.starts_with("/tmp/") || path.starts_with("/var/tmp/") || path.starts_with("/dev/shm/"));
  }

  // By a command, as one of the sandbox's own would read it. Its first line is the time of the change.
  std::optional<WorkspaceFile> read_inside(const std::string& path) const {
    // A workspace may lie there as well.
    if (path.starts_with(sandbox_->workspace() + "/")) return read(path.substr(sandbox_->workspace().size() + 1));
    constexpr const char* kScript =
        R"([ -f "$1" ] || exit 1; stat -Lc %Z -- "$1" 2>/dev/null || echo; exec head -c 262145 -- "$1")";
    const auto done = sandbox_->exec(Command{.argv = {"/bin/sh", "-c", kScript, "sh", path}},
                                     {.timeout = kPatience, .output_bytes = kMostText + 64});
    if (!done || done->exit_code != 0 || done->reason != Reason::kExited) return std::nullopt;
    std::string text = done->out.bytes;
    const std::size_t line = text.find('\n');
    if (line == std::string::npos) return std::nullopt;
    std::time_t seconds = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + line, seconds);
    const bool known = wrong == std::errc() && end == text.data() + line;
    const bool changed = !known || seconds >= Clock::to_time_t(std::chrono::floor<std::chrono::seconds>(since_));
    text.erase(0, line + 1);
    const bool whole = text.size() <= kMostText;
    text.resize(std::min(text.size(), kMostText));
    return WorkspaceFile{.text = std::move(text), .changed = changed, .whole = whole};
  }

  std::shared_ptr<Sandbox> sandbox_;
  Clock::time_point since_;
  mutable std::once_flag asked_;
  mutable bool can_tell_ = false;
};

// By the clock that file systems take their times from: it is a tick behind at most, and never ahead.
Clock::time_point coarse_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return Clock::time_point(
      std::chrono::duration_cast<Clock::duration>(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec)));
}

}  // namespace

WorkspaceFiles workspace_files(std::shared_ptr<Sandbox> sandbox, std::chrono::system_clock::time_point since) {
  const auto files = std::make_shared<const SandboxFiles>(std::move(sandbox), since);
  return {.read = [files](const std::string& path) { return files->read(path); },
          .changed_in = [files](const std::string& directory) { return files->changed_in(directory); }};
}

WorkspaceFiles workspace_files(std::shared_ptr<Sandbox> sandbox) { return workspace_files(std::move(sandbox), coarse_now()); }

}  // namespace belljar
