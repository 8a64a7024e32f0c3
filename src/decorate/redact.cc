// Secrets out of the output.
//
// A secret may come in pieces: the stream of a callback is cut anywhere. So the redactor is a
// stream that holds back an end which could be the beginning of a secret, until more comes or the
// command ends. The result of exec is whole and needs that only where the output was cut
// (clean_cut): there the rest will never come, and the beginning of a secret must not stay.
//
// A match of grep is one line, and a secret may span several. So the file is read (its first 16
// MiB) and redacted as a whole, and the lines come from that text. Matches for which there was no
// time left are dropped, and the result says that it is not complete.
//
// The last handle may be destroyed within a callback of the same command. Giving out what was held
// back would then call the function that is running, so runs_here() compares thread ids and gives
// out nothing.
#include "belljar/redact.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "belljar/command.h"
#include "belljar/decorators.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "decorate/call.h"

namespace belljar {
namespace {

using Secrets = std::shared_ptr<const Redactor>;

constexpr std::size_t kLongestMatch = 1000;       // GrepMatch::text: what has that length may be cut
constexpr std::uint64_t kMostRead = 16ULL << 20;  // of a file in which something was found

// Cut, perhaps in the middle of a secret: an end that could be the beginning of one goes.
std::string clean_cut(std::string_view text, const Secrets& secrets) {
  Redactor::Stream stream(secrets);
  std::string kept = stream.feed(text);
  if (!stream.finish().empty()) kept += "[redacted:cut]";
  return kept;
}

void clean(Output& output, const Secrets& secrets) {
  output.bytes = output.omitted == 0 ? (*secrets)(output.bytes) : clean_cut(output.bytes, secrets);
}

// The lines of a file without its secrets.
std::vector<std::string> clean_lines(std::string_view bytes, const Redactor& redactor) {
  if (bytes.size() == kMostRead) bytes = bytes.substr(0, bytes.rfind('\n') + 1);  // its last line is cut
  const std::string text = redactor.by_line(bytes);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

void clean(ExecResult& result, const Secrets& secrets) {
  clean(result.out, secrets);
  clean(result.err, secrets);
  const auto redact = [&](auto&... texts) { ((texts = (*secrets)(texts)), ...); };
  redact(result.message);
  for (Violation& violation : result.violations)
    redact(violation.program, violation.target, violation.rule, violation.origin.layer, violation.origin.file, violation.allowed);
  for (EgressRecord& record : result.egress)
    redact(record.program, record.method, record.host, record.address, record.reason, record.rule);
  for (EnforcementClause& clause : result.enforcement) redact(clause.asked, clause.detail);
  for (TriedBackend& backend : result.tried) redact(backend.why);
}

// A callback that gets the redacted stream; finish() gives out what was held back.
class Callback {
 public:
  Callback(OutputCallback to, const Secrets& secrets) : to_(std::move(to)), stream_(secrets) {}
  OutputCallback function(const std::shared_ptr<Callback>& self) const {
    if (!to_) return {};
    return [self](std::string_view bytes) {
      const std::lock_guard guard(self->mutex_);
      self->give(self->stream_.feed(bytes));
    };
  }
  bool runs_here() const { return giving_.load() == std::this_thread::get_id(); }
  void finish() {
    const std::lock_guard guard(mutex_);
    if (to_) give(stream_.finish());
  }

 private:
  void give(const std::string& text) {
    if (text.empty()) return;
    struct Giving {
      explicit Giving(std::atomic<std::thread::id>& who) : who_(who) { who_ = std::this_thread::get_id(); }
      ~Giving() { who_ = std::thread::id(); }
      Giving(const Giving&) = delete;
      Giving& operator=(const Giving&) = delete;
      std::atomic<std::thread::id>& who_;
    };
    const Giving giving(giving_);
    to_(text);
  }
  OutputCallback to_;
  std::atomic<std::thread::id> giving_;
  std::mutex mutex_;
  Redactor::Stream stream_;  // guarded by mutex_
};

struct Callbacks {
  explicit Callbacks(const OutputCallback& on_out, const OutputCallback& on_err, const Secrets& secrets)
      : out(std::make_shared<Callback>(on_out, secrets)), err(std::make_shared<Callback>(on_err, secrets)) {}
  // From inside of one of them, where the last handle may go, nothing is given out: it is not called while it runs, and what the
  // other stream holds back may be the beginning of a secret whose rest is still to come.
  void finish() const {
    if (out->runs_here() || err->runs_here()) return;
    out->finish();
    err->finish();
  }
  std::shared_ptr<Callback> out, err;
};

class RedactedProcess final : public decorate::ForwardedProcess {
 public:
  RedactedProcess(std::unique_ptr<Process> inner, Secrets secrets, Callbacks callbacks)
      : ForwardedProcess(std::move(inner)), secrets_(std::move(secrets)), callbacks_(std::move(callbacks)) {}
  // What was held back of its last output is given out, as wait() does.
  ~RedactedProcess() override {
    end();
    try {
      if (!detached()) callbacks_.finish();
    } catch (...) {  // a callback that throws must not end the program from a destructor
    }
  }
  Result<std::optional<ExecResult>> wait(std::optional<std::chrono::milliseconds> patience) override {
    auto result = inner().wait(patience);
    if (result && *result) {
      callbacks_.finish();
      clean(**result, secrets_);
    }
    return result;
  }

 private:
  Secrets secrets_;
  Callbacks callbacks_;
};

class Redacted final : public SandboxDecorator {
 public:
  Redacted(SandboxPtr inner, Secrets secrets) : SandboxDecorator(std::move(inner)), secrets_(std::move(secrets)) {}
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    const Callbacks callbacks(options.on_stdout, options.on_stderr, secrets_);
    ExecOptions inside = options;
    inside.on_stdout = callbacks.out->function(callbacks.out);
    inside.on_stderr = callbacks.err->function(callbacks.err);
    auto result = inner().exec(command, inside);
    callbacks.finish();
    if (result) clean(*result, secrets_);
    return result;
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    Callbacks callbacks(options.on_stdout, options.on_stderr, secrets_);
    SpawnOptions inside = options;
    inside.on_stdout = callbacks.out->function(callbacks.out);
    inside.on_stderr = callbacks.err->function(callbacks.err);
    auto process = BELLJAR_TRY(inner().spawn(command, inside));
    return std::unique_ptr<Process>(std::make_unique<RedactedProcess>(std::move(process), secrets_, std::move(callbacks)));
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    const CallOptions in_time = CallOptions::within(options.walk.timeout, options.walk.cancel);
    auto result = inner().grep(text, options);
    if (!result) return result;
    std::size_t clean = 0;
    std::string path;
    std::vector<std::string> lines;
    for (GrepMatch& match : result->matches) {
      if (match.path != path) {
        path = match.path;
        const auto bytes = inner().read_file(path, {.limit = kMostRead, .call = in_time});
        if (!bytes && !in_time.check("")) break;
        lines = bytes ? clean_lines(*bytes, *secrets_) : std::vector<std::string>();
      }
      const bool cut = match.text.size() >= kLongestMatch;
      if (match.line <= lines.size()) match.text = lines[match.line - 1].substr(0, kLongestMatch);
      else match.text = cut ? clean_cut(match.text, secrets_) : (*secrets_)(match.text);
      ++clean;
    }
    // What was not read in time could show more than it should.
    if (clean < result->matches.size()) result->matches.resize(clean), result->complete = false;
    return result;
  }

 private:
  Secrets secrets_;
};

}  // namespace

SandboxPtr with_redaction(SandboxPtr inner, std::shared_ptr<const Redactor> redactor) {
  if (redactor == nullptr) redactor = std::make_shared<const Redactor>();
  return std::make_shared<Redacted>(std::move(inner), std::move(redactor));
}

}  // namespace belljar
