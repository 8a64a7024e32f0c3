// The kernel has no call that ends a process and all its descendants. A process group or a session does not do:
// setsid(2) leaves both. So the tree is read from /proc by parent pids, which is a race against processes that
// fork, exit and get new parents.
//
// Each rule below answers one of these races:
//
// - A pid may be given to another process. A pidfd is opened first (pidfd_open(2)), then the parent is read. If
//   the parent is still in the tree, the pidfd holds the process that was meant, and the signal goes through
//   the pidfd.
// - A command that ends hands its orphans on to pid 1, where they cannot be told from others. The command is a
//   subreaper (PR_SET_CHILD_SUBREAPER, prctl(2)), so it gets SIGSTOP first and SIGKILL last: a stopped process
//   neither forks nor exits, and its orphans stay below it.
// - A process may fork between the look and the signal. The search is repeated until a round finds nothing
//   alive.
// - A tree may fork faster than that. The rounds are bounded, and the caller ends the sandbox when they do not
//   suffice.
//
// Orphans covers the time between SIGTERM, which may end the command itself, and SIGKILL. What came to pid 1 in
// that time and is no command of its own is ended as well. A single look that finds nobody proves nothing,
// since a process that forks and exits again and again is missed by some looks, so several in a row are asked
// for.
#include "session/tree_kill.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/format.h"
#include "kernel/process_tree.h"
#include "kernel/small_file.h"

namespace belljar::session {
namespace {

constexpr int kRounds = 400;
constexpr int kQuietLooks = 5;
constexpr std::chrono::microseconds kBetweenLooks{200};

// Its pid in the innermost namespace: the last number of the line NSpid, proc_pid_status(5).
int pid_inside(int pid) {
  const auto text = kernel::read_small_file(AT_FDCWD, format("/proc/{}/status", pid).c_str());
  if (!text) return -1;
  const std::size_t at = text->find("\nNSpid:");
  if (at == std::string::npos) return -1;
  const std::string line = text->substr(at + 1, text->find('\n', at + 1) - at - 1);
  return std::atoi(line.c_str() + line.find_last_of("\t ") + 1);  // NOLINT(cert-err34-c): the kernel wrote it
}

struct State {
  int parent = 0;
  bool dead = true;
};

State state_of(int pid) {
  const auto text = kernel::read_small_file(AT_FDCWD, format("/proc/{}/stat", pid).c_str());
  if (!text) return {};
  const auto stat = kernel::parse_process_stat(*text);
  const std::size_t name_end = text->rfind(')');
  if (!stat || name_end == std::string::npos || name_end + 2 >= text->size()) return {};
  const char state = (*text)[name_end + 2];
  // A zombie whose first thread alone has ended lives.
  return {stat->parent, state == 'X' || (state == 'Z' && stat->threads <= 1)};
}

UniqueFd open_process(int pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

void send(const UniqueFd& handle, int number) noexcept {
  if (handle.valid()) ::syscall(SYS_pidfd_send_signal, handle.get(), number, nullptr, 0);
}

// Kills what is below `top`; how many of them still lived. A pid is opened first and looked at afterwards: when its parent is still
// one of the tree it is the process we mean, and if it is replaced after that the handle is not.
int kill_below(int top) {
  const std::vector<int> tree = kernel::list_tree(top);
  int alive = 0;
  for (const int pid : tree) {
    if (pid == top) continue;
    const UniqueFd handle = open_process(pid);
    const State state = state_of(pid);
    if (state.dead || std::ranges::find(tree, state.parent) == tree.end()) continue;
    ++alive;
    send(handle, SIGKILL);
  }
  return alive;
}

struct Children {
  std::vector<int> alive;
  bool lost = false;  // one ended between name and state: what it forked last is not among them
};

Children children_of(int init_pid) {
  Children children;
  for (const int pid : kernel::list_tree(init_pid)) {
    if (pid == init_pid) continue;
    const State state = state_of(pid);
    if (state.dead) children.lost = children.lost || state.parent == 0 || state.parent == init_pid;
    else if (state.parent == init_pid) children.alive.push_back(pid);
  }
  return children;
}

}  // namespace

CommandTree CommandTree::find(int init_pid, int inside) {
  CommandTree found;
  for (const int pid : kernel::list_tree(init_pid)) {
    if (pid == init_pid || pid_inside(pid) != inside) continue;
    for (const int member : kernel::list_tree(pid)) {
      UniqueFd handle = open_process(member);
      if (handle.valid() && !state_of(member).dead) found.processes_.push_back({member, std::move(handle)});
    }
    break;
  }
  return found;
}

void CommandTree::signal(int number) const noexcept {
  for (const Process& process : processes_) send(process.handle, number);
}

bool CommandTree::end() const noexcept {
  if (processes_.empty()) return true;
  const Process& main = processes_.front();
  send(main.handle, SIGSTOP);  // it neither forks nor ends while its descendants are found through it
  for (std::size_t i = 1; i < processes_.size(); ++i) send(processes_[i].handle, SIGKILL);
  bool done = false;
  for (int round = 0; round < kRounds && !done; ++round) {
    int alive = 0;
    for (const Process& process : processes_) {
      // The handle says whether the number still means this process.
      if (::syscall(SYS_pidfd_send_signal, process.handle.get(), 0, nullptr, 0) == 0) alive += kill_below(process.pid);
    }
    done = alive == 0;
  }
  send(main.handle, SIGKILL);
  return done;
}

Orphans::Orphans(int init_pid) : init_pid_(init_pid), before_(children_of(init_pid).alive) {}

// One that forks and exits over and over is seen by some looks and not by others: nobody has to be seen a few times in a row.
bool Orphans::end(const std::function<std::optional<std::vector<int>>()>& commands) const {
  if (init_pid_ == 0) return true;
  int nobody = 0, last = -kRounds;
  for (int round = 0; round < kRounds; ++round) {
    const Children children = children_of(init_pid_);
    std::vector<std::pair<int, UniqueFd>> found;
    for (const int pid : children.alive) {
      if (std::ranges::find(before_, pid) == before_.end()) found.emplace_back(pid, open_process(pid));
    }
    if (!found.empty()) {
      const auto running = commands();
      if (!running) return false;
      for (const auto& [pid, handle] : found) {
        if (end_orphan(pid, handle, *running)) last = round;
      }
    }
    nobody = last == round || children.lost ? 0 : nobody + 1;
    if (nobody == kQuietLooks) return true;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return last < kRounds / 2;  // where others come and go all the time some are missed by every look
}

// Whether there was something to end.
bool Orphans::end_orphan(int pid, const UniqueFd& handle, const std::vector<int>& running) const {
  const int inside = pid_inside(pid);
  if (std::ranges::find(running, inside) != running.end()) return false;
  if (state_of(pid).parent == init_pid_) {
    send(handle, SIGSTOP);  // it neither forks nor ends while what is below it is found through it
    kill_below(pid);
    send(handle, SIGKILL);
  }
  return true;
}

}  // namespace belljar::session
