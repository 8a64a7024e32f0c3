// What is mounted in the sandbox, by path: whether a directory can be on a /proc or on a read-only mount, without a system call.
//
// Nobody inside can mount or unmount (BrokerOptions::one_root), so the table is read once and kept. What the host mounts meanwhile
// may come in by propagation: the kernel tells of it (poll on mountinfo, proc_pid_mountinfo(5)), which is asked at most every
// kAsked, and everything is read again after kKept, because the host may rename the directories that mounts stand in. So an answer
// may be as old as kKept where the host changes its tree. Nothing that a rule decides depends on it: it says only that the long way
// (file by file, with what the kernel says of each) is not needed. Safe from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "broker/caller.h"

namespace belljar::broker {

class MountTable {
 public:
  static constexpr auto kAsked = std::chrono::milliseconds(50);
  static constexpr auto kKept = std::chrono::seconds(1);

  struct Facts {
    bool known = false;
    bool proc = false;
    bool writable = false;
  };
  // Of the mount that holds `path`: absolute, normal, without links on the way. Reads the table of `caller` when it is due.
  Facts at(const Caller& caller, std::string_view path);

  struct Entry {
    std::string point;
    bool proc = false;
    bool writable = false;
  };
  // From the text of mountinfo: what is seen, not what another mount hides; sorted by point. Pure.
  static std::vector<Entry> parse(std::string_view mountinfo);

 private:
  using Clock = std::chrono::steady_clock;
  using Entries = std::vector<Entry>;
  std::shared_ptr<const Entries> entries(const Caller& caller);
  void read(const Caller& caller);

  std::mutex mutex_;  // guards what follows
  UniqueFd mountinfo_;
  std::shared_ptr<const Entries> entries_;
  Clock::time_point asked_{}, read_{};
};

}  // namespace belljar::broker
