// When a spare is made, what it checks, and what it does then.
//
// A cold run that may be warm starts the first spare, as a process of its own: the same program with the same words, `__spare` in
// front and another command behind. It goes the whole way of a run until the sandbox is there, then waits at its door. So there is
// no second way to make a sandbox, and what a spare is for cannot differ from what a run would make: only from when.
//
// Hence the checks of fit_of(). The client must be in everything that a command inherits what the spare is (warm/caller.h), have
// the same words, variables and directory byte by byte, and the host must still be what the plan was made from: the policy files
// and everything that the backend asked (backend/paths/witness.h). Whatever differs, the client starts cold; where it was the host,
// the spare ends, since nothing will make it right again.
//
// A spare is used once. The next one is started when the run is over, or at once where there is no other: two of a kind are the
// most, so that of two runs one after the other both may find one.
#include "cli/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "base/format.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "belljar/error.h"
#include "belljar/policy.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "belljar/units.h"
#include "cli/command_words.h"
#include "cli/errors.h"
#include "cli/own_program.h"
#include "cli/recognise.h"
#include "kernel/process_tree.h"
#include "kernel/worktree.h"
#include "launch/detached.h"
#include "policy/backends.h"
#include "policy/defaults.h"
#include "policy/json.h"
#include "policy/tls_interception.h"

