// Calls of shell text to one machine: once() for what must not happen twice, again() for what may.
//
// A service says of a lost call neither that it ran nor that it did not. So every script is either sent once,
// or written so that a second run changes nothing: again() may send it while the way is lost. upload() is of
// the second kind: a piece is appended only if the file ends where the piece begins, a piece that is there
// already is skipped, and any other size is an error.
//
// A pause between tries doubles up to a second, and the whole is bounded, as the command behind it cannot be
// seen meanwhile.
//
// kill_marked() takes no turn and sends its own text instead of calling the helper's file. It must work while
// all turns are taken by looks, and when somebody inside removed our directory.
#include "remote/shell/shell_instance.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/format.h"
#include "belljar/cancel.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "command/request.h"
#include "command/running_command.h"
#include "remote/marked.h"
#include "remote/paths.h"
#include "remote/shell/machine.h"
#include "remote/shell/scripts.h"
#include "remote/shell/shell_command.h"

namespace belljar::remote::shell {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLongestWait = 3s;
constexpr milliseconds kCrowdedWait = 1s;  // of a call that others wait for
constexpr milliseconds kLoss = 30s;        // for which a way that is lost is tried again
constexpr std::size_t kFrame = 600;        // of a script around what it carries, at most
constexpr std::size_t kMostSwept = 200;    // by one call

constexpr char kTools[] = "setsid base64 mkfifo dd head tail wc cat grep sleep mv rm mkdir";

// Whether a call that failed so may succeed in a moment.
bool passes(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kResourceExhausted ||
         code == Code::kDataLoss;
}

std::string line_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + key.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

}  // namespace

// --- the way there

milliseconds ShellInstance::wait() const noexcept {
  return std::clamp(machine_->limits().longest / 2, 100ms, turns_.crowded() ? kCrowdedWait : kLongestWait);
}

std::size_t ShellInstance::payload() const noexcept {
  const std::size_t script = machine_->limits().script;
  return script > 2 * kFrame ? (script - kFrame) / 4 * 3 : kFrame / 2;
}

Result<ScriptOutput> ShellInstance::once(std::string script, milliseconds longer, int cancel_fd) const {
  return once(BELLJAR_TRY(turn(Turns::Kind::kLook, cancel_fd)), std::move(script), longer, cancel_fd);
}

Result<ScriptOutput> ShellInstance::once(Turns::Turn /*turn*/, std::string script, milliseconds longer, int cancel_fd) const {
  return machine_->run(armoured(std::move(script)), patience_ + longer, cancel_fd);
}

Result<ScriptOutput> ShellInstance::again(const std::string& script, milliseconds longer, int cancel_fd) const {
  const auto until = Clock::now() + std::min(patience_, kLoss);
  for (milliseconds nap = 50ms;; nap = std::min<milliseconds>(2 * nap, 1s)) {
    auto said = once(script, longer, cancel_fd);
    if (said || !passes(said.error().code()) || ending() || Clock::now() + nap > until) return said;
    pollfd cancelled{.fd = cancel_fd, .events = POLLIN, .revents = 0};
    if (::poll(&cancelled, 1, static_cast<int>(nap.count())) > 0)
      return Error(Code::kCanceled, "cannot run anything in the sandbox").reason("it was cancelled");
  }
}

// A piece goes to its place, and nowhere else when it comes twice.
Result<void> ShellInstance::upload(const std::string& name, std::string_view bytes, int cancel_fd) const {
  const std::string path = directory_ + "/" + name;
  if (bytes.size() > payload()) {
    const auto whole = machine_->write(path, bytes, cancel_fd);
    if (whole && *whole) return {};
  }
  for (std::size_t at = 0; at == 0 || at < bytes.size();) {
    const std::string_view piece = bytes.substr(at, payload());
    const std::string script = format(
        "cd {} && mkdir -p ./{} && s=$(cat ./{} 2>/dev/null | wc -c) && if [ $s -eq {} ]; then printf %s {} | base64 -d >>./{}; "
        "elif [ $s -ne {} ]; then echo its size is $s >&2; false; fi && echo put",
        word(directory_), parent_of("/" + name).substr(1), name, at, to_base64(piece), name, at + piece.size());
    const ScriptOutput said = BELLJAR_TRY(again(script, 0ms, cancel_fd));
    if (said.exit_code != 0 || said.out.find("put") == std::string::npos)
      return complaint_of(said.err, "bring data into the sandbox to", path);
    at += std::max<std::size_t>(piece.size(), 1);
  }
  return {};
}

