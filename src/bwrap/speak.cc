// From the words of a `bwrap` call to its exit code, in an order that keeps privileges out.
//
// A setuid or file-capability installation is refused before anything is read, and no_new_privs is set first:
// the recipe is carried out with the caller's rights and never with more. Options are parsed without side
// effects (parse.h) but for reading the descriptors that they name. Our copy of the environment is wiped
// before the clone, for pid 1 inside is a copy of this process.
#include "bwrap/speak.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/read_file.h"
#include "base/write_all.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "bwrap/parse.h"
#include "bwrap/texts.h"
#include "kernel/small_file.h"
#include "launch/recipe.h"

namespace belljar::bwrap {
namespace {

// The command line that is spoken here. Callers read it to learn which options there are.
constexpr std::string_view kVersion = "bubblewrap 0.11.0\n";

constexpr int kError = 3, kWarning = 4;  // sd-daemon(3)

void say(bool prefix, int level, std::string_view text) {
  const std::string line = format("{}bwrap: {}\n", prefix ? format("<{}>", level) : std::string(), text);
  (void)write_all(STDERR_FILENO, line);
}

Result<std::string> read_and_close(int fd) {
  auto all = read_at_most(fd, SIZE_MAX);
  if (!all) return Error(Code::kInvalidArgument, "cannot read").sys(errno, "read");
  ::close(fd);
  return *std::move(all);
}

std::uint64_t effective_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, data) < 0) return 0;
  return data[0].effective | std::uint64_t{data[1].effective} << 32;
}

// What --unshare-user-try asks before it tries.
bool has_user_namespaces() {
  struct stat facts{};
  if (::stat("/proc/self/ns/user", &facts) != 0) return false;
  const auto off = [](const char* file, char mark) {
    const auto text = kernel::read_small_file(-1, file);
    return text && !text->empty() && text->front() == mark && (text->size() == 1 || (*text)[1] == '\n');
  };
  return !off("/sys/module/user_namespace/parameters/enable", 'N') && !off("/proc/sys/user/max_user_namespaces", '0');
}

// The directory by the name that the caller's shell has for it, where that is right.
std::string current_directory() {
  char* const name = ::get_current_dir_name();
  std::string result = name != nullptr ? name : "";
  std::free(name);
  return result;
}

Surroundings surroundings_here() {
  Surroundings here;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) here.environment.emplace_back(*entry);
  here.uid = ::getuid();
  here.gid = ::getgid();
  here.capabilities = effective_capabilities();
  here.user_namespaces = has_user_namespaces();
  here.cwd = current_directory();
  char terminal[64];
  if (::isatty(STDOUT_FILENO) == 1 && ::ttyname_r(STDOUT_FILENO, terminal, sizeof terminal) == 0) here.terminal = terminal;
  here.read_fd = read_and_close;
  return here;
}

bool wants_to_know() {
  const char* const verbose = std::getenv("BELLJAR_VERBOSE");
  return verbose != nullptr && std::string_view(verbose) == "1";
}

// A number that is not open would be that of the next descriptor we make.
int find_closed(const launch::Recipe& recipe) {
  const auto closed = [](int fd) { return fd >= 0 && ::fcntl(fd, F_GETFD) < 0; };
  for (const int fd : {recipe.userns, recipe.userns2, recipe.pidns, recipe.sync_fd, recipe.block_fd, recipe.userns_block_fd,
                       recipe.info_fd, recipe.json_status_fd}) {
    if (closed(fd)) return fd;
  }
  for (const launch::RecipeOp& op : recipe.ops) {
    if (closed(op.fd)) return op.fd;
  }
  return -1;
}

int run(const Parsed& parsed) {
  if (const int fd = find_closed(parsed.recipe); fd >= 0) {
    say(parsed.level_prefix, kError, format("Invalid fd: {}: {}", fd, std::strerror(EBADF)));
    return 1;
  }
  if (wants_to_know()) {
    for (const std::string& weakness : weaknesses(parsed.recipe))
      say(parsed.level_prefix, kWarning, "weaker than `belljar run`: " + weakness);
  }
  const launch::RecipeEnd end = launch::run_recipe(parsed.recipe);
  if (end.failure.at != launch::RecipeFailure::FailedStep::kNone)
    say(parsed.level_prefix, kError, failure_text(parsed.recipe, end.failure));
  return end.exit_code;
}

}  // namespace

int speak(const std::string& name, std::span<const std::string> words) {
  // A caller that ignores SIGCHLD would have the kernel reap our child for us, wait(2).
  ::signal(SIGCHLD, SIG_DFL);
  const bool unprivileged = ::geteuid() == ::getuid() && ::getegid() == ::getgid();
  if (!unprivileged || (::getuid() != 0 && effective_capabilities() != 0)) {
    say(false, kError,
        "refused: this program has more privileges than its caller (setuid, or file capabilities), and is not made for that");
    return 1;
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
    say(false, kError, format("prctl(PR_SET_NO_NEW_PRIVS) failed: {}", std::strerror(errno)));
    return 1;
  }
  Surroundings here = surroundings_here();
  const Parsed parsed = parse_words(words, here);
  for (std::string& entry : here.environment) ::explicit_bzero(entry.data(), entry.size());  // pid 1 inside will be a copy of us
  for (const std::string& warning : parsed.warnings) say(parsed.level_prefix, kWarning, warning);
  switch (parsed.act) {
    case Parsed::Act::kHelp:
      return write_all(STDOUT_FILENO, help_text(name)) ? 0 : 1;
    case Parsed::Act::kVersion:
      return write_all(STDOUT_FILENO, kVersion) ? 0 : 1;
    case Parsed::Act::kUsage:
      (void)write_all(STDERR_FILENO, help_text(name));
      return 1;
    case Parsed::Act::kRefused:
      say(parsed.level_prefix, kError, parsed.refusal);
      return 1;
    case Parsed::Act::kRun:
      break;
  }
  return run(parsed);
}

}  // namespace belljar::bwrap
