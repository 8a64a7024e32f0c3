#include "support/run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/poll.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/unique_fd.h"
#include "support/built.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

milliseconds since(steady_clock::time_point start) { return std::chrono::duration_cast<milliseconds>(steady_clock::now() - start); }

std::pair<UniqueFd, UniqueFd> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// What the program keeps of its runs goes with the test, not into the account of whoever runs it.
const std::string& state_home() {
  static const TempDir home;
  return home.path();
}

std::vector<std::string> environment(const RunOptions& options) {
  std::map<std::string, std::string> values;
  if (options.all_env) {
    values = *options.all_env;
  } else {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      if (const auto at = text.find('='); at != std::string_view::npos)
        values[std::string(text.substr(0, at))] = text.substr(at + 1);
    }
    values["XDG_STATE_HOME"] = state_home();
  }
  for (const auto& [name, value] : options.env) values[name] = value;
  std::vector<std::string> result;
  for (const auto& [name, value] : values) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Reads what is there. False at end of file.
bool drain(int fd, std::string& into) {
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 && errno == EAGAIN;
    into.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

pid_t spawn(const std::vector<std::string>& argv, const RunOptions& options, const std::vector<std::string>& env, int in, int out,
            int err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  if (options.stdin_is == Input::kPipe) ::posix_spawn_file_actions_adddup2(&actions, in, 0);
  else if (options.stdin_is == Input::kNull) ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  else ::posix_spawn_file_actions_addclose(&actions, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, 1);
  ::posix_spawn_file_actions_adddup2(&actions, err, 2);
  if (!options.cwd.empty()) ::posix_spawn_file_actions_addchdir_np(&actions, options.cwd.c_str());
  sigset_t defaults;
  sigset_t none;
  ::sigemptyset(&none);
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv.at(0).c_str(), &actions, &attributes, pointers(argv).data(), pointers(env).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), "cannot start " + argv[0]);
  return pid;
}

std::string value_in(const std::vector<std::string>& env, const std::string& name) {
  for (const std::string& entry : env) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return {};
}

std::string place_of_spares(const std::vector<std::string>& env) {
  std::string state = value_in(env, "XDG_STATE_HOME");
  if (state.empty()) state = ::geteuid() == 0 ? "/var/lib" : value_in(env, "HOME") + "/.local/state";
  return state + "/belljar/warm";
}

std::set<std::string> spares_of(const std::vector<std::string>& env) {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(place_of_spares(env), ignored))
    names.insert(entry.path().filename().string());
  return names;
}

void reap(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// With BELLJAR_WARM=1 in the environment of the tests each `belljar run` finds a spare where one may stand for it: as it would be
// after another run like it. -1: none.
pid_t make_spare(const std::vector<std::string>& argv, RunOptions options, const std::vector<std::string>& env) {
  if (value_in(env, "BELLJAR_WARM") != "1" || argv.size() < 3 || argv[0] != kBelljar || argv[1] != "run") return -1;
  std::vector<std::string> words{"belljar", "__spare", "run"};
  bool text = false;
  for (std::size_t i = 2; i < argv.size() && argv[i] != "--"; ++i) {
    words.push_back(argv[i]);
    if (argv[i] != "-c" || i + 1 == argv.size()) continue;
    words.emplace_back(":");
    text = true;
    ++i;
  }
  words.emplace_back("--");
  if (!text) words.emplace_back("true");
  const std::set<std::string> before = spares_of(env);
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  options.stdin_is = Input::kNull;
  words[0] = kBelljar;
  const pid_t pid = spawn(words, options, env, -1, null.get(), null.get());
  // It ends at once where none can stand for this run.
  for (int polls = 0; polls < 10'000 && spares_of(env) == before; ++polls) {
    if (::waitpid(pid, nullptr, WNOHANG) == pid) return -1;
    ::poll(nullptr, 0, 1);
  }
  return pid;
}

}  // namespace

Running::Running(const std::vector<std::string>& argv, const RunOptions& options)
    : options_(options),
      input_(options.input),
      started_(steady_clock::now()),
      timeout_(options.timeout),
      held_after_(options.held_after) {
  std::signal(SIGPIPE, SIG_IGN);
  auto [in_read, in_write] = make_pipe();
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();

  const std::vector<std::string> env = environment(options);
  spare_ = make_spare(argv, options, env);
  pid_ = spawn(argv, options, env, in_read.get(), out_write.get(), err_write.get());

  if (options.stdin_is == Input::kPipe) stdin_ = std::move(in_write);
  stdout_ = std::move(out_read);
  stderr_ = std::move(err_read);
  for (const int fd : {stdin_.get(), stdout_.get(), stderr_.get()}) {
    if (fd >= 0) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
}

Running::~Running() {
  if (pid_ > 0 && !reaped_) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    reap(pid_);
  }
  end_spare();
}