namespace belljar::cli {
namespace {

constexpr std::chrono::minutes kIdle{10};

Error over(std::string_view why) { return Error(Code::kCanceled, "the spare sandbox ends").reason(std::string(why)); }

std::string own_directory() {
  char path[PATH_MAX];
  return ::getcwd(path, sizeof path) == nullptr ? std::string() : path;
}

// The words of the command line, ours and the command's.
std::vector<std::string> all_words(const RunFlags& flags) {
  std::vector<std::string> words{"belljar"};
  words.insert(words.end(), flags.words.begin(), flags.words.end());
  words.emplace_back("--");
  words.insert(words.end(), flags.program.begin(), flags.program.end());
  return words;
}

// Which of them is the text of -c, 0: none; nullopt: the client, who only looks at the words, would take another command for it.
std::optional<int> text_of(const RunFlags& flags) {
  const warm::RunWords words{all_words(flags), {}, {}};
  const auto parts = words.parts();
  const bool same = parts.text == 0 ? !flags.shell_text : flags.shell_text == words.argv[static_cast<std::size_t>(parts.text)];
  return parts.right && same ? std::optional(parts.text) : std::nullopt;
}

// As it is shown inside, where it stays what it was.
std::string host_name() {
  utsname name{};
  return ::uname(&name) == 0 ? format("{} {}", name.nodename, name.domainname) : std::string();
}

// Signals 32 and 33 are libc's own. Its posix_spawn(3) leaves one ignored, which a command inherits, so that a spare is given them
// as the run had them that it was asked for by.
struct KernelAction {
  void* handler = nullptr;
  unsigned long flags = 0;
  void* restorer = nullptr;
  std::uint64_t mask = 0;
};
constexpr int kSignalsOfLibc[] = {32, 33};

int ignored_of_libc() noexcept {
  int ignored = 0;
  for (const int signal : kSignalsOfLibc) {
    KernelAction action;
    ::syscall(SYS_rt_sigaction, signal, nullptr, &action, sizeof action.mask);
    ignored = ignored * 2 + (action.handler == reinterpret_cast<void*>(SIG_IGN) ? 1 : 0);
  }
  return ignored;
}

void ignore_of_libc(int ignored) noexcept {
  for (int i = 0; i < 2; ++i) {
    const bool ignore = (ignored >> (1 - i) & 1) != 0;
    const KernelAction action{.handler = ignore ? reinterpret_cast<void*>(SIG_IGN) : nullptr};
    ::syscall(SYS_rt_sigaction, kSignalsOfLibc[i], &action, nullptr, sizeof action.mask);
  }
}

// With another command: what is run is no part of a spare.
std::vector<std::string> words_without_command(const RunFlags& flags) {
  std::vector<std::string> words = all_words(flags);
  words.resize(words.size() - flags.program.size());
  const int text = text_of(flags).value_or(0);
  if (text != 0) words[static_cast<std::size_t>(text)] = ":";
  else words.emplace_back("true");
  return words;
}

// `/dev/fd/3`, `/proc/self/...`: where that leads through links, the witness finds it.
bool names_processes_files(const RunFlags& flags, const LoadedPolicy& loaded) {
  const auto is = [](std::string_view text) {
    return text.find("/proc/") != std::string_view::npos || text.find("/dev/fd") != std::string_view::npos ||
           text.find("/dev/std") != std::string_view::npos;
  };
  const policy::MergeContext& context = loaded.context;
  const auto text = static_cast<std::size_t>(text_of(flags).value_or(0));  // of a shell, which is no path; behind "belljar"
  for (std::size_t i = 0; i < flags.words.size(); ++i) {
    if (i + 1 != text && is(flags.words[i])) return true;
  }
  return std::ranges::any_of(
      std::vector<std::string>{context.home, context.config_dir, context.tmpdir, context.runtime_dir, default_state_dir()}, is);
}

// Since pid 1 was cloned each first write to a page of the heap is a fault of some microseconds: taken now, when nobody waits
// (MADV_POPULATE_WRITE in madvise(2), Linux 5.14).
void make_heap_ready() noexcept {
  constexpr int kPopulateWrite = 23;
  constexpr std::size_t kPage = 4096;
  char* const top = static_cast<char*>(::sbrk(0));
  const std::size_t size = ::mallinfo2().arena / kPage * kPage;
  ::madvise(top - size, size, kPopulateWrite);
}

}  // namespace

bool can_be_warm(const RunFlags& flags, const LoadedPolicy& loaded) {
  const Policy& policy = loaded.effective.policy;
  // Begun by its run; opened before the sandbox is planned; telling of a start; a terminal of its run.
  if (flags.txn || flags.txn_name || !flags.audit.file.empty() || !flags.audit.rotate.empty() || flags.verbose || flags.pty)
    return false;
  const auto order = policy::backend_order(policy.backend, policy.fallback, policy.isolation);
  if (!order || *order != std::vector<std::string>{"native"} || !flags.choose.tried.empty()) return false;
  if (policy.mode != Mode::kWorkspaceWrite && policy.mode != Mode::kReadOnly) return false;
  if (policy.profile.starts_with("agent-")) return false;  // for its program alone
  // Hidden as they are at the start; one sandbox at a time has them; made at the start.
  if (policy.filesystem.siblings == Siblings::kHidden || policy.filesystem.caches == Caches::kWorkspace ||
      !policy.filesystem.volumes.empty())
    return false;
  if (!policy.network.publish.empty()) return false;             // one at a time listens there
  if (policy.limits.disk) return false;                          // counted from the start, by what lies in the workspace then
  if (policy::wants_interception(policy.network)) return false;  // another program's
  return !names_processes_files(flags, loaded) && text_of(flags) && warm::has_known_filters();
}

warm::RunWords words_of_run(const RunFlags& flags) { return {words_without_command(flags), own_environment(), own_directory()}; }

SpareWord read_spare_word(std::string_view word) {
  word.remove_prefix(std::min(kSpareWord.size() + 1, word.size()));
  const char* const begin = word.data();
  const char* const end = begin + word.size();
  std::int64_t since = 0;
  SpareWord read;
  const auto [at, bad] = std::from_chars(begin, end, since);
  if (bad != std::errc() || at == end) return read;
  read.since = WallTime(std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(since)));
  std::from_chars(at + 1, end, read.ignored);
  return read;
}

