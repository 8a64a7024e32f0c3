#include "support/local_shell.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/format.h"
#include "base/unique_fd.h"
#include "support/eventually.h"
#include "support/leftovers.h"

namespace belljar::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using remote::shell::Machine;
using remote::shell::ScriptOutput;

constexpr milliseconds kLeast = std::chrono::minutes(1);

std::string mark_of(const std::string& id) { return "BELLJAR_LOCAL_CLOUD=" + id; }

// In the midst of execve(2) or of its end: it has no environment to read. That of another may be empty, and is somewhere all the
// same.
bool is_changing(pid_t pid) {
  std::ifstream file(format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  std::istringstream words(text.substr(std::min(text.rfind(')'), text.size() - 1) + 1));
  std::string word;
  for (int field = 3; field <= 51 && words >> word; ++field) continue;  // proc(5): env_end
  return word == "0";
}

// Kills all that carry the mark. True: there were none, and none of this test that may carry it in a moment.
bool kill_marked(const std::string& mark) {
  bool none = true;
  const std::map<pid_t, std::string> ours = descendants();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (read.ec != std::errc() || read.ptr != name.data() + name.size()) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    const bool is_marked = text.str().find(mark + '\0') != std::string::npos;
    if (is_marked) ::kill(pid, SIGKILL);
    if (is_marked || (text.str().empty() && ours.contains(pid) && is_changing(pid))) none = false;
  }
  return none;
}

struct Spawned {
  pid_t pid = -1;
  UniqueFd out, err;
};

Result<Spawned> spawn(const std::string& shell, const std::string& script, const std::vector<std::string>& environment) {
  std::array<int, 2> out{}, err{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0) return Error(Code::kResourceExhausted, "no pipe");
  Spawned spawned{.pid = -1, .out = UniqueFd(out[0]), .err = {}};
  const UniqueFd out_write(out[1]);
  if (::pipe2(err.data(), O_CLOEXEC) != 0) return Error(Code::kResourceExhausted, "no pipe");
  spawned.err = UniqueFd(err[0]);
  const UniqueFd err_write(err[1]);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out_write.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, err_write.get(), 2);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> env;
  for (const std::string& entry : environment) env.push_back(const_cast<char*>(entry.c_str()));
  env.push_back(nullptr);
  // "busybox sh" is two words.
  std::vector<std::string> words;
  std::stringstream text(shell);
  for (std::string word; text >> word;) words.push_back(word);
  words.insert(words.end(), {"-c", script});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int failed = ::posix_spawn(&spawned.pid, argv[0], &actions, &attributes, argv.data(), env.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) return Error(Code::kResourceExhausted, "cannot start a shell").sys(failed, "posix_spawn");
  return spawned;
}

// Until all its output is there: who holds it open holds the answer, too.
Result<ScriptOutput> follow(Spawned spawned, milliseconds longest, milliseconds patience, int cancel_fd) {
  ScriptOutput said;
  const auto begun = Clock::now();
  const auto end = begun + std::min(longest, patience);
  bool out_open = true, err_open = true;
  std::optional<Error> failed;
  while ((out_open || err_open) && !failed) {
    std::array<pollfd, 3> fds = {{{.fd = out_open ? spawned.out.get() : -1, .events = POLLIN, .revents = 0},
                                  {.fd = err_open ? spawned.err.get() : -1, .events = POLLIN, .revents = 0},
                                  {.fd = cancel_fd, .events = POLLIN, .revents = 0}}};
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      if (longest < patience) break;  // the service ends it, and says what there is
      failed = Error(Code::kDeadlineExceeded, "cannot run it").reason("no answer in time");
      break;
    }
    ::poll(fds.data(), fds.size(), static_cast<int>(left.count()) + 1);
    if (fds[2].revents != 0) failed = Error(Code::kCanceled, "cannot run it").reason("cancelled");
    std::array<char, 65536> buffer;
    const auto take = [&](const pollfd& fd, bool& open, std::string& text) {
      if (fd.revents == 0) return;
      const ssize_t got = ::read(fd.fd, buffer.data(), buffer.size());
      if (got <= 0) open = false;
      else text.append(buffer.data(), static_cast<std::size_t>(got));
    };
    take(fds[0], out_open, said.out);
    take(fds[1], err_open, said.err);
  }
  // Whoever gave up left it running over there.
  if (failed) std::thread([pid = spawned.pid] { ::waitpid(pid, nullptr, 0); }).detach();
  if (failed) return *failed;
  if (out_open || err_open) ::kill(-spawned.pid, SIGKILL);
  int status = 0;
  ::waitpid(spawned.pid, &status, 0);
  said.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return said;
}

