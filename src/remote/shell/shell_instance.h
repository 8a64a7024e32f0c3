// A started sandbox as its commands and file calls use it: the machine, a private directory on it, the mark of its commands, their
// end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "belljar/cancel.h"
#include "belljar/result.h"
#include "remote/commands.h"
#include "remote/shell/machine.h"
#include "remote/shell/turns.h"

namespace belljar::remote::shell {

// Calls to one sandbox at once, beside those that end commands: what its processors are not choked by.
inline constexpr std::size_t kMostCalls = 32;

class ShellInstance final : public Commands, public std::enable_shared_from_this<ShellInstance> {
 public:
  // `patience`: for one answer of the service, beyond what was asked to take long.
  ShellInstance(std::shared_ptr<const Machine> machine, std::string workspace, std::string nonce,
                std::chrono::milliseconds patience)
      : Commands(std::move(workspace), std::move(nonce), "image"), machine_(std::move(machine)), patience_(patience) {}

  const Machine& machine() const noexcept { return *machine_; }
  const std::string& directory() const noexcept { return directory_; }
  const std::string& reset() const noexcept { return reset_; }  // a program that gives ignored signals back, or nothing
  bool finds() const noexcept { return finds_; }                // GNU find is there
  std::chrono::milliseconds patience() const noexcept { return patience_; }
  unsigned next_number() noexcept { return ++serial_; }

  // Makes the private directory with our helpers in it, and the workspace. Errors: kFailedPrecondition, a program is missing there;
  // kPermissionDenied and others of the workspace; as Machine::run.
  Result<void> settle();
  // Ends all commands with KILL and removes it, as far as that is possible.
  void clear(int cancel_fd = -1) const;

  // One call, once, when it is its turn. The script may hold any bytes but NUL. Errors: as Machine::run.
  Result<ScriptOutput> once(std::string script, std::chrono::milliseconds longer, int cancel_fd) const;
  // The same in two steps; the turn ends with the call. Errors of turn(): kCanceled; kResourceExhausted.
  Result<Turns::Turn> turn(Turns::Kind kind, int cancel_fd) const { return turns_.take(kind, cancel_fd); }
  Result<ScriptOutput> once(Turns::Turn turn, std::string script, std::chrono::milliseconds longer, int cancel_fd) const;
  // Of a script that may be run twice: tried again while the way to the sandbox is lost, for as long as `patience`.
  Result<ScriptOutput> again(const std::string& script, std::chrono::milliseconds longer, int cancel_fd) const;
  // The bytes that one call can carry as base64.
  std::size_t payload() const noexcept;
  // Makes the file `name` of the private directory. Errors: as again(); kDataLoss; kResourceExhausted.
  Result<void> upload(const std::string& name, std::string_view bytes, int cancel_fd) const;
  // How long one call may wait inside: not long while others wait for their turn.
  std::chrono::milliseconds wait() const noexcept;

  // Sends nothing yet.
  Result<std::shared_ptr<command::RunningCommand>> start(command::Request request) override;
  // Signals whatever carries a mark that begins with `mark`; of command `number` (0: none) nothing begins any more. False: that
  // could not be done.
  bool kill_marked(const std::string& mark, int signal, unsigned number = 0,
                   std::chrono::milliseconds patience = std::chrono::seconds(10), int cancel_fd = -1) const;
  Result<std::uint64_t> count_marked(int cancel_fd) const;

  // The directory of command `number` is not needed any more: the next start of a command removes it on the way.
  void retire(unsigned number);
  std::string sweep();

 private:
  std::shared_ptr<const Machine> machine_;
  std::string directory_, reset_;  // from settle() on
  std::chrono::milliseconds patience_;
  bool finds_ = false;
  mutable Turns turns_{kMostCalls};
  std::atomic<unsigned> serial_{0};
  std::mutex mutex_;
  std::vector<unsigned> retired_;  // guarded by mutex_
};

}  // namespace belljar::remote::shell
