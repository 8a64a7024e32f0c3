// Record and replay: every call and its answer as a line of JSON.
//
// A recording is one line of JSON for each call, with the call as its key. A replay answers by that
// key and not by position: calls of several threads may come in another order the next time. Equal
// calls are answered in the order in which they were recorded, each once, so `stat` before and
// after a write gives both answers. A call that was never recorded is an error: a replay guesses
// nothing.
//
// The line is written after the call, when its answer is known. A recording that cannot be written
// fails the call, because its replay would lack it. Whether the sandbox ran when the recording
// began is read from the first call, `stop` aside, that succeeded: where that is not `start`, it
// must have run.
#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <fstream>
#include <ios>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
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
#include "decorate/record_json.h"

namespace belljar {
namespace {

using decorate::Json;

Json call_of(const Command& command, const std::string& input, std::string_view method) {
  Json env = Json::object();
  for (const auto& [name, value] : command.env) env[decorate::key_of(name)] = decorate::from_bytes(value);
  Json argv = Json::array();
  for (const std::string& word : command.argv) argv.push_back(decorate::from_bytes(word));
  return {{"method", method},
          {"argv", argv},
          {"cwd", decorate::from_bytes(command.cwd)},
          {"env", env},
          {"stdin", decorate::from_bytes(input)}};
}
Json call_of(std::string_view method, const std::string& path, Json more = Json::object()) {
  more["method"] = method;
  more["path"] = decorate::from_bytes(path);
  return more;
}
Json call_of(const std::string& path, const ReadOptions& options) {
  return call_of("read_file", path, {{"offset", options.offset}, {"limit", options.limit ? Json(*options.limit) : Json()}});
}
Json call_of(const std::string& path, std::string_view bytes, const WriteOptions& options) {
  return call_of("write_file", path,
                 {{"bytes", decorate::from_bytes(bytes)},
                  {"how", static_cast<int>(options.how)},
                  {"mode", options.mode ? Json(*options.mode) : Json()},
                  {"parents", static_cast<int>(options.parents)}});
}
Json call_of(const std::string& path, const MakeDirOptions& options) {
  return call_of("make_dir", path,
                 {{"mode", options.mode ? Json(*options.mode) : Json()}, {"parents", static_cast<int>(options.parents)}});
}
Json call_of(const std::string& path, const RemoveOptions& options) {
  return call_of("remove", path, {{"tree", options.depth == Depth::kTree}});
}
Json call_of(const std::string& pattern, const WalkOptions& options) {
  return call_of("glob", pattern, {{"max_results", options.max_results}});
}
Json call_of(const std::string& text, const GrepOptions& options) {
  return call_of("grep", text,
                 {{"files", decorate::from_bytes(options.files)},
                  {"ignore_case", options.letters == Case::kIgnoreAscii},
                  {"max_results", options.walk.max_results}});
}

class Writer {
 public:
  explicit Writer(UniqueFd file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  Result<void> write(const Json& call, const Json& answer) {
    const std::string line = Json{{"call", call}, {"answer", answer}}.dump() + "\n";
    const std::lock_guard guard(mutex_);
    if (write_all(file_.get(), line)) return {};
    return Error(Code::kResourceExhausted, format("cannot write to the recording {}", belljar::quoted(name_))).sys(errno, "write");
  }

 private:
  UniqueFd file_;
  std::string name_;
  std::mutex mutex_;  // lines stay whole
};

class RecordedProcess final : public decorate::ForwardedProcess {
 public:
  RecordedProcess(std::unique_ptr<Process> inner, std::shared_ptr<Writer> writer, Json call)
      : ForwardedProcess(std::move(inner)), writer_(std::move(writer)), call_(std::move(call)) {}
  ~RecordedProcess() override {
    if (told_ || !is_ours()) return;
    end();
    ExecResult unknown;
    unknown.reason = Reason::kCancelled;
    std::ignore = writer_->write(call_, decorate::answer_of(Result<ExecResult>(unknown)));
  }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience) override {
    try {
      auto result = inner().wait(patience);
      if (!result || !*result || told_.exchange(true)) return result;
      BELLJAR_CHECK(writer_->write(call_, decorate::answer_of(Result<ExecResult>(**result))));
      return result;
    } catch (...) {
      if (!told_.exchange(true))
        std::ignore = writer_->write(call_, decorate::answer_of(Result<ExecResult>(decorate::callback_threw())));
      throw;
    }
  }

