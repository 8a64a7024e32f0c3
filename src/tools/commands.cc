// Commands in the background, and those whose output can still be asked for.
//
// The list keeps every command that runs and the last few that have ended; an id that is older is unknown. Whether one
// still runs is asked of its process each time (result_of with no patience) and not noted by a thread of its own.
//
// Ending all of them cancels every command before the first is waited for: each may take its grace period, and those
// periods should pass together.
#include "tools/commands.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"

namespace belljar::tools {

Result<std::optional<ExecResult>> result_of(TrackedCommand& command, std::chrono::milliseconds patience) {
  {
    const std::lock_guard lock(command.mutex);
    if (command.ended || command.process == nullptr) return command.ended;
  }
  auto ended = BELLJAR_TRY(command.process->wait(patience));
  const std::lock_guard lock(command.mutex);
  if (ended) command.ended = *std::move(ended);
  return command.ended;
}

std::string Commands::next_id() {
  const std::lock_guard lock(mutex_);
  return format("c{}", ++serial_);
}

std::size_t Commands::running() const {
  std::size_t count = 0;
  for (const auto& command : commands_) {
    const auto ended = result_of(*command, std::chrono::milliseconds(0));
    count += ended && !*ended ? 1 : 0;
  }
  return count;
}

Result<void> Commands::check_room() {
  const std::lock_guard lock(mutex_);
  if (running() < max_running_) return {};
  return Error(Code::kResourceExhausted, "cannot start another command in the background")
      .reason(format("{} run already", max_running_))
      .next("end one with bash_kill");
}

void Commands::keep(std::shared_ptr<TrackedCommand> command) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(std::move(command));
  drop_old();
}

void Commands::drop_old() {
  std::size_t ended = commands_.size() - running();
  std::erase_if(commands_, [&](const auto& command) {
    if (ended <= kMostEnded) return false;
    const auto result = result_of(*command, std::chrono::milliseconds(0));
    const bool drop = !result || *result;
    ended -= drop ? 1 : 0;
    return drop;
  });
}

Result<std::shared_ptr<TrackedCommand>> Commands::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  std::string known;
  for (const auto& command : commands_) {
    if (command->id == id) return command;
    known += (known.empty() ? "" : ", ") + command->id;
  }
  return Error(Code::kNotFound, format("there is no command {}", belljar::quoted(id.substr(0, 80))))
      .reason(known.empty() ? "none runs in the background, and none said more than was shown" : "there are " + known)
      .next("use the id that bash gave");
}

void Commands::end_all() noexcept {
  std::deque<std::shared_ptr<TrackedCommand>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands = std::exchange(commands_, {});
  }
  for (const auto& command : commands) command->cancel.cancel();  // all of them, before the first is waited for
}

}  // namespace belljar::tools
