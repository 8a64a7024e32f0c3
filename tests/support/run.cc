#include "support/run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/poll.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
#include "support/clock.h"
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
            int err, bool alone = false) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  if (options.stdin_is == Input::kPipe) ::posix_spawn_file_actions_adddup2(&actions, in, 0);
  else if (options.stdin_is == Input::kNull) ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  else if (options.stdin_is == Input::kFile) ::posix_spawn_file_actions_addopen(&actions, 0, options.input.c_str(), O_RDONLY, 0);
  else ::posix_spawn_file_actions_addclose(&actions, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, 1);
  ::posix_spawn_file_actions_adddup2(&actions, err, 2);
  if (alone) ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
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
  // A socket has its name when it listens (src/warm/door.cc); before, it has one that begins with a dot.
  for (const auto& entry : std::filesystem::directory_iterator(place_of_spares(env), ignored)) {
    if (std::string name = entry.path().filename().string(); !name.starts_with('.')) names.insert(std::move(name));
  }
  return names;
}

std::set<std::string> new_spares(const std::vector<std::string>& env, const std::set<std::string>& before) {
  std::set<std::string> names = spares_of(env);
  for (const std::string& name : before) names.erase(name);
  return names;
}

void reap(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool is_set(const char* name) {
  const char* const said = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return said != nullptr && std::string_view(said) == "1";
}

std::string words_of(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + escaped(word.substr(0, 100));
  return text;
}

bool is_run(const std::vector<std::string>& argv) { return argv.size() >= 3 && argv[0] == kBelljar && argv[1] == "run"; }

// How many of its words come before the command's.
std::size_t options_of(const std::vector<std::string>& argv) {
  return static_cast<std::size_t>(std::ranges::find(argv, "--") - argv.begin());
}

// Not where the test has one of its own, nor where none can be: only the native backend has them, for a workspace that can be
// written.
bool can_be_transaction(const std::vector<std::string>& argv) {
  const std::size_t end = options_of(argv);
  return std::ranges::none_of(argv.begin(), argv.begin() + static_cast<std::ptrdiff_t>(end), [](const std::string& word) {
    return word.starts_with("--txn") || word == "landlock" || word == "auto" || word == "container" || word == "read-only" ||
           word == "danger-full-access" || word == "external-sandbox" || word == "--help";
  });
}

// The same run with nothing to do: what it commits is judged by the rules of the first.
std::vector<std::string> words_of_commit(const std::vector<std::string>& argv) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < options_of(argv); ++i) {
    const std::string& word = argv[i];
    if (word == "-c" || word == "--report" || word == "--audit") ++i;
    else if (word != "--json" && word != "--verbose" && word != "--pty") words.push_back(word);
  }
  words.insert(words.end(), {"--commit", "--", "true"});
  return words;
}

// With BELLJAR_WARM=1 in the environment of the tests each `belljar run` finds a spare where one may stand for it: as it would be
// after another run like it. -1: none.
pid_t make_spare(const std::vector<std::string>& argv, RunOptions options, const std::vector<std::string>& env) {
  // A closed stream, like a terminal, starts cold; so does what names no command.
  if (value_in(env, "BELLJAR_WARM") != "1" || !is_run(argv) || options.stdin_is == Input::kClosed) return -1;
  std::vector<std::string> words{"belljar", "__spare", "run"};
  bool text = false;
  for (std::size_t i = 2; i < argv.size() && argv[i] != "--"; ++i) {
    words.push_back(argv[i]);
    if (argv[i] != "-c" || i + 1 == argv.size()) continue;
    words.emplace_back(":");
    text = true;
    ++i;
  }
  if (!text && options_of(argv) + 1 >= argv.size()) return -1;
  words.emplace_back("--");
  if (!text) words.emplace_back("true");
  const std::set<std::string> before = spares_of(env);
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  options.stdin_is = Input::kNull;
  words[0] = kBelljar;
  // Without what we inherited: under flock(1), for one, its proof would find no place.
  const pid_t pid = spawn(words, options, env, -1, null.get(), null.get(), true);
  // It ends at once where none can stand for this run.
  for (int polls = 0; polls < 10'000 && new_spares(env, before).empty(); ++polls) {
    if (::waitpid(pid, nullptr, WNOHANG) == pid) return -1;
    ::poll(nullptr, 0, 1);
  }
  return pid;
}

// BELLJAR_TEST_OLD_SPARES=1 beside BELLJAR_WARM=1: a run finds what was made after the last one like it, so that the host has
// changed meanwhile as the test changes it, and many must start cold.
bool spares_are_old() { return is_set("BELLJAR_WARM") && is_set("BELLJAR_TEST_OLD_SPARES"); }

// All of theirs with that state directory, in the making, too, and whoever ends with them.
std::vector<pid_t> processes_of_spares(const std::string& state_home) {
  const std::string state = '\0' + ("XDG_STATE_HOME=" + state_home) + '\0';
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && read_what_is_there(entry.path() / "cmdline").find(std::string("\0__spare", 8)) != std::string::npos &&
        ('\0' + read_what_is_there(entry.path() / "environ")).find(state) != std::string::npos)
      pids.push_back(pid);
  }
  return pids;
}

