// Runs a program for a test and collects what came of it.
//
//   const Outcome outcome = run({"/bin/sh", "-c", "cat; exit 3"}, {.input = "hello"});
//   EXPECT_EQ(outcome.exit_code, 3) << outcome;
//
// Not for the library: it polls in small steps where launch/ waits on descriptors. One thread at a time. SIGPIPE is ignored in the
// calling process from the first use on; the program starts with the default.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace belljar::test {

enum class Input { kPipe, kNull, kClosed, kFile };  // kPipe: `input`, then end of file; kFile: the file `input`, opened for reading

struct RunOptions {
  std::string input;
  Input stdin_is = Input::kPipe;
  std::string cwd;                                            // empty: ours
  std::map<std::string, std::string> env;                     // added to ours, whose XDG_STATE_HOME is this process's alone
  std::optional<std::map<std::string, std::string>> all_env;  // instead of ours
  std::chrono::milliseconds timeout{240'000};                 // then SIGKILL to its process group: a guard, below CTest's own
  std::chrono::milliseconds held_after{60'000};               // Outcome::output_held; little where a survivor is expected
};

struct Outcome {
  int exit_code = -1;      // -1 when a signal ended it
  int signal = 0;          // 0 when it exited
  bool timed_out = false;  // we killed it
  // Somebody still held its stdout or stderr `held_after` its end: a process survived.
  bool output_held = false;
  bool warm = false;              // a spare served it
  bool transaction = false;       // with BELLJAR_TEST_TXN=1: it ran in one
  std::string refused_at_commit;  // with BELLJAR_TEST_TXN=1: what the commit of this run said; then nothing of it is on the host
  std::string out;
  std::string err;
  std::chrono::milliseconds duration{0};
  long max_rss_kib = 0;  // of the program and the children it waited for
};

// For failure messages: exit code, signal and both outputs.
std::ostream& operator<<(std::ostream& stream, const Outcome& outcome);

// A program that runs beside the test. The destructor kills its process group and reaps it.
//
// Two variables in the environment of the tests make each `belljar run` another one where it can be (docs/TESTING.md):
//   BELLJAR_WARM=1      a spare is made for it
//   BELLJAR_TEST_TXN=1  it runs in a transaction of its own, which wait() commits by the run's own rules. What they refuse is
//                       dropped: the command wrote it, the host does not have it, and a command that succeeded has exit code 125
// BELLJAR_TEST_RUNS names a file that gets a line for each: `warm`, `missed` (a spare stood ready, and it started cold all the
// same) or `cold`; `txn` or `live`; the test; the words.
class Running {
 public:
  // Throws std::system_error when the program cannot be started.
  explicit Running(const std::vector<std::string>& argv, const RunOptions& options = {});
  Running(Running&&) = default;
  Running& operator=(Running&&) = delete;
  ~Running();

  pid_t pid() const noexcept { return pid_; }
  const std::string& out() const noexcept { return outcome_.out; }
  const std::string& err() const noexcept { return outcome_.err; }

  // Reads until stdout (or stderr) holds `text`. False when the program ended or the time was up before.
  bool wait_for_output(std::string_view text, std::chrono::milliseconds patience = std::chrono::seconds(60));
  void send(int signal) const;
  // Leaves the program's stdin to the test: with `input` written so far. Closing it is end of file.
  void close_input() noexcept { stdin_.reset(); }
  // Closes our ends of its stdout and stderr, as `| head` does.
  void close_output() noexcept;
  // Waits until it has ended and both outputs are closed.
  Outcome wait();

 private:
  void pump(std::chrono::milliseconds at_most);
  bool try_reap();
  void end_spare();
  void tell_mode() const;
  void commit();
  void drop(const std::string& transaction) const;
  RunOptions quiet() const;

  RunOptions options_;
  pid_t spare_ = -1;  // with BELLJAR_WARM=1: the process that made a sandbox for this one
  bool spare_stood_ = false;
  std::string transaction_;  // with BELLJAR_TEST_TXN=1: its name
  std::vector<std::string> argv_;
  pid_t pid_ = -1;
  UniqueFd stdin_, stdout_, stderr_;
  std::string input_;
  std::size_t written_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::milliseconds timeout_, held_after_;
  bool reaped_ = false;
  Outcome outcome_;
};

Outcome run(const std::vector<std::string>& argv, const RunOptions& options = {});

// Ends all that `run --warm` keeps in that state directory, also what is being made: the directory is the test's to remove.
void end_spares(const std::string& state_home);
// BELLJAR_WARM=1: then they have a state directory, too.
bool runs_are_warm();
// BELLJAR_TEST_TXN=1.
bool runs_are_transactions();

// The program under test: belljar with `args`.
Outcome belljar(std::vector<std::string> args, const RunOptions& options = {});

}  // namespace belljar::test
