// What every command in a cloud has in common: how it ends, and what its loss means.
//
// The first signal may have nobody to go to, as before the start is known (can_be_told). E2bCommand sends it
// when the start comes. From then on the whole tree is signalled, by the variable that it carries (marked.h).
//
// A command whose output cannot be seen any more is ended, and what came before is kept. To go on would mean
// output with a hole in it. Before its start was told nothing is known to have begun, and the loss is an error
// and no result. The same holds for stdin that did not arrive: the command would take the gap for the end of
// its input.
//
// When the command ends while TERM's grace runs, KILL still goes to its tree: the leader went, and others of
// the tree may have stayed.
#include "remote/remote_command.h"

#include <signal.h>

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "command/ending.h"
#include "runtime/run.h"

namespace belljar::remote {

using command::EndAction;
using command::EndMode;

void RemoteCommand::advance_end(EndAction act) {
  const bool first = !std::exchange(was_told_, true);
  if (act == EndAction::kGiveUp) return give_up();
  if (first && (commands().ending() || !can_be_told())) return;
  end_tree(act == EndAction::kTerm ? SIGTERM : SIGKILL);
}

void RemoteCommand::lose(std::string why) {
  if (over()) return;
  gone_ = true;
  lost_ = std::move(why);
  if (!commands().ending()) end_tree(SIGKILL);
  if (!started_ && !ending_.ending()) refused_ = not_started(Error(Code::kUnavailable, kNotStarted).reason(lost_));
}

Error RemoteCommand::not_started(const Error& why) {
  return Error(why.code(), kNotStarted)
      .reason(why.reason().empty() ? why.what() : why.reason())
      .next("try again, or look whether the sandbox lives");
}

void RemoteCommand::lose_input(const std::string& why) {
  {
    const std::lock_guard lock(input_mutex_);
    if (input_lost_.empty()) input_lost_ = why.empty() ? "the service gave no reason" : why;
  }
  control_wake_.ring();
}

void RemoteCommand::handle_control() {
  control_wake_.take();
  std::string no_input;
  {
    const std::lock_guard lock(input_mutex_);
    no_input = input_lost_;
  }
  // To the command it would be an end of its input that nobody meant, or none at all.
  if (!no_input.empty()) return lose("its stdin broke off: " + no_input);
  if (detached()) {
    left_ = true;
    return let_go();
  }
  if (ends_with_sandbox()) return stop(command::ended_with_sandbox(), EndMode::kAtOnce);
  command::RunningCommand::handle_control();
}

Result<ExecResult> RemoteCommand::result() {
  const auto over_at = Steady::now();
  // Its leader went at once, others may not have.
  if (ended_ && ending_.clock().in_grace() && !commands().ending()) end_tree(SIGKILL);
  close();
  if (refused_ && !not_run_) return *refused_;
  if (refused_) return runtime::failed_start(*refused_);
  ExecResult result;
  result.duration = std::chrono::duration_cast<std::chrono::microseconds>(over_at - ending_.clock().begun());
  if (!ended_) {
    ending_.tell_lost(result, "the command was lost and ended: " + lost_);
  } else {
    if (ends_with_sandbox()) ending_.stop(command::ended_with_sandbox(), EndMode::kAtOnce, over_at);
    ending_.tell_exit(result, *ended_);
  }
  streams_.finish(result);
  return result;
}

}  // namespace belljar::remote
