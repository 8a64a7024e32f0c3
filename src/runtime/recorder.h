// Collects what a command uses while it runs, for `belljar learn`. Bounded: a command that touches more paths than kMaxPaths is
// known by LearnInput::complete. Safe from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "broker/observation.h"
#include "policy/learn.h"

namespace belljar::runtime {

class Recorder {
 public:
  static constexpr std::size_t kMaxPaths = 100'000;
  static constexpr std::size_t kMaxPeers = 200;

  void see(const broker::Observation& seen);
  // The processes below `init_pid` are counted when one is seen for the first time: when their number grows.
  void attach(int init_pid) noexcept { init_pid_ = init_pid; }

  // All observations so far, sorted by path; asked for when the command has ended (Touched::lost). `result`, `program` are the
  // caller's to fill in.
  policy::LearnInput input() const;

 private:
  std::atomic<int> init_pid_ = -1;
  mutable std::mutex mutex_;
  std::map<std::string, policy::Touched> touched_;  // guarded by mutex_, as all below
  std::set<std::string> reached_;
  std::set<int> tids_;
  bool complete_ = true;
  std::uint64_t tasks_ = 0;
};

}  // namespace belljar::runtime