// --- its directory

Result<void> ShellInstance::settle() {
  const std::string what = "cannot set the sandbox up for commands";
  const std::string script = format(
      "d=${{TMPDIR:-/tmp}}/.belljar-{}; (umask 077; mkdir -p \"$d\") && cd \"$d\" && echo directory \"$d\" || exit 1\n"
      "for t in {}; do command -v $t >/dev/null || echo missing $t; done\n"
      "env --default-signal true 2>/dev/null && echo resets\n"
      "find . -maxdepth 0 -printf '' 2>/dev/null && echo finds\n"
      "mkdir -p {} || echo workspace\necho settled\n",
      nonce(), kTools, word(workspace()));
  const ScriptOutput said = BELLJAR_TRY(again(script, 0ms, -1));
  directory_ = line_after(said.out, "directory ");
  if (directory_.empty() || said.out.find("settled") == std::string::npos)
    return Error(Code::kFailedPrecondition, what)
        .reason(format("its shell says: {}", escaped((said.err + said.out).substr(0, 200))))
        .next("use an image with sh and coreutils, and a /tmp that can be written to");
  if (const std::string missing = line_after(said.out, "missing "); !missing.empty())
    return Error(Code::kFailedPrecondition, what)
        .reason(format("there is no {} in it", escaped(missing)))
        .next("use an image with coreutils and setsid (util-linux), or busybox");
  if (said.out.find("workspace\n") != std::string::npos) return complaint_of(said.err, "make the workspace", workspace());
  if (said.out.find("resets\n") != std::string::npos) reset_ = "env --default-signal ";
  finds_ = said.out.find("finds\n") != std::string::npos;
  for (const Helper& helper : helpers()) BELLJAR_CHECK(upload(helper.name, helper.text, -1));
  return {};
}

void ShellInstance::clear(int cancel_fd) const {
  if (directory_.empty()) return;
  (void)kill_marked(nonce() + "-", SIGKILL, 0, 10s, cancel_fd);
  (void)once("rm -rf " + word(directory_), 0ms, cancel_fd);
}

void ShellInstance::retire(unsigned number) {
  const std::lock_guard lock(mutex_);
  retired_.push_back(number);
}

std::string ShellInstance::sweep() {
  const std::lock_guard lock(mutex_);
  if (retired_.empty()) return {};
  std::string script = "rm -rf";
  const std::size_t count = std::min(retired_.size(), std::min(kMostSwept, kFrame / 30));
  for (std::size_t i = 0; i < count; ++i) script += " " + std::to_string(retired_[i]);
  retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(count));
  return script + "\n";
}

// --- commands

Result<std::shared_ptr<command::RunningCommand>> ShellInstance::start(command::Request request) {
  auto run = BELLJAR_TRY(ShellCommand::start(shared_from_this(), std::move(request)));
  add(run);
  return std::shared_ptr<command::RunningCommand>(std::move(run));
}

// Our own text and not the file of it: a sandbox whose /tmp somebody cleaned can be ended, too.
bool ShellInstance::kill_marked(const std::string& mark, int signal, unsigned number, milliseconds patience, int cancel_fd) const {
  std::string script = format("set -- {} {}\n", mark, signal);
  if (number != 0) script += format("cd {} && mkdir -p {} && : >{}/stop\n", word(directory_), number, number);
  const auto said = machine_->run(script + kEndMarked, patience, cancel_fd);
  return said && said->exit_code == 0;
}

Result<std::uint64_t> ShellInstance::count_marked(int cancel_fd) const {
  const ScriptOutput said =
      BELLJAR_TRY(again(format("grep -lsF {}={}- /proc/[0-9]*/environ | wc -l", kMark, nonce()), 0ms, cancel_fd));
  const std::size_t first = said.out.find_first_not_of(' ');
  std::uint64_t count = 0;
  if (first != std::string::npos) std::from_chars(said.out.data() + first, said.out.data() + said.out.size(), count);
  return count;
}

}  // namespace belljar::remote::shell
