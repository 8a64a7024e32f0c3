// In-memory files and canned commands, behind one mutex.
#include "belljar/mock.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/wildcard.h"
#include "belljar/command.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "policy/check_command.h"
#include "policy/paths.h"

namespace belljar {
namespace {

using std::chrono::milliseconds;

struct Node {
  FileType type = FileType::kFile;
  std::string bytes;
  unsigned mode = 0644;
};

constexpr std::size_t kLongestName = 255;  // NAME_MAX of the kernel's file systems

// `*` any bytes, `?` one.
bool fits(std::string_view pattern, std::string_view text) noexcept {
  return wildcard_match(pattern, text, [&](std::size_t at, char c, std::size_t& next) {
    next = at + 1;
    return pattern[at] == '?' || pattern[at] == c;
  });
}

std::string text_of(const Command& command) {
  const auto& argv = command.argv;
  if (argv.size() == 3 && argv[1] == "-c" && (argv[0] == "/bin/sh" || argv[0] == "sh")) return argv[2];
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + word;
  return text;
}

Error missing(std::string_view doing, const std::string& path) {
  return Error(Code::kNotFound, format("cannot {} {}", doing, quoted(path))).reason("No such file or directory");
}
Error wrong_type(std::string_view doing, const std::string& path) {
  return Error(Code::kFailedPrecondition, format("cannot {} {}", doing, quoted(path))).reason("it is of another type");
}

class Mock final : public MockSandbox {
 public:
  explicit Mock(const std::string& workspace) : workspace_(policy::normal(workspace)), id_("mock") {
    nodes_[""] = {FileType::kDirectory, {}, 0755};
  }

  std::string_view backend() const noexcept override { return "mock"; }
  const std::string& id() const noexcept override { return id_; }
  const std::string& workspace() const noexcept override { return workspace_; }
  EnforcementReport enforcement() const override {
    return {{"mode", "mock", "", Enforced::kNone, "the mock backend executes nothing and holds nothing", true}};
  }