 private:
  std::shared_ptr<Writer> writer_;
  Json call_;
  std::atomic<bool> told_{false};
};

class Recorded final : public SandboxDecorator {
 public:
  Recorded(SandboxPtr inner, std::shared_ptr<Writer> writer) : SandboxDecorator(std::move(inner)), writer_(std::move(writer)) {}
  Result<void> start(const CallOptions& options) override {
    return record({{"method", "start"}}, [&] { return inner().start(options); });
  }
  Result<void> stop(const CallOptions& options) override {
    return record({{"method", "stop"}}, [&] { return inner().stop(options); });
  }
  Result<void> health(const CallOptions& options) override {
    return record({{"method", "health"}}, [&] { return inner().health(options); });
  }
  Result<SandboxStats> stats(const CallOptions& options) override {
    return record({{"method", "stats"}}, [&] { return inner().stats(options); });
  }
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    return record(call_of(command, options.stdin_bytes, "exec"), [&] { return inner().exec(command, options); });
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    Json call = call_of(command, "", "spawn");
    auto process = inner().spawn(command, options);
    if (!process) {
      BELLJAR_CHECK(writer_->write(call, decorate::answer_of(Result<ExecResult>(process.error()))));
      return process;
    }
    return std::unique_ptr<Process>(std::make_unique<RecordedProcess>(*std::move(process), writer_, std::move(call)));
  }
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    return record(call_of(path, options), [&] { return inner().read_file(path, options); });
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    return record(call_of(path, bytes, options), [&] { return inner().write_file(path, bytes, options); });
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override {
    return record(call_of("list", path), [&] { return inner().list(path, options); });
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override {
    return record(call_of("stat", path), [&] { return inner().stat(path, options); });
  }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    return record(call_of(path, options), [&] { return inner().make_dir(path, options); });
  }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override {
    return record(call_of("rename", from, {{"to", decorate::from_bytes(to)}}), [&] { return inner().rename(from, to, options); });
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    return record(call_of(path, options), [&] { return inner().remove(path, options); });
  }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    return record(call_of(pattern, options), [&] { return inner().glob(pattern, options); });
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    return record(call_of(text, options), [&] { return inner().grep(text, options); });
  }
  // Changes come when they come, and a recording has no clock.
  Result<std::unique_ptr<FileWatch>> watch(const std::string& path, const WatchOptions&) override {
    return Error(Code::kUnimplemented, format("cannot watch {}", belljar::quoted(path)))
        .reason("a recording does not hold when something changed")
        .next("watch the sandbox inside of it, or list the files again");
  }
  // Refused as well: a replay reaches nobody.
  Result<void> set_network_rules(const NetworkRules&) override {
    return Error(Code::kUnimplemented, "cannot change the hosts that may be reached")
        .reason("a recording does not hold such a change: its replay reaches nobody")
        .next("change them before with_recording, or in the sandbox inside of it");
  }
  Result<std::vector<txn::Change>> changes() override {
    return record({{"method", "changes"}}, [&] { return inner().changes(); });
  }
  Result<void> snapshot(const std::string& name) override {
    return record(call_of("snapshot", name), [&] { return inner().snapshot(name); });
  }
  Result<void> rollback(const std::string& snapshot) override {
    return record(call_of("rollback", snapshot), [&] { return inner().rollback(snapshot); });
  }

 private:
  template <class Call>
  auto record(const Json& call, Call act) -> decltype(act()) {
    try {
      auto result = act();
      BELLJAR_CHECK(writer_->write(call, decorate::answer_of(result)));
      return result;
    } catch (...) {
      std::ignore = writer_->write(call, decorate::answer_of(decltype(act())(decorate::callback_threw())));
      throw;
    }
  }

