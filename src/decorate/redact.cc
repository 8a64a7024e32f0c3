// Secrets out of the output.
#include <mutex>

#include "belljar/decorators.h"
#include "decorate/call.h"

namespace belljar {
namespace {

using Secrets = std::shared_ptr<const Redactor>;

void clean(Output& output, const Redactor& redactor, const Secrets& secrets) {
  if (output.omitted == 0) {
    output.bytes = redactor(output.bytes);
    return;
  }
  // Cut, perhaps in the middle of a secret: an end that could be the beginning of one goes.
  Redactor::Stream stream(secrets);
  std::string kept = stream.feed(output.bytes);
  const std::string held = stream.finish();
  output.bytes = std::move(kept);
  if (!held.empty()) output.bytes += "[redacted:cut]";
}

void clean(ExecResult& result, const Secrets& secrets) {
  clean(result.out, *secrets, secrets);
  clean(result.err, *secrets, secrets);
  result.message = (*secrets)(result.message);
  for (Violation& violation : result.violations) violation.target = (*secrets)(violation.target);
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
  void finish() {
    const std::lock_guard guard(mutex_);
    if (to_) give(stream_.finish());
  }

 private:
  void give(const std::string& text) const {
    if (!text.empty()) to_(text);
  }
  OutputCallback to_;
  std::mutex mutex_;
  Redactor::Stream stream_;  // guarded by mutex_
};

struct Callbacks {
  explicit Callbacks(const OutputCallback& on_out, const OutputCallback& on_err, const Secrets& secrets)
      : out(std::make_shared<Callback>(on_out, secrets)), err(std::make_shared<Callback>(on_err, secrets)) {}
  void finish() const {
    out->finish();
    err->finish();
  }
  std::shared_ptr<Callback> out, err;
};

class RedactedProcess final : public decorate::ForwardedProcess {
 public:
  RedactedProcess(std::unique_ptr<Process> inner, Secrets secrets, Callbacks callbacks)
      : ForwardedProcess(std::move(inner)), secrets_(std::move(secrets)), callbacks_(std::move(callbacks)) {}
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
    auto result = inner().grep(text, options);
    if (!result) return result;
    for (GrepMatch& match : result->matches) match.text = (*secrets_)(match.text);
    return result;
  }

 private:
  Secrets secrets_;
};

}  // namespace

SandboxPtr with_redaction(SandboxPtr inner, std::shared_ptr<const Redactor> redactor) {
  return std::make_shared<Redacted>(std::move(inner), std::move(redactor));
}

}  // namespace belljar
