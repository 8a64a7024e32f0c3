// The choice for descriptors 0, 1 and 2 of a command: handed in, relayed, captured, or a pty.
//
// A descriptor that is handed in can be re-opened through /proc/self/fd with other rights than it was given: a log file opened for
// appending becomes a host file open for reading and writing, a terminal becomes a place to push input into (TIOCSTI,
// CVE-2017-5226; the class is FS-10 in the security notes, CVE-2019-5736 its best known member). So only what gains nothing by that
// is passed through: pipes, FIFOs and /dev/null. Everything else is relayed through a pipe of ours, or through a pty of the
// sandbox's own.
//
// Passed through costs nothing; relayed costs two copies. Nothing here changes the state of the caller's descriptors: O_NONBLOCK
// lives in the open file description, which the caller's shell shares.
#pragma once

#include <sys/ioctl.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/unique_fd.h"
#include "belljar/exec_result.h"
#include "belljar/result.h"
#include "command/capture.h"
#include "front/pump.h"
#include "front/terminal_modes.h"

namespace belljar::front {

enum class Pty { kAuto, kYes, kNo };
enum class Input { kInherit, kNull };
enum class OutputTo { kInherit, kCapture };

struct StdioOptions {
  Input input = Input::kInherit;
  OutputTo output = OutputTo::kInherit;
  Pty pty = Pty::kAuto;
  bool watch = false;                // relay pipes too: somebody waits for silence
  std::optional<std::uint64_t> cap;  // of each stream, captured or relayed; sets `watch`
  int host[3] = {0, 1, 2};           // the caller's descriptors; -1: /dev/null
  // The user that opens /dev/stdout inside: anonymous pipes are given to them, else a command that was given root's pipe but is not
  // root gets EACCES from `echo text > /dev/stderr`. FIFOs in a directory are left alone.
  std::optional<std::pair<uid_t, gid_t>> owner;
};

// True when kAuto would make a pty: stdin and stdout are terminals and nothing is captured.
bool wants_pty(const StdioOptions& options) noexcept;

// The three streams of one command. A resource; one thread.
class Stdio {
 public:
  static Result<Stdio> open(const StdioOptions& options);
  Stdio(Stdio&&) noexcept = default;
  Stdio& operator=(Stdio&&) noexcept = default;

  bool pty() const noexcept { return pty_; }
  // For ExecRequest::stdio; -1 is /dev/null, or with pty() the pty. Valid until close_command_ends().
  int command_fd(int n) const noexcept { return ends_[n]; }
  // After the start: our copies of the command's ends go, so that we see its EOF and it sees ours.
  void close_command_ends() noexcept;
  // The master of the sandbox's pty, once the sandbox is there.
  void attach_pty(UniqueFd master);
  void set_window_size(const winsize& size) noexcept;
  // The caller's terminal has hung up, and so does the pty then: its programs get SIGHUP, and read nothing more, termios(3).
  bool lost_terminal() const noexcept;
  void hang_up() noexcept;

  // The streams that are relayed; nullptr where the command holds the descriptor itself. error() is nullptr, too, when 1 and 2 are
  // the same file: one pipe for both keeps their order.
  Pump* input() noexcept { return input_.get(); }
  Pump* output() noexcept { return output_.get(); }
  Pump* error() noexcept { return error_.get(); }
  Output take_out();
  Output take_err();
  // The command was killed on its pty: the user's terminal leaves the modes that it was in.
  void undo_modes() noexcept;

 private:
  Stdio() = default;
  Result<void> open_input(const StdioOptions& options);
  Result<void> open_output(const StdioOptions& options, int n);
  bool same_target(const StdioOptions& options) const noexcept;

  bool pty_ = false, capture_ = false;
  UniqueFd master_;  // for the window size; the pumps have their own
  int ends_[3] = {-1, -1, -1};
  UniqueFd owned_[3];  // those of ends_ that are ours to close
  int host_[3] = {0, 1, 2};
  std::optional<std::uint64_t> cap_;
  std::unique_ptr<command::Capture> captures_[2];
  std::unique_ptr<TerminalModes> modes_;  // of a pty on a terminal
  std::unique_ptr<Pump> input_, output_, error_;
};

// Makes sure that 0, 1 and 2 are open, on a /dev/null that cannot be written where the caller closed them: otherwise the next
// descriptor we make becomes the command's stdout. Before anything else in main. Returns which were closed, bit n for n.
unsigned reopen_closed_stdio() noexcept;

}  // namespace belljar::front
