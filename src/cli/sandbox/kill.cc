// belljar kill ID... | --all
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/sandbox/ask.h"
#include "cli/sandbox/commands.h"
#include "keeper/directory.h"
#include "keeper/wire.h"

namespace belljar::cli {
namespace {

using keeper::Directory;
using keeper::Entry;
using keeper::State;

constexpr std::chrono::milliseconds kKillPatience{5000};

struct KillFlags {
  std::vector<std::string> ids;
  bool all = false;
};

// It ends the sandbox, then itself: its connection closes when nothing of it is left.
Result<void> end_by_word(const Entry& entry) {
  keeper::Channel channel(BELLJAR_TRY(keeper::connect_to(entry)));
  BELLJAR_CHECK(channel.send(request("kill")));
  (void)BELLJAR_TRY(next_answer(channel, kKillPatience));
  while (true) {
    const auto more = channel.receive(kKillPatience);
    if (!more || !*more) return {};
  }
}

// For one that is stopped or hangs: everything inside dies with it.
Result<void> end_by_force(const Directory& directory, const Entry& entry) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, entry.keeper, 0)));
  // Still the keeper, now that the descriptor holds on to it?
  const auto again = directory.find(entry.about.id);
  if (process.valid() && again && again->keeper == entry.keeper) {
    ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
    pollfd dead{process.get(), POLLIN, 0};
    ::poll(&dead, 1, static_cast<int>(kKillPatience.count()));
  }
  directory.retire(entry.about.id, keeper::kKilled, false);
  const auto left = directory.find(entry.about.id);
  if (left && left->state == State::kRunning)
    return Error(Code::kUnavailable, format("cannot end the keeper of {}", entry.about.id))
        .next(format("kill -9 {}", entry.keeper));
  return {};
}

Result<void> end_one(const Directory& directory, const Entry& entry) {
  if (entry.state == State::kGone) directory.retire(entry.about.id, keeper::kKilled, false);
  if (entry.state != State::kRunning) return {};
  if (end_by_word(entry)) return {};
  return end_by_force(directory, entry);
}

int kill_them(const KillFlags& flags) {
  if (flags.all != flags.ids.empty())
    return print_error(Error(Code::kInvalidArgument, flags.all ? "either names or --all" : "which sandbox is to end?")
                           .next("belljar kill ID..., or belljar kill --all"));
  const auto directory = Directory::open();
  if (!directory) return print_error(directory.error());
  std::vector<Entry> targets;
  int exit_code = 0;
  if (flags.all) {
    auto entries = directory->list();
    if (!entries) return print_error(entries.error());
    targets = *std::move(entries);
  }
  for (const std::string& id : flags.ids) {
    auto entry = directory->find(id);
    if (!entry) exit_code = print_error(entry.error());
    else targets.push_back(*std::move(entry));
  }
  for (const Entry& entry : targets) {
    if (entry.state == State::kEnded && !flags.all)
      print_note(format("{} has ended already: {}", entry.about.id, escaped(entry.about.ended)));
    if (const auto ended = end_one(*directory, entry); !ended) exit_code = print_error(ended.error());
  }
  return exit_code;
}

}  // namespace

void add_kill(const OptionParser& command, const KeeperCommandWords& /*words*/, int& exit_code) {
  const auto flags = std::make_shared<KillFlags>();
  command.add_option("ID", flags->ids, "Ids or names");
  command.add_flag("--all", flags->all, "All of yours");
  command.callback([flags, &exit_code] { exit_code = kill_them(*flags); });
}

}  // namespace belljar::cli