void start_spare(const warm::RunWords& words, const warm::wire::Inherited& as, WallTime now) {
  std::vector<std::string> argv = words.argv;
  const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  argv.insert(argv.begin() + 1, format("{}={},{}", kSpareWord, since, ignored_of_libc()));
  if (!warm::has_room(words, as)) return;
  // What a proxy raised is not what the next run begins with.
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const rlim_t raised = std::exchange(files.rlim_cur, as.limits[RLIMIT_NOFILE][0]);
  if (raised != files.rlim_cur) ::setrlimit(RLIMIT_NOFILE, &files);
  // A spare that cannot be had is no fault of the run.
  (void)launch::start_detached(own_program(), argv, words.environment, -1, launch::Ignored::kKept);
  if (raised == files.rlim_cur) return;
  files.rlim_cur = raised;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

Result<std::unique_ptr<RunSpare>> RunSpare::create(RunFlags& flags) {
  ignore_of_libc(flags.spare->ignored);
  // Before there is any other descriptor.
  const std::string proof = random_hex(16);
  UniqueFd proof_file(::memfd_create(proof.c_str(), MFD_CLOEXEC));
  if (proof_file.get() != warm::wire::kProofFd || proof.size() != 32) return over("its proof has no place");
  auto spare = std::unique_ptr<RunSpare>(new RunSpare(flags));
  spare->proof_file_ = std::move(proof_file);
  spare->proof_ = format("/memfd:{} (deleted)", proof);
  auto own = warm::Caller::look_at(::getpid());
  if (!own) return over("its own process cannot be looked at");
  spare->own_ = *std::move(own);
  spare->words_ = words_of_run(flags);
  spare->kind_ = spare->words_.kind();
  spare->inherited_ = warm::own_inherited();
  spare->host_name_ = host_name();
  return spare;
}

void RunSpare::attend(Command& command, LoadedPolicy& loaded, RunRecord& record) noexcept {
  command_ = &command;
  loaded_ = &loaded;
  path_ = path_inside(loaded.effective.policy.environment);
  record_ = &record;
}

// What was read before there was a host to ask: names as they were given, since the links on their way decide.
void RunSpare::note_files(const LoadedPolicy& loaded) const {
  const policy::MergeContext& context = loaded.context;
  std::vector<std::string> files = policy_files(flags_.policy, context);
  files.insert(files.end(), {"/etc/passwd", context.workspace, context.workspace + "/.git", context.cwd, own_variable("HOME")});
  if (!flags_.policy.workspace.empty()) files.push_back(flags_.policy.workspace.back());
  if (!flags_.policy.cwd.empty()) files.push_back(flags_.policy.cwd);
  for (const std::string& file : files) {
    if (!file.empty()) host_.note_file(file.starts_with('/') ? file : words_.cwd + "/" + file);
  }
}

RunSpare::Fit RunSpare::fit_of(const warm::Visitor& visitor) {
  if (visitor.proof != proof_ || visitor.run.kind() != kind_ || visitor.inherited != inherited_ || !visitor.caller ||
      visitor.has_left())
    return Fit::kAnother;
  if (visitor.caller != own_) return Fit::kOther;
  const policy::MergeContext& context = loaded_->context;
  const bool same = kernel::repository_of_worktree(context.workspace) == context.repository && host_name() == host_name_;
  return same && host_.changed().empty() ? Fit::kServes : Fit::kStale;
}

std::string RunSpare::told() const {
  const auto usage = kernel::measure_tree(kernel::list_tree(::getpid()), true);
  std::string options;
  for (std::size_t i = 2; i < words_.argv.size() && words_.argv[i] != "--"; ++i)
    options += (options.empty() ? "" : " ") + words_.argv[i];
  return format(R"({{"pid":{},"workspace":{},"options":{},"memory_bytes":{}}})", ::getpid(),
                policy::json_text(loaded_->context.workspace), policy::json_text(options), usage.memory.count);
}

Result<front::RemoteEnd*> RunSpare::await_use(int sandbox_pidfd, std::vector<std::string>& env) {
  // Whom it could not serve nobody is to make a sandbox for again, for a while.
  if (!host_.unanswered().empty()) return warm::note_cold(words_, inherited_), over("nobody can tell what becomes of the host");
  if (!host_.changed().empty()) return over("the host has changed");
  door_.emplace(BELLJAR_TRY(warm::Door::open(words_, inherited_, flags_.spare->since)));
  start_spare(words_, inherited_);
  make_heap_ready();
  const auto until = std::chrono::steady_clock::now() + kIdle;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    auto visitor = door_->next(left, sandbox_pidfd);
    if (!visitor) return over("nobody came, or its place is gone");
    if (visitor->ask == warm::wire::Ask::kRun) {
      const Fit fit = fit_of(*visitor);
      // Somebody of other rights, or of another control group, as another terminal's: one of the two places is theirs.
      const bool leaves = fit == Fit::kStale || (fit == Fit::kOther && !warm::has_room(words_, inherited_));
      if (leaves) door_->close();
      if (fit != Fit::kServes) (void)visitor->answer(warm::wire::Say::kRefused);
      if (leaves) return over(fit == Fit::kStale ? "the host has changed" : "another caller needs its place");
      if (fit != Fit::kServes) continue;
      BELLJAR_CHECK(take(*std::move(visitor), env));
      return this;
    }
    // Who is confined is neither told of the run's words nor obeyed.
    if (visitor->proof != proof_ || !visitor->caller || !visitor->caller->is_where(own_)) continue;
    (void)warm::tell(*visitor, told());
    if (visitor->ask == warm::wire::Ask::kEnd) return over("it was told to");
  }
}