  Result<void> start() override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter("start", ""));
    if (running_) return log_failed(Error(Code::kFailedPrecondition, "cannot start the sandbox").reason("it runs already"));
    running_ = true;
    return {};
  }
  Result<void> stop() override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter("stop", ""));
    running_ = false;
    return {};
  }
  Result<void> health() override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter("health", ""));
    if (!running_) return log_failed(Error(Code::kUnavailable, "the sandbox does not run"));
    return {};
  }
  Result<SandboxStats> stats() override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter_running("stats", ""));
    return SandboxStats{{}, {}, 0, execs_, written_};
  }

  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    const std::string text = text_of(command);
    std::optional<Answer> answer;
    milliseconds delay{0};
    {
      const std::lock_guard lock(mutex_);
      BELLJAR_CHECK(enter_running("exec", text));
      if (const auto fine = policy::check_command(command); !fine) return log_failed(fine.error());
      if (const auto fine = policy::check_timeout(options.timeout); !fine) return log_failed(fine.error());
      if (!command.cwd.empty()) {
        const auto cwd = relative(command.cwd);
        if (!cwd) return log_failed(Error(Code::kInvalidArgument, format("workdir escapes workspace: {}", escaped(command.cwd))));
        if (!nodes_.contains(*cwd)) return log_failed(missing("use as working directory", command.cwd));
      }
      ++execs_;
      answer = find_answer(text);
      delay = find_delay(text);
    }
    if (options.cancel.cancelled()) return ended(Reason::kCancelled, 143, "cancelled by the caller");
    const milliseconds timeout = std::min(options.timeout.value_or(kShortTask), milliseconds(std::chrono::minutes(5)));
    if (delay > timeout) return ended(Reason::kTimeout, 124, format("command timeout after {}ms", timeout.count()));
    if (!answer) {
      ExecResult result = ended(Reason::kExited, 127, "");
      result.err.bytes = format("mock: no output is set for {}\n", quoted(text));
      result.err.total = result.err.bytes.size();
      return result;
    }
    ExecResult result = (*answer)(command, options);
    result.duration = delay;
    cap(result.out, options);
    cap(result.err, options);
    if (options.on_stdout && !result.out.bytes.empty()) options.on_stdout(result.out.bytes);
    if (options.on_stderr && !result.err.bytes.empty()) options.on_stderr(result.err.bytes);
    return result;
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions&) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter_running("spawn", text_of(command)));
    return log_failed(
        Error(Code::kUnimplemented, "cannot spawn a process").reason("the mock backend has none").next("use exec, or local"));
  }

  Result<void> set_network_rules(const NetworkRules& rules) override {
    const std::lock_guard lock(mutex_);
    std::string hosts;
    for (const std::string& host : rules.allowed_domains) hosts += (hosts.empty() ? "" : " ") + host;
    return enter_running("set_network_rules", hosts);
  }

  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    const std::lock_guard lock(mutex_);
    const Node* node = BELLJAR_TRY(find("read_file", "read", path));
    if (node->type != FileType::kFile) return log_failed(wrong_type("read", path));
    const std::size_t from = static_cast<std::size_t>(std::min<std::uint64_t>(options.offset, node->bytes.size()));
    return node->bytes.substr(from, static_cast<std::size_t>(options.limit.value_or(node->bytes.size())));
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter_running("write_file", path));
    if (options.mode && *options.mode > 0777)
      return log_failed(Error(Code::kInvalidArgument, "cannot set setuid, setgid or sticky"));
    const std::string key = BELLJAR_TRY(key_of(path));
    if (key.empty() || path.ends_with('/')) return log_failed(wrong_type("write", path));
    BELLJAR_CHECK(make_parents(path, parent_of(key), options.parents));
    Node& node = nodes_[key];
    if (node.type != FileType::kFile) return log_failed(wrong_type("write", path));
    if (options.how == WriteMode::kAppend) node.bytes.append(bytes);
    else node.bytes = bytes;
    if (options.mode) node.mode = *options.mode;
    written_ += bytes.size();
    return {};
  }
  Result<std::vector<FileInfo>> list(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const Node* node = BELLJAR_TRY(find("list", "list", path));
    if (node->type != FileType::kDirectory) return log_failed(wrong_type("list", path));
    const std::string key = *relative(path);
    std::vector<FileInfo> entries;
    for (const auto& [name, entry] : nodes_) {
      if (!name.empty() && parent_of(name) == key) entries.push_back(info(name.substr(key.empty() ? 0 : key.size() + 1), entry));
    }
    return entries;
  }
  Result<FileInfo> stat(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const Node* node = BELLJAR_TRY(find("stat", "look at", path));
    return info(path, *node);
  }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter_running("make_dir", path));
    const std::string key = BELLJAR_TRY(key_of(path));
    if (options.parents == Parents::kMustExist && nodes_.contains(key))
      return log_failed(Error(Code::kAlreadyExists, format("cannot make directory {}", quoted(path))));
    BELLJAR_CHECK(make_parents(path, parent_of(key), options.parents));
    return make_parents(path, key, Parents::kCreate);
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(find("rename", "rename", from));
    const std::string source = *relative(from);
    const std::string target = BELLJAR_TRY(key_of(to));
    if (source.empty() || target.empty()) return log_failed(Error(Code::kInvalidArgument, "cannot rename the workspace"));
    BELLJAR_CHECK(make_parents(to, parent_of(target), Parents::kMustExist));
    if (policy::is_within("/" + target, "/" + source)) {
      if (target == source) return {};
      return log_failed(Error(Code::kInvalidArgument, format("cannot rename {} into itself", quoted(from))));
    }
    erase_below(target);
    for (auto at = nodes_.lower_bound(source); at != nodes_.end() && policy::is_within("/" + at->first, "/" + source);) {
      nodes_[target + at->first.substr(source.size())] = std::move(at->second);
      at = nodes_.erase(at);
    }
    return {};
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    const std::lock_guard lock(mutex_);
    const Node* node = BELLJAR_TRY(find("remove", "remove", path));
    const std::string key = *relative(path);
    if (key.empty()) return log_failed(Error(Code::kInvalidArgument, format("cannot use {} here", quoted(path))));
    const bool full = node->type == FileType::kDirectory && std::ranges::any_of(nodes_, [&](const auto& entry) {
                        return parent_of(entry.first) == key && entry.first != key;
                      });
    if (full && options.depth == Depth::kOne) return log_failed(wrong_type("remove", path));
    erase_below(key);
    return {};
  }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter_running("glob", pattern));
    if (const auto fine = policy::check_timeout(options.timeout); !fine) return log_failed(fine.error());
    GlobResult result;
    result.complete = !options.cancel.cancelled();
    if (!result.complete) return result;
    for (const auto& [name, node] : nodes_) {
      if (name.empty() || !policy::glob_match(pattern, name)) continue;
      if (result.files.size() == options.max_results) result.complete = false;
      else result.files.push_back(info(name, node));
    }
    return result;
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    const std::lock_guard lock(mutex_);
    BELLJAR_CHECK(enter_running("grep", text));
    if (text.empty()) return log_failed(Error(Code::kInvalidArgument, "cannot search for nothing"));
    const auto fold = [&](std::string line) {
      if (options.letters == Case::kIgnoreAscii)
        for (char& c : line) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      return line;
    };
    if (const auto fine = policy::check_timeout(options.walk.timeout); !fine) return log_failed(fine.error());
    GrepResult result;
    result.complete = !options.walk.cancel.cancelled();
    if (!result.complete) return result;
    for (const auto& [name, node] : nodes_) {
      if (node.type != FileType::kFile || !policy::glob_match(options.files, name)) continue;
      std::uint64_t number = 1;
      for (std::size_t start = 0; start < node.bytes.size(); ++number) {
        const std::size_t end = std::min(node.bytes.find('\n', start), node.bytes.size());
        const std::string line = node.bytes.substr(start, end - start);
        if (fold(line).find(fold(text)) != std::string::npos) {
          if (result.matches.size() == options.walk.max_results) result.complete = false;
          else result.matches.push_back({name, number, line.substr(0, 1000)});
        }
        start = end + 1;
      }
    }
    return result;
  }

  void set_output(std::string command, std::string out, int exit_code, std::string err) override {
    const std::lock_guard lock(mutex_);
    ExecResult result;
    result.exit_code = exit_code;
    result.out = {out, out.size(), 0};
    result.err = {err, err.size(), 0};
    exact_[std::move(command)] = std::move(result);
  }
  void set_answer(std::string pattern, Answer answer) override {
    const std::lock_guard lock(mutex_);
    answers_.emplace_back(std::move(pattern), std::move(answer));
  }
  void set_delay(std::string command, milliseconds delay) override {
    const std::lock_guard lock(mutex_);
    delays_[std::move(command)] = delay;
  }
  void fail_next(std::string method, Error error, int times) override {
    const std::lock_guard lock(mutex_);
    if (times > 0) failures_.push_back({std::move(method), std::move(error), times});
  }
  std::vector<MockCall> calls() const override {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  struct Failure {
    std::string method;
    Error error;
    int times = 0;
  };

  static std::string parent_of(const std::string& key) {
    const std::size_t slash = key.rfind('/');
    return slash == std::string::npos ? "" : key.substr(0, slash);
  }
  static FileInfo info(const std::string& path, const Node& node) {
    FileInfo info;
    info.path = path;
    info.type = node.type;
    info.size = node.bytes.size();
    info.mode = node.mode;
    return info;
  }
  static ExecResult ended(Reason reason, int code, std::string message) {
    ExecResult result;
    result.reason = reason;
    result.exit_code = code;
    result.message = std::move(message);
    return result;
  }
  static void cap(Output& output, const ExecOptions& options) {
    const std::uint64_t most = options.output_bytes.value_or(200'000);
    output.total = output.bytes.size();
    if (output.total > most) output.bytes.resize(static_cast<std::size_t>(most));
    output.omitted = output.total - output.bytes.size();
  }

  Error log_failed(Error error) {
    calls_.back().failed = true;
    return error;
  }
  // Logs the call, and lets an injected failure have its way.
  Result<void> enter(const std::string& method, const std::string& subject) {
    calls_.push_back({method, subject, false});
    for (auto failure = failures_.begin(); failure != failures_.end(); ++failure) {
      if (failure->method != "*" && failure->method != method) continue;
      Error error = failure->error;
      if (--failure->times <= 0) failures_.erase(failure);
      return log_failed(std::move(error));
    }
    return {};
  }
  Result<void> enter_running(const std::string& method, const std::string& subject) {
    BELLJAR_CHECK(enter(method, subject));
    if (!running_)
      return log_failed(
          Error(Code::kFailedPrecondition, "the sandbox does not run").reason("it was not started, or it was stopped"));
    return {};
  }

  // The key of a path: relative to the workspace, normal, "" for the workspace itself.
  Result<std::string> relative(const std::string& path) const {
    if (path.find('\0') != std::string::npos)
      return Error(Code::kInvalidArgument, format("cannot use path {}", quoted(path))).reason("it holds a NUL byte");
    if (path.size() > policy::kMaxPath)
      return Error(Code::kInvalidArgument, format("cannot use path {}", quoted(path.substr(0, 80) + "...")))
          .reason("it is too long");
    std::string full = path.starts_with('/') ? path : workspace_ + "/" + path;
    // As text: a ".." too many must not stop at the root.
    int depth = 0;
    for (std::size_t at = 0; at < path.size();) {
      const std::size_t end = std::min(path.find('/', at), path.size());
      const std::string_view name = std::string_view(path).substr(at, end - at);
      if (name.size() > kLongestName)
        return Error(Code::kInvalidArgument, format("cannot use path {}", quoted(path.substr(0, 80) + "...")))
            .reason("File name too long");
      depth += name == ".." ? -1 : name.empty() || name == "." ? 0 : 1;
      if (depth < 0 && !path.starts_with('/')) return escapes(path);
      at = end + 1;
    }
    full = policy::normal(full);
    if (!policy::is_within(full, workspace_)) return escapes(path);
    return full == workspace_ ? "" : full.substr(workspace_.size() + 1);
  }
  static Error escapes(const std::string& path) {
    return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(path)));
  }
  Result<std::string> key_of(const std::string& path) {
    auto key = relative(path);
    if (!key) return log_failed(std::move(key).error());
    return key;
  }
  Result<const Node*> find(const std::string& method, std::string_view doing, const std::string& path) {
    BELLJAR_CHECK(enter_running(method, path));
    const auto node = nodes_.find(BELLJAR_TRY(key_of(path)));
    if (node == nodes_.end()) return log_failed(missing(doing, path));
    return &node->second;
  }
  Result<void> make_parents(const std::string& path, const std::string& key, Parents parents) {
    for (std::size_t end = 0; !key.empty() && end != std::string::npos;) {
      end = key.find('/', end + 1);
      const auto [node, made] = nodes_.try_emplace(key.substr(0, end), Node{FileType::kDirectory, {}, 0755});
      if (made && parents == Parents::kMustExist) {
        nodes_.erase(node);
        return log_failed(missing("write", path));
      }
      if (node->second.type != FileType::kDirectory) return log_failed(wrong_type("write", path));
    }
    return {};
  }
  void erase_below(const std::string& key) {
    std::erase_if(nodes_,
                  [&](const auto& entry) { return policy::is_within("/" + entry.first, "/" + key) && !entry.first.empty(); });
  }

  std::optional<Answer> find_answer(const std::string& text) const {
    const ExecResult* best = nullptr;
    std::size_t length = 0;
    for (const auto& [command, result] : exact_) {
      const bool whole = text == command;
      if ((whole || text.starts_with(command + " ")) && command.size() >= length) best = &result, length = command.size();
    }
    if (best != nullptr) return [result = *best](const Command&, const ExecOptions&) { return result; };
    for (auto at = answers_.rbegin(); at != answers_.rend(); ++at) {
      if (fits(at->first, text)) return at->second;
    }
    return {};
  }
  milliseconds find_delay(const std::string& text) const {
    const auto found = delays_.find(text);
    return found == delays_.end() ? milliseconds(0) : found->second;
  }

  std::string workspace_, id_;
  mutable std::mutex mutex_;
  // all guarded by mutex_
  bool running_ = false;
  std::map<std::string, Node> nodes_;
  std::map<std::string, ExecResult> exact_;
  std::vector<std::pair<std::string, Answer>> answers_;
  std::map<std::string, milliseconds> delays_;
  std::vector<Failure> failures_;
  std::vector<MockCall> calls_;
  std::uint64_t execs_ = 0, written_ = 0;
};

}  // namespace

std::shared_ptr<MockSandbox> MockSandbox::create(const std::string& workspace) { return std::make_shared<Mock>(workspace); }

}  // namespace belljar