Error unreachable(std::string why) { return Error(Code::kUnavailable, "cannot reach the sandbox").reason(std::move(why)); }

Result<void> wait_for_cancel(milliseconds patience, int cancel_fd) {
  pollfd cancelled{.fd = cancel_fd, .events = POLLIN, .revents = 0};
  if (::poll(&cancelled, 1, static_cast<int>(std::min<std::int64_t>(patience.count(), 60'000))) > 0)
    return Error(Code::kCanceled, "cannot run it").reason("cancelled");
  return Error(Code::kDeadlineExceeded, "cannot run it").reason("no answer in time");
}

}  // namespace

class LocalCloud::Local final : public Machine {
 public:
  Local(const LocalCloud& cloud, std::string id) : cloud_(cloud), id_(std::move(id)) {}

  const std::string& id() const noexcept override { return id_; }
  Limits limits() const noexcept override { return cloud_.limits; }
  Result<void> health(int cancel_fd) const override {
    ++cloud_.calls_;
    if (cloud_.fault && cloud_.fault("health") == Fault::kStalled) return wait_for_cancel(std::chrono::minutes(1), cancel_fd);
    if (cloud_.state(id_) != State::kRuns) return unreachable("it does not run");
    return {};
  }

  Result<ScriptOutput> run(const std::string& script, milliseconds patience, int cancel_fd) const override {
    ++cloud_.calls_;
    if (!cloud_.around) return answer(script, patience, cancel_fd);
    cloud_.around(true);
    auto said = answer(script, patience, cancel_fd);
    cloud_.around(false);
    return said;
  }

  Result<ScriptOutput> answer(const std::string& script, milliseconds patience, int cancel_fd) const {
    if (cloud_.state(id_) == State::kGone) return Error(Code::kNotFound, "cannot run it").reason("there is no such sandbox");
    if (cloud_.state(id_) != State::kRuns) return unreachable("it is paused");
    if (script.size() > cloud_.limits.script)
      return Error(Code::kInvalidArgument, "cannot run it").reason(format("a script of {} bytes", script.size()));
    const Fault fault = cloud_.fault ? cloud_.fault(script) : Fault::kNone;
    if (fault == Fault::kBusy) return Error(Code::kResourceExhausted, "cannot run it").reason("asked too often");
    if (fault == Fault::kNever) return unreachable("lost on the way there");
    if (fault == Fault::kStalled) return wait_for_cancel(patience, cancel_fd).error();
    Spawned spawned = BELLJAR_TRY(begin(script));
    ScriptOutput said = BELLJAR_TRY(
        follow(std::move(spawned), std::max(cloud_.limits.longest, kLeast), patience, fault == Fault::kLost ? -1 : cancel_fd));
    if (fault == Fault::kLost) return unreachable("lost on the way back");
    if (cloud_.state(id_) != State::kRuns) return unreachable("it ended meanwhile");
    if (fault == Fault::kMended) std::ranges::replace(said.out, '\n', '?');
    if (said.out.size() > cloud_.limits.output || (fault == Fault::kCut && said.out.size() > 20)) {
      const std::size_t keep = std::min(cloud_.limits.output, said.out.size() - 10) / 2;
      said.out = said.out.substr(0, keep) + "\n[... cut ...]\n" + said.out.substr(said.out.size() - keep);
    }
    return said;
  }

  // With its environment, by which kill() finds it, or not at all.
  Result<Spawned> begin(const std::string& script) const {
    const std::lock_guard lock(cloud_.beginning_);
    if (cloud_.state(id_) != State::kRuns) return unreachable("it ended meanwhile");
    return spawn(cloud_.shell, script, cloud_.environment(id_));
  }

  std::optional<Result<std::string>> read(const std::string& path, int /*cancel_fd*/) const override {
    if (!cloud_.takes_files) return std::nullopt;
    ++cloud_.file_calls_;
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) return Error(Code::kPermissionDenied, "cannot read it");
    return std::move(text).str();
  }
  std::optional<Result<void>> write(const std::string& path, std::string_view bytes, int /*cancel_fd*/) const override {
    if (!cloud_.takes_files) return std::nullopt;
    ++cloud_.file_calls_;
    std::error_code ignored;
    fs::create_directories(fs::path(path).parent_path(), ignored);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return Error(Code::kPermissionDenied, "cannot write it");
    return Result<void>();
  }

 private:
  const LocalCloud& cloud_;
  std::string id_;
};

LocalCloud::LocalCloud() : workspace_(root_.make_dir("home")) {}

LocalCloud::~LocalCloud() {
  std::vector<std::string> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, state] : sandboxes_) ids.push_back(id);
  }
  for (const std::string& id : ids) (void)kill(id);
}