void Running::end_spare() {
  if (spare_ <= 0) return;
  end_spares(value_in(environment(options_), "XDG_STATE_HOME"));
  ::kill(spare_, SIGKILL);  // where it had none
  reap(std::exchange(spare_, -1));
}

void Running::close_output() noexcept {
  stdout_.reset();
  stderr_.reset();
}

void Running::send(int signal) const { ::kill(pid_, signal); }

bool Running::try_reap() {
  if (reaped_) return true;
  int status = 0;
  rusage usage{};
  if (::wait4(pid_, &status, WNOHANG, &usage) != pid_) return false;
  reaped_ = true;
  outcome_.duration = since(started_);
  outcome_.max_rss_kib = usage.ru_maxrss;
  if (WIFEXITED(status)) outcome_.exit_code = WEXITSTATUS(status);
  else outcome_.signal = WTERMSIG(status);
  return true;
}

// Moves bytes both ways for at most this long.
void Running::pump(milliseconds at_most) {
  const bool writing = stdin_.valid() && written_ < input_.size();
  std::array<pollfd, 3> set{{{writing ? stdin_.get() : -1, POLLOUT, 0}, {stdout_.get(), POLLIN, 0}, {stderr_.get(), POLLIN, 0}}};
  ::poll(set.data(), set.size(), static_cast<int>(at_most.count()));
  if (set[0].revents != 0) {
    const ssize_t count = ::write(stdin_.get(), input_.data() + written_, input_.size() - written_);
    if (count > 0) written_ += static_cast<std::size_t>(count);
    else if (errno != EAGAIN) stdin_.reset();
  }
  if (set[1].revents != 0 && !drain(stdout_.get(), outcome_.out)) stdout_.reset();
  if (set[2].revents != 0 && !drain(stderr_.get(), outcome_.err)) stderr_.reset();
}

bool Running::wait_for_output(std::string_view text, milliseconds patience) {
  const auto start = steady_clock::now();
  const auto found = [&] { return outcome_.out.find(text) != std::string::npos || outcome_.err.find(text) != std::string::npos; };
  while (!found() && since(start) < patience) {
    const bool ended = try_reap();
    pump(milliseconds(5));
    if (ended) return found();
  }
  return found();
}

Outcome Running::wait() {
  std::optional<steady_clock::time_point> ended;
  for (;;) {
    if (!ended && try_reap()) ended = steady_clock::now();
    if (ended && !stdout_.valid() && !stderr_.valid()) break;
    if (ended && since(*ended) > held_after_) {
      pump(milliseconds(0));  // what came before all the same
      outcome_.output_held = stdout_.valid() || stderr_.valid();
      break;
    }
    if (!ended && !outcome_.timed_out && since(started_) > timeout_) {
      outcome_.timed_out = true;
      ::kill(-pid_, SIGKILL);
      ::kill(pid_, SIGKILL);
    }
    if (stdin_.valid() && written_ == input_.size()) stdin_.reset();
    pump(milliseconds(ended ? 20 : 2));
  }
  end_spare();
  return std::move(outcome_);
}

std::ostream& operator<<(std::ostream& stream, const Outcome& outcome) {
  stream << "exit " << outcome.exit_code << ", signal " << outcome.signal << ", " << outcome.duration.count() << " ms";
  if (outcome.timed_out) stream << ", timed out";
  if (outcome.output_held) stream << ", output held by a survivor";
  const auto shown = [](const std::string& text) { return escaped(std::string_view(text).substr(0, 4000)); };
  return stream << "\n  stdout: " << shown(outcome.out) << "\n  stderr: " << shown(outcome.err);
}

void end_spares(const std::string& state_home) {
  const std::string state = '\0' + ("XDG_STATE_HOME=" + state_home) + '\0';
  for (bool found = true; found;) {
    found = false;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0 || read_what_is_there(entry.path() / "cmdline").find(std::string("\0__spare", 8)) == std::string::npos)
        continue;
      if (('\0' + read_what_is_there(entry.path() / "environ")).find(state) == std::string::npos) continue;
      found |= ::kill(pid, SIGKILL) == 0;
    }
  }
  // Their sockets, which the next one would be taken for.
  std::error_code ignored;
  std::filesystem::remove_all(state_home + "/belljar/warm", ignored);
}

bool runs_are_warm() {
  const char* const said = std::getenv("BELLJAR_WARM");  // NOLINT(concurrency-mt-unsafe)
  return said != nullptr && std::string_view(said) == "1";
}

Outcome run(const std::vector<std::string>& argv, const RunOptions& options) { return Running(argv, options).wait(); }

Outcome belljar(std::vector<std::string> args, const RunOptions& options) {
  args.insert(args.begin(), kBelljar);
  return run(args, options);
}

}  // namespace belljar::test
