// Whole processes: what a caller of `belljar run -- /bin/true` waits for, and what a caller of the others waits for.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "bench/rows.h"

namespace belljar::bench {
namespace {

constexpr const char* kProcessGroup = "process";

// A bundle that shows the host's tree read-only, as the others do.
void write_bundle(const std::string& directory) {
  std::ofstream(directory + "/config.json")
      << R"({"ociVersion":"1.0.0","process":{"terminal":false,"user":{"uid":0,"gid":0},"args":["/bin/true"],"cwd":"/",)"
         R"("env":["PATH=/usr/bin:/bin"],"noNewPrivileges":true},"root":{"path":"/","readonly":true},"mounts":[)"
         R"({"destination":"/proc","type":"proc","source":"proc"},)"
         R"({"destination":"/dev","type":"tmpfs","source":"tmpfs","options":["nosuid","mode=755","size=65536k"]}],)"
         R"("linux":{"namespaces":[{"type":"pid"},{"type":"network"},{"type":"ipc"},{"type":"uts"},{"type":"mount"}]}})";
}

// The two that the next runs will find; five seconds at most.
void await_spares(const std::string& directory) {
  for (int polls = 0; polls < 500; ++polls) {
    std::error_code ignored;
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) count += entry.is_socket() ? 1 : 0;
    if (count >= 2) return;
    ::usleep(10'000);
  }
}

}  // namespace

std::vector<Peer> process_peers(const Setting& setting) {
  write_bundle(setting.directory);
  const std::string& here = setting.directory;
  return {
      {"bwrap",
       {"bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", here, here,
        "--die-with-parent", "--new-session", "--", "/bin/true"}},
      {"crun", {"crun", "--root", here + "/crun", "--cgroup-manager=disabled", "run", "--bundle", here, "belljar-bench"}},
      {"docker", {"docker", "run", "--rm", "--network", "none", "--pull", "never", "busybox", "/bin/true"}},
      {"codex", {"codex", "sandbox", "--", "/bin/true"}},
      {"srt", {"srt", "/bin/true"}},
  };
}

void bench_process(const Setting& setting, Report& report) {
  ::setenv("XDG_STATE_HOME", (setting.directory + "/state").c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread
  std::vector<Rival> rivals = {
      {"bare", [] { return run_process({"/bin/true"}) == 0; }},
      {"belljar, warm",
       [&] { return run_process({setting.belljar, "run", "--warm", "--workspace", setting.directory, "--", "/bin/true"}) == 0; },
       [&] { await_spares(setting.directory + "/state/belljar/warm"); }},
      {"belljar", [&] { return run_process({setting.belljar, "run", "--workspace", setting.directory, "--", "/bin/true"}) == 0; }}};
  for (const Peer& peer : process_peers(setting)) {
    if (!installed(peer.argv[0])) {
      report.left_out.push_back(peer.name + ": not installed");
      continue;
    }
    if (run_process(peer.argv) != 0) {
      report.left_out.push_back(peer.name + ": installed, but cannot start anything here");
      continue;
    }
    rivals.push_back({peer.name, [argv = peer.argv] { return run_process(argv) == 0; }});
  }
  std::vector<std::string> failed;
  const std::vector<Samples> samples = compare(rivals, setting.runs, failed);
  run_process({setting.belljar, "warm", "--stop"});
  ::unsetenv("XDG_STATE_HOME");  // NOLINT(concurrency-mt-unsafe)
  for (const std::string& name : failed) report.left_out.push_back(name + ": a run failed, so none is shown");
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    if (!samples[i].us.empty()) report.add(kProcessGroup, rivals[i].name, samples[i]);
  }
  report.compare_rows(kProcessGroup, "belljar", "bwrap", 0.5);
  report.compare_rows(kProcessGroup, "belljar, warm", "bwrap", 0.35);
  for (const char* name : {"crun", "docker", "codex", "srt"}) report.compare_rows(kProcessGroup, name, "bwrap", 0);
}

}  // namespace belljar::bench
