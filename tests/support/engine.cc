#include "support/engine.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/format.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr char kBusybox[] = "/bin/busybox";
constexpr char kPath[] = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

// With the groups of containers that outlived a killed engine: their processes are gone, their directories are not.
void remove_group(const fs::path& group) {
  std::error_code ignored;
  for (const auto& below : fs::directory_iterator(group, ignored)) {
    if (below.is_directory(ignored)) remove_group(below.path());
  }
  ::rmdir(group.c_str());
}

std::string cgroup_name() { return format("belljar-test-{}", ::getpid()); }

void remove_cgroups() {
  std::error_code ignored;
  std::vector<fs::path> roots = {"/sys/fs/cgroup"};
  for (const auto& entry : fs::directory_iterator("/sys/fs/cgroup", ignored)) roots.push_back(entry.path());
  for (const fs::path& root : roots) remove_group(root / cgroup_name());
}

}  // namespace

namespace {

std::string why_none(EngineKind kind) {
  if (!is_root()) return "only as root";
  for (const char* name : {kind == EngineKind::kDocker ? "dockerd" : "podman", "docker", "unshare"}) {
    if (const std::string missing = program(name); !missing.empty() && !fs::exists(std::string("/usr/sbin/") + name))
      return missing;
  }
  return fs::exists(kBusybox) ? "" : "needs the program busybox (./dev setup test)";
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1).substr(0, 300);
}

}  // namespace

// Whoever runs the tests may be in a container that lets no engine mount or make groups.
std::string start_engine(std::unique_ptr<Engine>& engine, EngineKind kind) {
  if (std::string why = why_none(kind); !why.empty()) return why;
  try {
    engine = std::make_unique<Engine>(kind);
  } catch (const std::runtime_error& error) {
    return "needs a container engine that starts: " + last_line(error.what());
  }
  return "";
}

Engine::Engine(EngineKind kind) : kind_(kind) {
  // Where the library keeps what containers need: not this machine's own.
  ::setenv("XDG_STATE_HOME", (directory_ / "state").c_str(), 1);
  try {
    start();
    import_image();
  } catch (...) {
    end();
    throw;
  }
}

Engine::~Engine() { end(); }

void Engine::end() {
  ::unsetenv("XDG_STATE_HOME");
  if (daemon_ != nullptr) stop();
  remove_cgroups();
}

std::vector<std::string> Engine::dockerd() const {
  return {"dockerd",
          "--data-root",
          directory_ / "data",
          "--exec-root",
          directory_ / "exec",
          "--pidfile",
          directory_ / "pid",
          "--host",
          address(),
          "--config-file",
          directory_.write("daemon.json", "{}"),
          "--bridge=none",
          "--iptables=false",
          "--ip-masq=false",
          "--storage-driver=vfs",  // works wherever the directory lies
          "--cgroup-parent=/" + cgroup_name()};
}

std::vector<std::string> Engine::podman() const {
  return {"podman",
          "--root",
          directory_ / "data",
          "--runroot",
          directory_ / "exec",
          "--storage-driver=vfs",
          "--cgroup-manager=cgroupfs",
          "--runtime=runc",
          "--events-backend=file"};
}

// A pid and a mount namespace of its own: the engine is pid 1 there, so whatever it started ends with it, and its mounts as well.
void Engine::start() {
  const std::string log = directory_ / "log";
  std::vector<std::string> argv = {
      "/bin/sh",           "-c",          "exec \"$@\" >>" + log + " 2>&1", "sh", "unshare", "--mount", "--pid", "--fork",
      "--kill-child=KILL", "--mount-proc"};
  std::vector<std::string> words = dockerd();
  if (kind_ == EngineKind::kPodman) {
    words = podman();
    words.insert(words.end(), {"system", "service", "--time=0", address()});
  }
  argv.insert(argv.end(), words.begin(), words.end());
  // What Podman asks for by itself is more than an unprivileged root may set.
  const std::string limits =
      directory_.write("containers.conf", "[containers]\ndefault_ulimits = [\"nofile=4096:4096\", \"nproc=4096:4096\"]\n");
  // Of one that was killed: pids in these files are others' in a new pid namespace.
  ::unlink((directory_ / "pid").c_str());
  std::error_code ignored;
  fs::remove_all(directory_ / "exec", ignored);
  daemon_ = std::make_unique<Running>(
      argv, RunOptions{.stdin_is = Input::kNull, .env = {{"PATH", kPath}, {"CONTAINERS_CONF", limits}}, .timeout = 600s});
  for (int turn = 0; turn < 600; ++turn, std::this_thread::sleep_for(100ms)) {  // a minute, until it answers or is gone
    if (client({"version"}).exit_code == 0) return;
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(daemon_->pid()), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0) break;
  }
  throw std::runtime_error("dockerd: " + read_file(log));
}

void Engine::stop(int signal) {
  // unshare passes nothing on: the daemon itself is told, and unshare ends with it.
  if (std::ifstream children(format("/proc/{0}/task/{0}/children", daemon_->pid())); children) {
    pid_t child = 0;
    if (children >> child) ::kill(child, signal);
  }
  daemon_->wait();
  daemon_.reset();
}

Outcome Engine::client(std::vector<std::string> words) const {
  words.insert(words.begin(), {"docker", "--host", address()});
  return run(words, {.env = {{"PATH", kPath}, {"HOME", directory_.path()}}});
}

// By the command of Podman itself: what its service imports it leaves in /var/tmp.
Outcome Engine::import(const std::string& tar, const std::string& name) const {
  if (kind_ == EngineKind::kDocker) return client({"import", tar, name});
  std::vector<std::string> words = podman();
  words.insert(words.end(), {"import", tar, name});
  return run(words, {.env = {{"PATH", kPath}, {"HOME", directory_.path()}}});
}

std::vector<std::string> Engine::containers() const {
  std::istringstream lines(client({"ps", "--all", "--quiet", "--no-trunc"}).out);
  std::vector<std::string> ids;
  for (std::string line; std::getline(lines, line);) ids.push_back(line);
  return ids;
}

void Engine::import_image() {
  const std::string root = directory_.make_dir("root");
  for (const char* name : {"bin", "etc", "root", "tmp", "var/tmp"}) fs::create_directories(root + "/" + name);
  fs::permissions(root + "/tmp", fs::perms(01777));
  fs::permissions(root + "/var/tmp", fs::perms(01777));
  fs::copy_file(kBusybox, root + "/bin/busybox");
  std::istringstream applets(run({kBusybox, "--list"}).out);
  for (std::string name; std::getline(applets, name);) {
    if (name != "busybox") fs::create_symlink("busybox", root + "/bin/" + name);
  }
  directory_.write("root/etc/passwd", "root:x:0:0::/root:/bin/sh\nguest:x:21000:21000::/home:/bin/sh\n");
  // As images of Node have it, and another one than this machine may have.
  directory_.write("root/bin/bash", "#!/bin/sh\nexec /bin/sh \"$@\"\n", 0755);
  directory_.write("root/bin/node", "#!/bin/sh\necho v20.0.0-of-the-image\n", 0755);
  const Outcome packed = run({"tar", "--create", "--file", directory_ / "image.tar", "--directory", root, "."});
  const Outcome imported = import(directory_ / "image.tar", image());
  if (packed.exit_code != 0 || imported.exit_code != 0) throw std::runtime_error("import: " + packed.err + imported.err);
}

}  // namespace belljar::test
