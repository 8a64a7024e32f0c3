// Results of commands declared pure.
//
// Results may be answered from here only while the world of the command is the same. There is no
// list of what a command reads, so any call that may write clears all. `writers_` counts such calls
// under way: nothing is answered or kept while one runs. `generation_` grows with the begin and the
// end of each: a pure command that overlapped with a writer began in another generation than it
// ended in, and is not kept. A spawned process may write at any time, so after one nothing is
// cached until stop().
//
// Kept are plain results only: exited by itself, nothing cut, nothing refused. A refusal has to be
// told each time, with its own time and number. The age counts from the command's begin, because
// what it read may have changed while it ran. A hit still asks the inner sandbox for stat("."), so
// that a sandbox that has ended answers as one.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/patience.h"
#include "belljar/command.h"
#include "belljar/decorators.h"
#include "belljar/exec_result.h"
#include "belljar/files.h"
#include "belljar/process.h"
#include "belljar/result.h"
#include "belljar/sandbox.h"
#include "policy/check_command.h"

namespace belljar {
namespace {

using Clock = std::chrono::steady_clock;

struct Key {
  Command command;
  std::string input;
  std::optional<std::chrono::milliseconds> timeout;
  std::optional<std::uint64_t> output_bytes;
  bool operator==(const Key&) const = default;
};

struct Entry {
  Key key;
  ExecResult result;
  Clock::time_point made;
};

class Cached final : public SandboxDecorator {
 public:
  Cached(SandboxPtr inner, CacheOptions options) : SandboxDecorator(std::move(inner)), options_(std::move(options)) {}

  Result<void> start(const CallOptions& options) override {
    return writing([&] { return inner().start(options); });
  }
  Result<void> stop(const CallOptions& options) override {
    auto result = writing([&] { return inner().stop(options); });
    const std::lock_guard guard(mutex_);
    spawned_ = false;
    return result;
  }
  using Sandbox::exec;
  Result<ExecResult> exec(const Command& command, const ExecOptions& options) override {
    BELLJAR_CHECK(policy::check_command(command));  // `pure` is not asked about no command at all
    if (!options_.pure || !options_.pure(command)) return writing([&] { return inner().exec(command, options); });
    // While a host is open for it, others see another world.
    if (!options.allowed_domains.empty()) return writing([&] { return inner().exec(command, options); });
    // A call that was cancelled already is not answered from here: it says that it was.
    if (options.cancel.cancelled()) return inner().exec(command, options);
    Key key{command, options.stdin_bytes, options.timeout, options.output_bytes};
    std::uint64_t generation = 0;
    auto known = find(key, generation);
    // One that has ended answers for itself.
    const CallOptions in_time = CallOptions::within(options.timeout.value_or(kForever), options.cancel);
    if (known && inner().stat(".", in_time)) {
      if (options.on_stdout && !known->out.bytes.empty()) options.on_stdout(known->out.bytes);
      if (options.on_stderr && !known->err.bytes.empty()) options.on_stderr(known->err.bytes);
      return *std::move(known);
    }
    const Clock::time_point begun = Clock::now();  // what it read may have changed while it ran
    auto result = inner().exec(command, options);
    if (result) keep(std::move(key), *result, generation, begun);
    return result;
  }
  Result<std::unique_ptr<Process>> spawn(const Command& command, const SpawnOptions& options) override {
    {
      const std::lock_guard guard(mutex_);
      spawned_ = true;
    }
    return writing([&] { return inner().spawn(command, options); });
  }
  Result<void> write_file(const std::string& path, std::string_view bytes, const WriteOptions& options) override {
    return writing([&] { return inner().write_file(path, bytes, options); });
  }
  Result<void> make_dir(const std::string& path, const MakeDirOptions& options) override {
    return writing([&] { return inner().make_dir(path, options); });
  }
  Result<void> rename(const std::string& from, const std::string& to, const CallOptions& options) override {
    return writing([&] { return inner().rename(from, to, options); });
  }
  Result<void> remove(const std::string& path, const RemoveOptions& options) override {
    return writing([&] { return inner().remove(path, options); });
  }
  Result<void> set_network_rules(const NetworkRules& rules) override {
    return writing([&] { return inner().set_network_rules(rules); });
  }
  Result<void> rollback(const std::string& snapshot) override {
    return writing([&] { return inner().rollback(snapshot); });
  }

 private:
  // Nothing is answered while something writes, nothing from before it afterwards.
  template <class Call>
  auto writing(Call call) -> decltype(call()) {
    struct Mark {
      explicit Mark(Cached& cache) : cache_(cache) { cache_.note(+1); }
      ~Mark() { cache_.note(-1); }
      Mark(const Mark&) = delete;
      Mark& operator=(const Mark&) = delete;
      Cached& cache_;
    };
    const Mark mark(*this);
    return call();
  }
  void note(int change) {
    const std::lock_guard guard(mutex_);
    writers_ += change;
    ++generation_;
    entries_.clear();
    bytes_ = 0;
  }

  std::optional<ExecResult> find(const Key& key, std::uint64_t& generation) {
    const std::lock_guard guard(mutex_);
    generation = generation_;
    if (writers_ > 0 || spawned_) return {};
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->key != key) continue;
      if (Clock::now() - entry->made >= bounded(options_.time_to_live)) return drop(entry), std::nullopt;
      return entry->result;
    }
    return {};
  }

  void keep(Key key, const ExecResult& result, std::uint64_t generation, Clock::time_point begun) {
    const bool plain = result.reason == Reason::kExited && result.out.omitted == 0 && result.err.omitted == 0 &&
                       result.violations.empty() && result.violations_dropped == 0 && result.violations_hidden == 0;
    const std::size_t size = result.out.bytes.size() + result.err.bytes.size();
    const std::lock_guard guard(mutex_);
    if (!plain || writers_ > 0 || spawned_ || generation != generation_ || size > options_.max_bytes.count) return;
    std::erase_if(entries_, [&](const Entry& entry) {
      const bool same = entry.key == key;
      if (same) bytes_ -= size_of(entry);
      return same;
    });
    bytes_ += size;
    entries_.push_back({std::move(key), result, begun});
    while (entries_.size() > options_.max_entries || bytes_ > options_.max_bytes.count) drop(entries_.begin());
  }

  static std::size_t size_of(const Entry& entry) { return entry.result.out.bytes.size() + entry.result.err.bytes.size(); }
  void drop(std::list<Entry>::iterator entry) {
    bytes_ -= size_of(*entry);
    entries_.erase(entry);
  }

  const CacheOptions options_;
  std::mutex mutex_;
  std::list<Entry> entries_;      // guarded by mutex_; oldest first
  std::uint64_t bytes_ = 0;       // guarded by mutex_
  std::uint64_t generation_ = 0;  // guarded by mutex_; of what was written
  int writers_ = 0;               // guarded by mutex_
  bool spawned_ = false;          // guarded by mutex_
};

}  // namespace

SandboxPtr with_result_cache(SandboxPtr inner, CacheOptions options) {
  return std::make_shared<Cached>(std::move(inner), std::move(options));
}

}  // namespace belljar
