// Write quota and rate limit.
//
// The write quota is taken before the write by compare-and-exchange and given back when the write
// fails: with a check before and an addition after, two writes at once could exceed it together.
//
// The rate limit is a token bucket whose count may become negative. A caller that has to wait takes
// its token at once and so reserves a turn in the future; the next one sees the lower count and
// gets the turn after it. So nobody has to be woken in order, and the wait needs no condition
// variable: it is a poll of the cancel token up to that time. A turn further away than the patience
// is refused and takes nothing.
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/format.h"
#include "belljar/decorators.h"

namespace belljar {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Quota final : public SandboxDecorator {
 public:
  Quota(SandboxPtr inner, Bytes quota) : SandboxDecorator(std::move(inner)), quota_(quota.count) {}

  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    // Taken before the write, so that writes at the same time cannot exceed it together.
    std::uint64_t used = used_.load();
    do {
      if (bytes.size() > quota_ - used)
        return Error(Code::kResourceExhausted, format("cannot write {}", quoted(path)))
            .reason(format("the session's write quota of {} is used up: {} written, {} more asked for", to_string(Bytes{quota_}),
                           used, bytes.size()));
    } while (!used_.compare_exchange_weak(used, used + bytes.size()));
    auto result = inner().write_file(path, bytes, options);
    if (!result) used_ -= bytes.size();
    return result;
  }

 private:
  const std::uint64_t quota_;
  std::atomic<std::uint64_t> used_{0};
};

class RateLimited final : public SandboxDecorator {
 public:
  RateLimited(SandboxPtr inner, Rate rate)
      : SandboxDecorator(std::move(inner)), rate_(rate), tokens_(std::max(rate.burst, 1.0)), at_(Clock::now()) {}

  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    BELLJAR_CHECK(wait_turn({.cancel = options.cancel}));
    return inner().exec(command, options);
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    BELLJAR_CHECK(wait_turn({.cancel = options.cancel}));
    return inner().spawn(command, options);
  }
  Result<std::string> read_file(const std::string& path, const ReadOptions& options) override {
    BELLJAR_CHECK(wait_turn(options.call));
    return inner().read_file(path, options);
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    BELLJAR_CHECK(wait_turn(options.call));
    return inner().write_file(path, bytes, options);
  }
  Result<std::vector<FileInfo>> list(const std::string& path, const CallOptions& options) override {
    BELLJAR_CHECK(wait_turn(options));
    return inner().list(path, options);
  }
  Result<FileInfo> stat(const std::string& path, const CallOptions& options) override {
    BELLJAR_CHECK(wait_turn(options));
    return inner().stat(path, options);
  }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    BELLJAR_CHECK(wait_turn(options.call));
    return inner().make_dir(path, options);
  }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override {
    BELLJAR_CHECK(wait_turn(options));
    return inner().rename(from, to, options);
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    BELLJAR_CHECK(wait_turn(options.call));
    return inner().remove(path, options);
  }
  Result<GlobResult> glob(const std::string& pattern, const WalkOptions& options) override {
    BELLJAR_CHECK(wait_turn({.cancel = options.cancel}));
    return inner().glob(pattern, options);
  }
  Result<GrepResult> grep(const std::string& text, const GrepOptions& options) override {
    BELLJAR_CHECK(wait_turn({.cancel = options.walk.cancel}));
    return inner().grep(text, options);
  }
  Result<std::unique_ptr<FileWatch>> watch(const std::string& path, const WatchOptions& options) override {
    BELLJAR_CHECK(wait_turn({.cancel = options.cancel}));
    return inner().watch(path, options);
  }
  Result<std::vector<txn::Change>> changes() override {
    BELLJAR_CHECK(wait_turn());
    return inner().changes();
  }
  Result<void> set_network_rules(const NetworkRules& rules) override {
    BELLJAR_CHECK(wait_turn());
    return inner().set_network_rules(rules);
  }
  Result<void> snapshot(const std::string& name) override {
    BELLJAR_CHECK(wait_turn());
    return inner().snapshot(name);
  }
  Result<void> rollback(const std::string& snapshot) override {
    BELLJAR_CHECK(wait_turn());
    return inner().rollback(snapshot);
  }

 private:
  // A turn is taken even when it lies ahead, so callers that wait come one after another.
  Result<void> wait_turn(const CallOptions& options = {}) {
    if (!options.check("")) return {};  // the call itself says so, and takes no turn
    milliseconds wait{0};
    {
      const std::lock_guard guard(mutex_);
      const auto now = Clock::now();
      tokens_ += std::chrono::duration<double>(now - at_).count() * rate_.per_second;
      tokens_ = std::min(tokens_, rate_.burst);
      at_ = now;
      if (tokens_ < 1 && rate_.per_second == 0)
        return Error(Code::kResourceExhausted, "too many calls to this sandbox")
            .reason(format("at most {} in all", rate_.burst))
            .next("no turn will come: make another sandbox, or a limit with a rate");
      if (tokens_ < 1) {
        const double seconds = (1 - tokens_) / rate_.per_second;
        wait = milliseconds(static_cast<milliseconds::rep>(std::min(seconds, 1e9) * 1000) + 1);
      }
      if (wait > rate_.patience)
        return Error(Code::kResourceExhausted, "too many calls to this sandbox")
            .reason(format("at most {} a second, {} at once", rate_.per_second, rate_.burst))
            .next(format("try again in {}", to_string(wait)));
      tokens_ -= 1;
    }
    if (wait.count() == 0) return {};
    // A deadline and nothing else to wait for, but the cancellation.
    pollfd cancelled{options.cancel.fd(), POLLIN, 0};
    const auto turn = Clock::now() + wait;
    const auto until = options.deadline ? std::min<Clock::time_point>(turn, *options.deadline) : turn;
    for (auto left = wait; left.count() > 0;) {
      left = std::chrono::ceil<milliseconds>(until - Clock::now());
      if (left.count() <= 0) break;
      if (::poll(&cancelled, 1, static_cast<int>(std::min<milliseconds::rep>(left.count(), 1'000'000))) > 0) break;
    }
    return {};  // over: the call itself says so
  }

  const Rate rate_;
  std::mutex mutex_;
  double tokens_;         // guarded by mutex_; negative: turns that were given out ahead
  Clock::time_point at_;  // guarded by mutex_
};

}  // namespace

SandboxPtr with_write_quota(SandboxPtr inner, Bytes quota) { return std::make_shared<Quota>(std::move(inner), quota); }

SandboxPtr with_rate_limit(SandboxPtr inner, Rate rate) {
  // What is no number fails the comparison, and is taken for the least.
  if (!(rate.per_second > 0)) rate.per_second = 0;
  if (!(rate.burst >= 1)) rate.burst = 1;
  rate.patience = std::max(rate.patience, milliseconds(0));
  return std::make_shared<RateLimited>(std::move(inner), rate);
}

}  // namespace belljar