  std::shared_ptr<Writer> writer_;
};

class ReplayedProcess final : public Process {
 public:
  explicit ReplayedProcess(ExecResult result) : result_(std::move(result)) {}
  int pid() const noexcept override { return 0; }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds>) override {
    return std::optional<ExecResult>(result_);
  }
  // What was sent to it had its effect when it was recorded.
  Result<void> signal(int) override { return {}; }
  Result<void> terminate() override { return {}; }
  Result<void> kill() override { return {}; }
  Result<void> write_stdin(std::string_view, std::chrono::milliseconds) override { return {}; }
  Result<void> close_stdin() override { return {}; }
  Result<void> resize(unsigned short, unsigned short) override { return {}; }
  Result<void> detach() override { return {}; }

 private:
  ExecResult result_;
};

// What the recorded sandbox was called.
struct Header {
  std::string backend, id, workspace;
};

class Replay final : public Sandbox {
 public:
  using Answers = std::map<std::string, std::deque<Json>>;
  // `runs`: what was recorded ran already when the recording began.
  Replay(Header header, Answers answers, bool runs) : header_(std::move(header)), answers_(std::move(answers)), running_(runs) {}
  std::string_view backend() const noexcept override { return header_.backend; }
  const std::string& id() const noexcept override { return header_.id; }
  const std::string& workspace() const noexcept override { return header_.workspace; }
  // Nothing runs, so nothing holds.
  EnforcementReport enforcement() const override { return {}; }
  Result<void> start(const CallOptions&) override {
    const std::lock_guard guard(mutex_);
    const Json call = {{"method", "start"}};
    if (running_ && !has_answer(call))
      return Error(Code::kFailedPrecondition, "cannot start the sandbox").reason("it runs already");
    BELLJAR_CHECK(take<void>(call));
    running_ = true;
    return {};
  }
  Result<void> stop(const CallOptions&) override {
    const std::lock_guard guard(mutex_);
    const Json call = {{"method", "stop"}};
    if (has_answer(call)) BELLJAR_CHECK(take<void>(call));
    running_ = false;
    return {};
  }
  Result<void> health(const CallOptions&) override { return answer<void>({{"method", "health"}}); }
  Result<SandboxStats> stats(const CallOptions&) override { return answer<SandboxStats>({{"method", "stats"}}); }
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    auto result = answer<ExecResult>(call_of(command, options.stdin_bytes, "exec"));
    if (result) tell(*result, options.on_stdout, options.on_stderr);
    return result;
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    ExecResult result = BELLJAR_TRY(answer<ExecResult>(call_of(command, "", "spawn")));
    tell(result, options.on_stdout, options.on_stderr);
    return std::unique_ptr<Process>(std::make_unique<ReplayedProcess>(std::move(result)));
  }
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    return answer<std::string>(call_of(path, options));
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    return answer<void>(call_of(path, bytes, options));
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions&) override {
    return answer<std::vector<FileInfo>>(call_of("list", path));
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions&) override { return answer<FileInfo>(call_of("stat", path)); }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    return answer<void>(call_of(path, options));
  }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions&) override {
    return answer<void>(call_of("rename", from, {{"to", decorate::from_bytes(to)}}));
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    return answer<void>(call_of(path, options));
  }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    return answer<GlobResult>(call_of(pattern, options));
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    return answer<GrepResult>(call_of(text, options));
  }
  Result<std::vector<txn::Change>> changes() override { return answer<std::vector<txn::Change>>({{"method", "changes"}}); }
  Result<void> snapshot(const std::string& name) override { return answer<void>(call_of("snapshot", name)); }
  Result<void> rollback(const std::string& snapshot) override { return answer<void>(call_of("rollback", snapshot)); }

 private:
  static void tell(const ExecResult& result, const OutputCallback& on_out, const OutputCallback& on_err) {
    if (on_out && !result.out.bytes.empty()) on_out(result.out.bytes);
    if (on_err && !result.err.bytes.empty()) on_err(result.err.bytes);
  }

  template <class T>
  Result<T> answer(const Json& call) {
    const std::lock_guard guard(mutex_);
    // What was asked of one that did not run was answered so when it was recorded.
    if (!running_ && !next_is_error(call))
      return Error(call.value("method", "") == "health" ? Code::kUnavailable : Code::kFailedPrecondition,
                   "the sandbox does not run")
          .reason("it was not started, or it was stopped")
          .next("start() it");
    return take<T>(call);
  }

  // The next three are called under the mutex.
  bool has_answer(const Json& call) const {
    const auto known = answers_.find(call.dump());
    return known != answers_.end() && !known->second.empty();
  }
  bool next_is_error(const Json& call) const {
    return has_answer(call) && answers_.find(call.dump())->second.front().contains("error");
  }
  template <class T>
  Result<T> take(const Json& call) {
    const auto known = answers_.find(call.dump());
    if (known == answers_.end() || known->second.empty()) {
      return Error(Code::kFailedPrecondition, format("the recording has no answer to this {}", call.value("method", "")))
          .reason(known == answers_.end() ? "it was never asked so while it was recorded" : "it was not asked so often")
          .next(format("the call: {}", escaped(call.dump().substr(0, 300))));
    }
    const Json found = std::move(known->second.front());
    known->second.pop_front();
    return decorate::answer_from<T>(found);
  }

  Header header_;
  std::mutex mutex_;
  Answers answers_;  // guarded by mutex_
  bool running_;     // guarded by mutex_
};