void keep_spare(pid_t pid) {
  struct Kept {
    std::vector<pid_t> pids;
    ~Kept() {
      for (const pid_t one : pids) ::kill(one, SIGKILL), reap(one);
      end_spares(state_home());
    }
  };
  (void)state_home();  // it outlives them
  static Kept kept;
  if (pid > 0) kept.pids.push_back(pid);
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
  argv_ = argv;
  if (runs_are_transactions() && is_run(argv) && can_be_transaction(argv)) {
    static int count = 0;
    transaction_ = format("of-{}-{}", ::getpid(), ++count);
    argv_.insert(argv_.begin() + 2, {"--txn", "--txn-name", transaction_});
    let_the_clock_tick();  // what the test changed in the tick of the start would count as changed meanwhile
  }
  if (!spares_are_old()) spare_ = make_spare(argv_, options, env);
  spare_stood_ = spare_ > 0 || (spares_are_old() && !spares_of(env).empty());
  pid_ = spawn(argv_, options, env, in_read.get(), out_write.get(), err_write.get());

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
  if (!transaction_.empty()) drop(transaction_);
}

void Running::end_spare() {
  if (spare_ <= 0) return;
  // Who is killed with all of its helpers leaves its control group to the next start, and a test may look for one.
  const bool limited = std::ranges::any_of(argv_, [](const std::string& word) { return word == "--pids" || word == "--memory"; });
  if (limited) {
    RunOptions options = quiet();
    options.env["BELLJAR_WARM"] = "";
    (void)::belljar::test::run({kBelljar, "warm", "--stop"}, options);
    // The one that served ends by itself.
    const std::string state = value_in(environment(options_), "XDG_STATE_HOME");
    for (int polls = 0; polls < 2'000 && !processes_of_spares(state).empty(); ++polls) ::poll(nullptr, 0, 1);
  }
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
  // Whom a spare serves ends before libc begins: it touches some ten pages, a start some hundred.
  constexpr long kPagesOfAClient = 60;
  outcome_.warm = spare_stood_ && usage.ru_minflt < kPagesOfAClient;
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
  if (is_run(argv_)) tell_mode();
  if (spares_are_old()) keep_spare(make_spare(argv_, quiet(), environment(options_)));
  if (!transaction_.empty()) commit();
  return std::move(outcome_);
}

void Running::tell_mode() const {
  const char* const file = std::getenv("BELLJAR_TEST_RUNS");  // NOLINT(concurrency-mt-unsafe)
  if (file == nullptr) return;
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  const char* const how = outcome_.warm ? "warm" : spare_stood_ ? "missed" : "cold";
  const std::string line =
      format("{}\t{}\t{}.{}\t{}\n", how, transaction_.empty() ? "live" : "txn", test == nullptr ? "" : test->test_suite_name(),
             test == nullptr ? "" : test->name(), words_of(argv_));
  const UniqueFd out(::open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  (void)!::write(out.get(), line.data(), line.size());
}

RunOptions Running::quiet() const {
  RunOptions options = options_;
  options.stdin_is = Input::kNull;
  options.input.clear();
  return options;
}

void Running::drop(const std::string& transaction) const {
  std::vector<std::string> words{kBelljar, "rollback", "--txn-name", transaction};
  for (std::size_t i = 0; i + 1 < options_of(argv_); ++i) {
    if (argv_[i] == "--workspace") words.insert(words.end(), {argv_[i], argv_[i + 1]});
  }
  (void)::belljar::test::run(words, quiet());
}

void Running::commit() {
  const std::string name = std::exchange(transaction_, {});
  outcome_.transaction = true;
  const Outcome committed = ::belljar::test::run(words_of_commit(argv_), quiet());
  if (committed.exit_code == 0) return;
  drop(name);
  // A run that made no sandbox has no transaction, and its rules judge nothing.
  if (committed.err.find("refused: ") == std::string::npos && committed.err.find("conflict: ") == std::string::npos) return;
  outcome_.refused_at_commit = committed.err;
  outcome_.err += committed.err;
  if (outcome_.exit_code == 0) outcome_.exit_code = 125;
}

std::ostream& operator<<(std::ostream& stream, const Outcome& outcome) {
  stream << "exit " << outcome.exit_code << ", signal " << outcome.signal << ", " << outcome.duration.count() << " ms";
  if (outcome.timed_out) stream << ", timed out";
  if (outcome.output_held) stream << ", output held by a survivor";
  const auto shown = [](const std::string& text) { return escaped(std::string_view(text).substr(0, 4000)); };
  return stream << "\n  stdout: " << shown(outcome.out) << "\n  stderr: " << shown(outcome.err);
}

void end_spares(const std::string& state_home) {
  for (std::vector<pid_t> pids; !(pids = processes_of_spares(state_home)).empty();) {
    if (std::ranges::none_of(pids, [](pid_t pid) { return ::kill(pid, SIGKILL) == 0; })) break;
  }
  // Their sockets, which the next one would be taken for.
  std::error_code ignored;
  std::filesystem::remove_all(state_home + "/belljar/warm", ignored);
}

bool runs_are_warm() { return is_set("BELLJAR_WARM"); }
bool runs_are_transactions() { return is_set("BELLJAR_TEST_TXN"); }

Outcome run(const std::vector<std::string>& argv, const RunOptions& options) { return Running(argv, options).wait(); }

Outcome belljar(std::vector<std::string> args, const RunOptions& options) {
  args.insert(args.begin(), kBelljar);
  return run(args, options);
}

}  // namespace belljar::test
