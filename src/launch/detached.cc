#include "launch/detached.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"

namespace belljar::launch {
namespace {

// As execve takes them; borrowed from `words`.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));  // posix_spawn does not write to them
  result.push_back(nullptr);
  return result;
}

class FileActions {
 public:
  explicit FileActions(int channel) {
    ::posix_spawn_file_actions_init(&actions_);
    // A duplicate onto itself loses its close-on-exec flag as well, posix_spawn_file_actions_adddup2(3).
    if (channel >= 0) note(::posix_spawn_file_actions_adddup2(&actions_, channel, kDetachedChannel));
    note(::posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0));
    note(::posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0));
    note(::posix_spawn_file_actions_addopen(&actions_, 2, "/dev/null", O_WRONLY, 0));
    note(::posix_spawn_file_actions_addclosefrom_np(&actions_, kDetachedChannel + (channel >= 0 ? 1 : 0)));
  }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  int error() const noexcept { return error_; }
  const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  void note(int error) noexcept {
    if (error_ == 0) error_ = error;
  }
  posix_spawn_file_actions_t actions_;
  int error_ = 0;
};

class Attributes {
 public:
  explicit Attributes(Ignored ignored) {
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    const int defaults = ignored == Ignored::kNone ? POSIX_SPAWN_SETSIGDEF : 0;
    ::posix_spawnattr_setflags(&attributes_, static_cast<short>(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | defaults));
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<void> start_detached(const std::string& program, const std::vector<std::string>& argv, const std::vector<std::string>& env,
                            int channel, Ignored ignored) {
  const FileActions actions(channel);
  const Attributes attributes(ignored);
  pid_t pid = -1;
  int error = actions.error();
  if (error == 0)
    error = ::posix_spawn(&pid, program.c_str(), actions.get(), attributes.get(), pointers(argv).data(), pointers(env).data());
  if (error == 0) return {};
  return Error(error == ENOENT ? Code::kUnavailable : Code::kResourceExhausted, format("cannot start {}", quoted(program)))
      .sys(error, "posix_spawn");
}

}  // namespace belljar::launch