LocalCloud::State LocalCloud::state(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? State::kGone : found->second;
}

std::vector<std::string> LocalCloud::environment(const std::string& id) const {
  return {"PATH=" + path, "TMPDIR=" + (root_ / id), "HOME=" + workspace_, mark_of(id), "FROM_IMAGE=yes"};
}

std::size_t LocalCloud::alive() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(sandboxes_, [](const auto& entry) { return entry.second != State::kGone; }));
}

std::vector<std::string> LocalCloud::private_dirs() const {
  std::vector<std::string> found;
  for (const auto& sandbox : fs::directory_iterator(root_.path())) {
    if (sandbox.path().filename() == "home") continue;
    for (const auto& entry : fs::directory_iterator(sandbox)) {
      if (entry.path().filename().string().starts_with(".belljar-")) found.push_back(entry.path());
    }
  }
  return found;
}

Result<void> LocalCloud::check_supported(const Policy& policy) const {
  if (!policy.limits.disk) return {};
  return Error(Code::kUnimplemented, "the shell backend does not serve limits.disk");
}

remote::shell::ClauseEnforcement LocalCloud::holds(const Policy& /*policy*/, std::string_view clause) const {
  if (clause == "network" || clause == "limits.memory")
    return {.enforced = Enforced::kPartial, .mechanism = "asked of the service", .detail = "the word of the service"};
  return {};
}

Result<std::shared_ptr<const Machine>> LocalCloud::create(const Policy& /*policy*/, const CancelToken& /*cancel*/) const {
  if (broken_control) return Error(*broken_control, "cannot create a sandbox").reason("told to fail");
  const std::string id = format("local-{}-{}", ::getpid(), ++serial_);
  root_.make_dir(id);
  const std::lock_guard lock(mutex_);
  sandboxes_[id] = State::kRuns;
  return std::shared_ptr<const Machine>(std::make_shared<Local>(*this, id));
}

Result<std::shared_ptr<const Machine>> LocalCloud::connect(const std::string& id, const CancelToken& /*cancel*/) const {
  if (broken_control) return Error(*broken_control, "cannot connect to the sandbox").reason("told to fail");
  const std::lock_guard lock(mutex_);
  const auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) return Error(Code::kNotFound, "cannot connect to the sandbox").reason("there is none");
  found->second = State::kRuns;
  return std::shared_ptr<const Machine>(std::make_shared<Local>(*this, id));
}

Result<bool> LocalCloud::kill(const std::string& id, const CancelToken& /*cancel*/) const {
  if (broken_control) return Error(*broken_control, "cannot end the sandbox").reason("told to fail");
  {
    const std::lock_guard lock(mutex_);
    if (sandboxes_.erase(id) == 0) return false;
  }
  const std::lock_guard lock(beginning_);
  eventually([&] { return kill_marked(mark_of(id)); });
  std::error_code ignored;
  fs::remove_all(root_ / id, ignored);
  return true;
}

Result<void> LocalCloud::pause(const std::string& id, const CancelToken& /*cancel*/) const {
  if (broken_control) return Error(*broken_control, "cannot pause the sandbox").reason("told to fail");
  const std::lock_guard lock(mutex_);
  const auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) return Error(Code::kNotFound, "cannot pause the sandbox").reason("there is none");
  found->second = State::kPaused;
  return {};
}

Result<void> LocalCloud::set_timeout(const std::string& id, milliseconds /*lifetime*/) const {
  if (state(id) == State::kGone) return Error(Code::kNotFound, "cannot set its time").reason("there is none");
  return {};
}

}  // namespace belljar::test