namespace {
int g_client = -1;
// What a run of our own would be ended by depends on what it is at.
enum class Phase { kBeforeCommand, kCommandBegins, kAfterCommand };
volatile Phase g_phase = Phase::kBeforeCommand;

// The client dies by it, as a run of our own would, or is gone; the sandbox goes with us.
[[noreturn]] void end_with(int signal) noexcept {
  const warm::wire::Answer answer{warm::wire::Say::kSignalled, signal};
  if (signal != 0) (void)::send(g_client, &answer, sizeof answer, MSG_NOSIGNAL);
  for (;;) ::kill(::getpid(), SIGKILL);
}

// Several that come at once are one SIGIO.
void attend_client(int) {
  const int before = errno;
  // From its beginning on signals are the command's.
  pollfd gone{g_client, POLLRDHUP, 0};
  if (g_phase == Phase::kCommandBegins) {
    if (::poll(&gone, 1, 0) > 0 && (gone.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) end_with(0);
    errno = before;
    return;
  }
  for (;;) {
    warm::wire::Signal signal;
    const ssize_t size = ::recv(g_client, &signal, sizeof signal, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size <= 0) end_with(0);
    if (size != sizeof signal) continue;
    switch (signal.number) {
      case SIGINT:
        if (g_phase == Phase::kAfterCommand) break;
        [[fallthrough]];
      case SIGTERM:
      case SIGHUP:
      case SIGQUIT:
      case SIGUSR1:
      case SIGUSR2:
        end_with(signal.number);
      case SIGTSTP: {
        const warm::wire::Answer answer{warm::wire::Say::kStop, 0};
        (void)::send(g_client, &answer, sizeof answer, MSG_NOSIGNAL);
        break;
      }
      default:
        break;
    }
  }
  errno = before;
}

// Of our own writes, whose reader is gone or which are too long a file.
void end_by_own(int signal) { end_with(signal); }

constexpr int kOfWrites[] = {SIGPIPE, SIGXFSZ};

void handle(int signal, void (*handler)(int)) noexcept {
  struct sigaction action{};
  if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;  // as the run had it
  action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

void watch(int client, Phase phase) noexcept {
  g_client = client;
  g_phase = phase;
  handle(SIGIO, attend_client);
  for (const int signal : kOfWrites) handle(signal, end_by_own);
  ::fcntl(client, F_SETOWN, ::getpid());
  ::fcntl(client, F_SETFL, ::fcntl(client, F_GETFL) | O_ASYNC);
  attend_client(SIGIO);  // what came before
}

void unwatch(int client) noexcept {
  ::fcntl(client, F_SETFL, ::fcntl(client, F_GETFL) & ~O_ASYNC);
  std::signal(SIGIO, SIG_DFL);
  for (const int signal : kOfWrites) handle(signal, SIG_DFL);
}
}  // namespace

Result<void> RunSpare::take(warm::Visitor visitor, std::vector<std::string>& env) {
  CommandWords words = flags_;
  const auto parts = visitor.run.parts();
  const auto& argv = visitor.run.argv;
  if (parts.text != 0) words.shell_text = argv[static_cast<std::size_t>(parts.text)];
  words.program.assign(argv.begin() + parts.program, argv.end());
  auto command = command_from(words, flags_.policy.login, "");
  // Whether it is an agent is asked of the program, whose profile is another.
  if (!command || find_started_agent(*command, path_)) {
    (void)visitor.answer(warm::wire::Say::kRefused);
    return over("another program");
  }
  command->cwd = command_->cwd;
  *command_ = *std::move(command);
  flags_.shell_text = words.shell_text;
  flags_.program = words.program;
  // Where a shell is, is its caller's; nothing of the plan depends on it.
  std::erase_if(env, [](const std::string& entry) { return warm::wire::is_of_each_run(entry.c_str()); });
  std::erase_if(visitor.run.environment, [](const std::string& entry) { return !warm::wire::is_of_each_run(entry.c_str()); });
  for (std::string& entry : policy::build_environment(loaded_->effective.policy.environment, visitor.run.environment)) {
    if (warm::wire::is_of_each_run(entry.c_str())) env.push_back(std::move(entry));
  }
  // A client that did not wait for our answer runs the command itself.
  if (!visitor.answer(warm::wire::Say::kTaken) || !visitor.await_go()) return over("the client started cold");
  for (int n = 0; n < 3; ++n) {
    ::dup3(visitor.streams[static_cast<std::size_t>(n)].get(), n, 0);
    visitor.streams[static_cast<std::size_t>(n)].reset();
  }
  client_ = std::move(visitor);
  watch(fd(), Phase::kBeforeCommand);  // the streams are read by others, or by nobody
  for (const std::string& warning : loaded_->effective.warnings) print_note("warning: " + warning);
  return open_report(flags_, *loaded_, *record_);
}

// Whoever reads slowly what we tell must not be waited for when the run's caller is gone.
void RunSpare::watch_client() const { watch(fd(), Phase::kAfterCommand); }

void RunSpare::starting() { watch(fd(), Phase::kCommandBegins); }

// Who came meanwhile and waits at the door is turned away, which costs the command nothing any more. The next one is made meanwhile
// where a run that came now would find none; else when there is nothing that it could disturb.
void RunSpare::begun() {
  alone_ = warm::has_room(words_, inherited_);
  door_->close();
  if (alone_) start_spare(words_, inherited_);
  unwatch(fd());  // whoever supervises the command hears of both
}

void RunSpare::finish(int exit_code) {
  unwatch(fd());
  const WallTime now = std::chrono::system_clock::now();
  // Whoever reads what the command wrote waits for the last writer.
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int n = 0; n < 3; ++n) ::dup3(null.get(), n, 0);
  (void)client_->answer(warm::wire::Say::kEnded, exit_code);
  if (!alone_) start_spare(words_, inherited_, now);
}

int RunSpare::fd() const noexcept { return client_->connection.get(); }

std::optional<int> RunSpare::next() noexcept {
  warm::wire::Signal signal;
  const ssize_t size = ::recv(client_->connection.get(), &signal, sizeof signal, MSG_DONTWAIT | MSG_TRUNC);
  if (size == sizeof signal) return signal.number;
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) ::kill(::getpid(), SIGKILL);
  return std::nullopt;
}

void RunSpare::stop() noexcept { (void)client_->answer(warm::wire::Say::kStop); }

}  // namespace belljar::cli
