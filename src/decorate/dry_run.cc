// Dry run: writes are kept in memory, over what the inner sandbox shows.
#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/command.h"
#include "belljar/decorators.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "belljar/txn.h"
#include "belljar/watch.h"
#include "decorate/call.h"
#include "policy/check_command.h"
#include "policy/domains.h"
#include "policy/paths.h"

namespace belljar {
namespace {

constexpr std::size_t kMostMoved = 10'000;  // names of a directory that is renamed
constexpr int kMostLinks = 40;              // as path_resolution(7)
constexpr const char* kNotExecuted = "dry run: not executed";

// A name that was written, made or taken away.
struct Node {
  enum class Kind { kFile, kDirectory, kGone } kind = Kind::kFile;
  std::string bytes;
  std::string source;  // not empty: the content is still that of this file inside
  unsigned mode = 0644;
  std::chrono::system_clock::time_point modified = std::chrono::system_clock::now();
};

Error missing(std::string_view doing, const std::string& path) {
  return Error(Code::kNotFound, format("cannot {} {}", doing, quoted(path))).reason("No such file or directory");
}
Error wrong_type(std::string_view doing, const std::string& path) {
  return Error(Code::kFailedPrecondition, format("cannot {} {}", doing, quoted(path))).reason("it is of another type");
}

Result<void> check_mode(std::string_view doing, const std::string& path, std::optional<unsigned> mode) {
  if (!mode || *mode <= 0777) return {};
  return Error(Code::kInvalidArgument, format("cannot {} {}", doing, quoted(path))).reason("the mode is not 0000 to 0777");
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string joined(const std::string& directory, const std::string& name) {
  return directory == "." ? name : directory + "/" + name;
}
bool is_below(const std::string& path, const std::string& directory) {
  return directory == "." || (path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/');
}

// The workspace as it would be. One thread at a time.
class Pretended {
 public:
  explicit Pretended(Sandbox& inner) : inner_(inner) {}
  void forget() { nodes_.clear(); }

  // A path relative to the workspace, links followed (the last one too when `follow`); "." is the workspace.
  Result<std::string> resolve(const std::string& path, bool follow) {
    std::vector<std::string> done;
    std::vector<std::string> todo = BELLJAR_TRY(parts_of(path, path));
    int links = 0;
    while (!todo.empty()) {
      const std::string part = todo.back();
      todo.pop_back();
      if (part == "..") {
        if (done.empty()) return escapes(path);
        const FileInfo left = BELLJAR_TRY(look(text(done)));
        if (left.type != FileType::kDirectory) return wrong_type("use", path);
        done.pop_back();
        continue;
      }
      done.push_back(part);
      if (todo.empty() && !follow) break;
      const auto info = look(text(done));
      if (!info || info->type != FileType::kSymlink) continue;
      if (++links > kMostLinks) return Error(Code::kInvalidArgument, format("too many links in {}", quoted(path)));
      done.pop_back();
      std::vector<std::string> target = BELLJAR_TRY(parts_of(info->target, path));
      if (info->target.starts_with('/')) done.clear();
      todo.insert(todo.end(), target.begin(), target.end());
    }
    return text(done);
  }

  // By resolved path.
  Result<FileInfo> look(const std::string& path) {
    const auto node = nodes_.find(path);
    if (node == nodes_.end()) {
      if (hidden_by_parent(path)) return missing("stat", path);
      return inner_.stat(path);
    }
    if (node->second.kind == Node::Kind::kGone) return missing("stat", path);
    FileInfo info{.path = path, .mode = node->second.mode, .modified = node->second.modified};
    info.type = node->second.kind == Node::Kind::kDirectory ? FileType::kDirectory : FileType::kFile;
    info.size = node->second.bytes.size();
    if (node->second.source.empty()) return info;
    FileInfo moved = BELLJAR_TRY(inner_.stat(node->second.source));
    moved.path = path;
    return moved;
  }

  Result<std::string> read(const std::string& path, const ReadOptions& options) {
    const auto node = nodes_.find(path);
    if (node == nodes_.end()) {
      if (hidden_by_parent(path)) return missing("read", path);
      return inner_.read_file(path, options);
    }
    if (node->second.kind == Node::Kind::kGone) return missing("read", path);
    if (node->second.kind == Node::Kind::kDirectory) return wrong_type("read", path);
    if (!node->second.source.empty()) return inner_.read_file(node->second.source, options);
    const std::string& bytes = node->second.bytes;
    const std::size_t from = std::min<std::uint64_t>(options.offset, bytes.size());
    return bytes.substr(from, options.limit ? *options.limit : std::string::npos);
  }

  Result<void> make_parents(const std::string& path, Parents how) {
    const std::string parent = parent_of(path);
    if (parent == ".") return {};
    const auto info = look(parent);
    if (info && info->type != FileType::kDirectory) return wrong_type("make names in", parent);
    if (info) return {};
    if (how == Parents::kMustExist) return missing("make names in", parent);
    BELLJAR_CHECK(make_parents(parent, how));
    nodes_[parent] = Node{.kind = Node::Kind::kDirectory, .mode = 0755};
    return {};
  }

  Result<void> write(const std::string& path, std::string_view bytes, const WriteOptions& options) {
    if (path == ".") return Error(Code::kInvalidArgument, "cannot write \".\"").reason("it is the workspace itself");
    const auto info = look(path);
    const bool replaces = options.how == WriteMode::kAtomic;
    const bool is_file = info && info->type == FileType::kFile;
    if (info && !is_file && !(replaces && info->type == FileType::kSymlink)) return wrong_type("write", path);
    if (is_file && !replaces && (info->mode & 0222U) == 0)
      return Error(Code::kPermissionDenied, format("cannot write {}", quoted(path))).reason("its mode lets nobody write");
    BELLJAR_CHECK(check_mode("write", path, options.mode));
    BELLJAR_CHECK(make_parents(path, options.parents));
    Node node{.mode = options.mode.value_or(is_file ? info->mode : 0644)};
    if (options.how == WriteMode::kAppend && info) node.bytes = BELLJAR_TRY(read(path, {}));
    node.bytes += bytes;
    nodes_[path] = std::move(node);
    return {};
  }

  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) {
    BELLJAR_CHECK(check_mode("make directory", path, options.mode));
    const auto info = look(path);
    if (info && info->type == FileType::kDirectory && options.parents == Parents::kCreate) return {};
    if (info && info->type == FileType::kFile && options.parents == Parents::kCreate) return wrong_type("make directory", path);
    if (info || path == ".")
      return Error(Code::kAlreadyExists, format("cannot make directory {}", quoted(path))).reason("File exists");
    BELLJAR_CHECK(make_parents(path, options.parents));
    nodes_[path] = Node{.kind = Node::Kind::kDirectory, .mode = options.mode.value_or(0755)};
    return {};
  }

  Result<std::vector<FileInfo>> list(const std::string& path) {
    const FileInfo info = path == "." ? FileInfo{.type = FileType::kDirectory} : BELLJAR_TRY(look(path));
    if (info.type != FileType::kDirectory) return wrong_type("list", path);
    std::vector<FileInfo> files;
    if (!nodes_.contains(path) && !hidden_by_parent(path)) files = BELLJAR_TRY(inner_.list(path));
    std::erase_if(files, [&](const FileInfo& file) { return nodes_.contains(joined(path, file.path)); });
    for (const auto& [name, node] : nodes_) {
      if (node.kind == Node::Kind::kGone || parent_of(name) != path || name == ".") continue;
      FileInfo file = BELLJAR_TRY(look(name));
      file.path = name_of(name);
      files.push_back(std::move(file));
    }
    std::ranges::sort(files, {}, &FileInfo::path);
    return files;
  }

  Result<void> remove(const std::string& path, Depth depth) {
    const FileInfo info = BELLJAR_TRY(look(path));
    if (info.type == FileType::kDirectory && depth == Depth::kOne && !BELLJAR_TRY(list(path)).empty())
      return Error(Code::kFailedPrecondition, format("cannot remove {}", quoted(path))).reason("Directory not empty");
    take_away(path);
    return {};
  }

  Result<void> rename(const std::string& from, const std::string& to) {
    const FileInfo info = BELLJAR_TRY(look(from));
    if (from == to) return {};
    if (is_below(to, from))
      return Error(Code::kInvalidArgument, format("cannot rename {} to {}", quoted(from), quoted(to))).reason("Invalid argument");
    BELLJAR_CHECK(make_parents(to, Parents::kMustExist));
    if (const auto there = look(to)) {
      if ((there->type == FileType::kDirectory) != (info.type == FileType::kDirectory)) return wrong_type("rename over", to);
      if (there->type == FileType::kDirectory && !BELLJAR_TRY(list(to)).empty())
        return Error(Code::kFailedPrecondition, format("cannot rename {} to {}", quoted(from), quoted(to)))
            .reason("Directory not empty");
    }
    std::map<std::string, Node> moved;
    BELLJAR_CHECK(collect(from, to, info, moved));
    take_away(to);
    take_away(from);
    for (auto& [name, node] : moved) nodes_[name] = std::move(node);
    return {};
  }

  // What inner.glob and inner.grep found of it still stands as it is.
  bool is_as_inside(const std::string& path) const { return !nodes_.contains(path) && !hidden_by_parent(path); }
  // `pattern` as a caller wrote it, and the inner sandbox took it.
  std::vector<std::string> written(const std::string& asked) const {
    std::string pattern = asked;
    if (pattern.starts_with('/')) {
      if (!policy::is_within(pattern, inner_.workspace())) pattern = policy::normal(pattern);
      if (!policy::is_within(pattern, inner_.workspace())) return {};
      pattern.erase(0, inner_.workspace().size());
      pattern.erase(0, pattern.find_first_not_of('/'));
    }
    std::vector<std::string> names;
    for (const auto& [name, node] : nodes_) {
      if (node.kind != Node::Kind::kGone && policy::glob_match(pattern, name)) names.push_back(name);
    }
    return names;
  }

 private:
  static Error escapes(const std::string& path) { return Error(Code::kInvalidArgument, "path escapes workspace: " + path); }
  static std::string text(const std::vector<std::string>& parts) {
    std::string path;
    for (const std::string& part : parts) path += (path.empty() ? "" : "/") + part;
    return path.empty() ? "." : path;
  }

  // Last part first; of nothing, as of ".", none. An absolute path must be below the workspace.
  Result<std::vector<std::string>> parts_of(const std::string& path, const std::string& asked) const {
    if (path.find('\0') != std::string::npos)
      return Error(Code::kInvalidArgument, format("cannot use the path {}", quoted(path))).reason("it holds a NUL byte");
    std::string_view rest = path;
    if (rest.starts_with('/')) {
      if (!policy::is_within(rest, inner_.workspace())) return escapes(asked);
      rest.remove_prefix(inner_.workspace().size());
    }
    std::vector<std::string> parts;
    while (!rest.empty()) {
      const std::size_t slash = std::min(rest.find('/'), rest.size());
      const std::string_view part = rest.substr(0, slash);
      if (part.size() > NAME_MAX)
        return Error(Code::kInvalidArgument, format("cannot use the path {}", quoted(path.substr(0, 80) + "...")))
            .reason("File name too long");
      if (!part.empty() && part != ".") parts.emplace_back(part);
      rest.remove_prefix(std::min(slash + 1, rest.size()));
    }
    std::ranges::reverse(parts);
    return parts;
  }

  // A directory above was removed, replaced or made anew: nothing inside shows through it.
  bool hidden_by_parent(const std::string& path) const {
    for (std::string above = parent_of(path); above != "."; above = parent_of(above)) {
      if (nodes_.contains(above)) return true;
    }
    return false;
  }

  void take_away(const std::string& path) {
    std::erase_if(nodes_, [&](const auto& node) { return is_below(node.first, path); });
    nodes_[path] = Node{.kind = Node::Kind::kGone};
  }

  Result<void> collect(const std::string& from, const std::string& to, const FileInfo& info, std::map<std::string, Node>& moved) {
    if (moved.size() >= kMostMoved)
      return Error(Code::kUnimplemented, format("cannot pretend to rename {}", quoted(from)))
          .reason(format("the directory holds more than {} names", kMostMoved));
    if (info.type == FileType::kSymlink || info.type == FileType::kOther)
      return Error(Code::kUnimplemented, format("cannot pretend to rename {}", quoted(from)))
          .reason("it is, or holds, a link or a special file");
    const auto node = nodes_.find(from);
    if (info.type == FileType::kFile) {
      moved[to] = node != nodes_.end() ? node->second : Node{.source = from, .mode = info.mode};
      return {};
    }
    moved[to] = Node{.kind = Node::Kind::kDirectory, .mode = info.mode};
    for (const FileInfo& file : BELLJAR_TRY(list(from)))
      BELLJAR_CHECK(collect(joined(from, file.path), joined(to, file.path), file, moved));
    return {};
  }

  Sandbox& inner_;
  std::map<std::string, Node> nodes_;
};

ExecResult not_executed(const CancelToken& cancel) {
  ExecResult result;
  result.message = kNotExecuted;
  if (!cancel.cancelled()) return result;
  // As inside: cancelled before its start.
  result.exit_code = 128 + SIGTERM;
  result.signal = SIGTERM;
  result.reason = Reason::kCancelled;
  result.message = "cancelled by the caller";
  return result;
}

// A command that was never started, and has ended.
class PretendedProcess final : public Process {
 public:
  explicit PretendedProcess(ExecResult result) : result_(std::move(result)) {}
  int pid() const noexcept override { return 0; }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds>) override { return std::optional(result_); }
  Result<void> signal(int) override { return ended(); }
  Result<void> write_stdin(std::string_view, std::chrono::milliseconds) override { return ended(); }
  Result<void> close_stdin() override { return {}; }
  Result<void> resize(unsigned short, unsigned short) override { return ended(); }
  Result<void> detach() override { return {}; }

 private:
  ExecResult result_;
  static Error ended() { return Error(Code::kFailedPrecondition, "the command has ended").reason(kNotExecuted); }
};

class DryRun final : public SandboxDecorator {
 public:
  DryRun(SandboxPtr inside, std::function<void(const DryRunEntry&)> on_entry)
      : SandboxDecorator(std::move(inside)), on_entry_(std::move(on_entry)), files_(inner()) {}

