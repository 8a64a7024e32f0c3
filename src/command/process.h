// The handle of a spawned command, whichever backend runs it, with a thread that reads it to its end.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "belljar/process.h"
#include "belljar/result.h"
#include "command/running_command.h"

namespace belljar::command {

class Followed;

// Of one sandbox: its commands that were detached, which it must outlive, until they end.
struct DetachedCommands {
  std::mutex mutex;
  std::vector<std::shared_ptr<Followed>> commands;  // guarded by mutex
};
// Waits for the end of all that are in there.
void clear(DetachedCommands& home);

// Follows `run`, whose start it waits for. `home`: where it is kept once it is detached; null: what is detached needs nobody here.
// Errors: kResourceExhausted, no thread; then it is ended, for nobody would.
Result<std::unique_ptr<Process>> follow(const std::shared_ptr<RunningCommand>& run, const std::shared_ptr<DetachedCommands>& home);
// Of a command that was never sent, and has ended so; `why`, for who asks more of it.
std::unique_ptr<Process> make_ended_process(ExecResult result, std::string why);
// Of one that its caller had cancelled before.
std::unique_ptr<Process> make_cancelled_process();

}  // namespace belljar::command