constexpr int kVersion = 2;

std::optional<Header> header_from(const Json& about) {
  try {
    if (about.at("version").get<int>() != kVersion) return {};
    return Header{about.at("backend").get<std::string>(), about.at("id").get<std::string>(),
                  decorate::to_bytes(about.at("workspace"))};
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace

Result<SandboxPtr> with_recording(SandboxPtr inner, const std::string& file) {
  UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND, 0600));
  if (!made.valid())
    return Error(errno == EEXIST ? Code::kAlreadyExists : Code::kUnavailable,
                 format("cannot make the recording {}", belljar::quoted(file)))
        .sys(errno, "open");
  auto writer = std::make_shared<Writer>(std::move(made), file);
  BELLJAR_CHECK(writer->write({{"method", "recording"}}, {{"version", kVersion},
                                                          {"backend", std::string(inner->backend())},
                                                          {"id", inner->id()},
                                                          {"workspace", decorate::from_bytes(inner->workspace())}}));
  return SandboxPtr(std::make_shared<Recorded>(std::move(inner), std::move(writer)));
}

Result<SandboxPtr> make_replay(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Error(Code::kNotFound, format("cannot read the recording {}", belljar::quoted(file))).sys(errno, "open");
  const auto damaged = [&](std::string why) {
    return Error(Code::kDataLoss, format("cannot read the recording {}", belljar::quoted(file))).reason(std::move(why));
  };
  Replay::Answers answers;
  std::optional<Header> header;
  std::optional<bool> ran_already;  // unset: nothing has told yet
  std::string line;
  for (std::uint64_t number = 1; std::getline(stream, line); ++number) {
    const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool whole = record.is_object() && record.contains("call") && record.contains("answer") && record["answer"].is_object();
    if (whole && number == 1) header = header_from(record["answer"]);
    if (!whole || !header) return damaged(format("line {} is damaged, or of another version", number));
    if (number > 1) answers[record["call"].dump()].push_back(record["answer"]);
    const std::string method = number > 1 && record["call"].is_object() ? record["call"].value("method", "") : "";
    if (!ran_already && !method.empty() && method != "stop" && !record["answer"].contains("error")) ran_already = method != "start";
  }
  if (!header) return damaged("it is empty, or no file");
  return SandboxPtr(std::make_shared<Replay>(*std::move(header), std::move(answers), ran_already.value_or(true)));
}

}  // namespace belljar