  Result<void> stop() override {
    {
      const std::lock_guard guard(mutex_);
      files_.forget();
    }
    return inner().stop();
  }
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    BELLJAR_CHECK(check(command, options.timeout, options.allowed_domains));
    if (!options.cancel.cancelled()) tell({.kind = "exec", .subject = decorate::text_of(command)});
    return not_executed(options.cancel);
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    BELLJAR_CHECK(check(command, options.timeout, options.allowed_domains));
    if (!options.cancel.cancelled()) tell({.kind = "spawn", .subject = decorate::text_of(command)});
    return std::unique_ptr<Process>(std::make_unique<PretendedProcess>(not_executed(options.cancel)));
  }
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    const std::lock_guard guard(mutex_);
    const std::string real = BELLJAR_TRY(files_.resolve(path, true));
    return files_.read(real, options);
  }
  Result<std::vector<FileInfo>> list(const std::string& path) override {
    const std::lock_guard guard(mutex_);
    const std::string real = BELLJAR_TRY(files_.resolve(path, true));
    return files_.list(real);
  }
  Result<FileInfo> stat(const std::string& path) override {
    const std::lock_guard guard(mutex_);
    const std::string real = BELLJAR_TRY(files_.resolve(path, false));
    FileInfo info = BELLJAR_TRY(files_.look(real));
    info.path = path;
    return info;
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    return pretend({.kind = "writeFile", .subject = path, .bytes = bytes.size()}, [&]() -> Result<void> {
      if (path.ends_with('/')) return wrong_type("write", path);
      const bool follow = options.how != WriteMode::kAtomic;  // else a link is replaced
      return files_.write(BELLJAR_TRY(files_.resolve(path, follow)), bytes, options);
    });
  }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    return pretend({.kind = "makeDir", .subject = path},
                   [&]() -> Result<void> { return files_.make_dir(BELLJAR_TRY(files_.resolve(path, true)), options); });
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return pretend({.kind = "rename", .subject = from, .target = to}, [&]() -> Result<void> {
      return files_.rename(BELLJAR_TRY(named(from, "rename")), BELLJAR_TRY(named(to, "rename")));
    });
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    return pretend({.kind = "remove", .subject = path},
                   [&]() -> Result<void> { return files_.remove(BELLJAR_TRY(named(path, "remove")), options.depth); });
  }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    GlobResult result = BELLJAR_TRY(inner().glob(pattern, options));
    const std::lock_guard guard(mutex_);
    std::erase_if(result.files, [&](const FileInfo& file) { return !files_.is_as_inside(file.path); });
    for (const std::string& name : files_.written(pattern)) result.files.push_back(BELLJAR_TRY(files_.look(name)));
    std::ranges::sort(result.files, {}, &FileInfo::path);
    if (result.files.size() > options.max_results) result.files.resize(options.max_results), result.complete = false;
    return result;
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    GrepResult result = BELLJAR_TRY(inner().grep(text, options));
    const std::lock_guard guard(mutex_);
    std::erase_if(result.matches, [&](const GrepMatch& match) { return !files_.is_as_inside(match.path); });
    for (const std::string& name : files_.written(options.files)) BELLJAR_CHECK(search(name, text, options.letters, result));
    std::ranges::stable_sort(result.matches, {}, &GrepMatch::path);
    if (result.matches.size() > options.walk.max_results) result.matches.resize(options.walk.max_results), result.complete = false;
    return result;
  }
  // Refused: what is pretended changes no file.
  Result<std::unique_ptr<FileWatch>> watch(const std::string& path, const WatchOptions& options) override {
    return Sandbox::watch(path, options);
  }
  // Refused: nothing runs that could reach them.
  Result<void> set_network_rules(const NetworkRules& rules) override { return Sandbox::set_network_rules(rules); }
  // Refused as well: what is pretended is in no layer.
  Result<std::vector<txn::Change>> changes() override { return Sandbox::changes(); }
  Result<void> snapshot(const std::string& name) override { return Sandbox::snapshot(name); }
  Result<void> rollback(const std::string& snapshot) override { return Sandbox::rollback(snapshot); }

 private:
  Result<void> check(const Command& command, std::optional<std::chrono::milliseconds> timeout,
                     const std::vector<std::string>& allowed_domains) {
    BELLJAR_CHECK(policy::check_command(command));
    BELLJAR_CHECK(policy::check_timeout(timeout));
    for (const std::string& rule : allowed_domains) BELLJAR_TRY(policy::parse_domain_rule(rule));
    BELLJAR_CHECK(inner().stat("."));  // it runs
    if (command.cwd.empty()) return {};
    const std::lock_guard guard(mutex_);
    const auto real = files_.resolve(command.cwd, true);
    if (!real && real.error().what().starts_with("path escapes"))
      return Error(Code::kInvalidArgument, format("workdir escapes workspace: {}", escaped(command.cwd)));
    if (!real) return real.error();
    if (*real == ".") return {};
    const FileInfo info = BELLJAR_TRY(files_.look(*real));
    if (info.type != FileType::kDirectory) return wrong_type("use as working directory", command.cwd);
    return {};
  }

  // Of a name itself, not of what it leads to; not the workspace.
  Result<std::string> named(const std::string& path, std::string_view doing) {
    std::string name = BELLJAR_TRY(files_.resolve(path, false));
    if (name == ".")
      return Error(Code::kInvalidArgument, format("cannot {} {}", doing, quoted(path))).reason("it is the workspace itself");
    return name;
  }

  template <class Act>
  Result<void> pretend(const DryRunEntry& entry, Act act) {
    BELLJAR_CHECK(inner().stat("."));  // it runs
    {
      const std::lock_guard guard(mutex_);
      BELLJAR_CHECK(act());
    }
    tell(entry);
    return {};
  }
  void tell(const DryRunEntry& entry) const {
    if (on_entry_) on_entry_(entry);
  }

  Result<void> search(const std::string& name, const std::string& text, Case letters, GrepResult& result) {
    const FileInfo info = BELLJAR_TRY(files_.look(name));
    if (info.type != FileType::kFile) return {};
    const auto lower = [&](std::string line) {
      if (letters == Case::kIgnoreAscii)
        std::ranges::transform(line, line.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
      return line;
    };
    const std::string bytes = BELLJAR_TRY(files_.read(name, {}));
    const std::string wanted = lower(text);
    std::uint64_t number = 0;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
      ++number;
      const std::string line = bytes.substr(at, end - at);
      if (lower(line).find(wanted) != std::string::npos) result.matches.push_back({name, number, line.substr(0, 1000)});
      at = end + 1;
    }
    return {};
  }

  std::function<void(const DryRunEntry&)> on_entry_;
  std::mutex mutex_;
  Pretended files_;  // guarded by mutex_
};

}  // namespace

SandboxPtr with_dry_run(SandboxPtr inner, std::function<void(const DryRunEntry&)> on_entry) {
  return std::make_shared<DryRun>(std::move(inner), std::move(on_entry));
}

}  // namespace belljar
