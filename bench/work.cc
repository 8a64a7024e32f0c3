// Real work inside and outside: a build, git on a large tree, a flood of output; and what the front itself takes.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"
#include "bench/rows.h"

namespace belljar::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWorkGroup = "work";
constexpr int kFolders = 40, kFilesEach = 250;  // 10 000 files

void write_sources(const fs::path& directory) {
  fs::create_directories(directory);
  for (int i = 0; i < 4; ++i) {
    std::ofstream(directory / ("part" + std::to_string(i) + ".cc"))
        << "#include <algorithm>\n#include <map>\n#include <string>\n#include <vector>\nint part" << i
        << "(const std::vector<std::string>& words) {\n  std::map<std::string, int> count;\n"
           "  for (const auto& word : words) ++count[word];\n  return static_cast<int>(count.size());\n}\n";
  }
}

void write_tree(const fs::path& directory) {
  for (int i = 0; i < kFolders; ++i) {
    const fs::path folder = directory / ("folder" + std::to_string(i));
    fs::create_directories(folder);
    for (int k = 0; k < kFilesEach; ++k) std::ofstream(folder / ("file" + std::to_string(k))) << i << ' ' << k << '\n';
  }
  // A workspace belongs to a person. One that belongs to root shows another owner inside (never uid 0), git takes every file for
  // changed and reads it again: 5 times the time, which is a case of its own.
  if (::geteuid() == 0) run_process({"chown", "-R", "1000:1000", directory.string()});
  const Argv git = {
      "git", "-C", directory.string(), "-c", "safe.directory=*", "-c", "user.name=bench", "-c", "user.email=b@localhost"};
  for (const Argv& words : {Argv{"init", "-q"}, Argv{"add", "-A"}, Argv{"commit", "-qm", "all"}}) {
    Argv argv = git;
    argv.insert(argv.end(), words.begin(), words.end());
    run_process(argv);
  }
}

Argv inside(const Setting& setting, const fs::path& workspace, const std::string& text) {
  return {setting.belljar, "run", "--workspace", workspace.string(), "--cwd", workspace.string(), "-c", text};
}

void compare_work(const Setting& setting, Report& report, const std::string& name, const fs::path& workspace,
                  const std::string& text, int runs) {
  const Argv outside = {"/bin/sh", "-c", "cd '" + workspace.string() + "' && " + text};
  const Argv within = inside(setting, workspace, text);
  std::vector<std::string> failed;
  const auto samples = compare({{name + ", outside", [&] { return run_process(outside) == 0; }},
                                {name + ", inside", [&] { return run_process(within) == 0; }}},
                               runs, failed);
  for (const std::string& one : failed) report.left_out.push_back(one + ": failed");
  if (!failed.empty()) return;
  report.add(kWorkGroup, name + ", outside", samples[0]);
  report.add(kWorkGroup, name + ", inside", samples[1]);
  report.compare_rows(kWorkGroup, name + ", inside", name + ", outside", 1.03);
}

// Reads all that `argv` writes to a pipe; false unless it is exactly `bytes`.
bool drain(const Argv& argv, std::size_t bytes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return false;
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), 1);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return false;
  write_end.reset();
  std::vector<char> buffer(1U << 17);
  std::size_t total = 0;
  ssize_t got = 0;
  while ((got = ::read(read_end.get(), buffer.data(), buffer.size())) > 0) total += static_cast<std::size_t>(got);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 && total == bytes;
}

void bench_output(const Setting& setting, Report& report) {
  constexpr std::size_t kBytes = 200'000'000;
  const std::string text = "head -c 200000000 /dev/zero";
  std::vector<std::string> failed;
  const auto samples =
      compare({{"200 MB to a pipe, outside", [&] { return drain({"/bin/sh", "-c", text}, kBytes); }},
               {"200 MB to a pipe, inside", [&] { return drain(inside(setting, setting.directory, text), kBytes); }}},
              5, failed);
  for (const std::string& one : failed) report.left_out.push_back(one + ": failed or bytes were lost");
  if (!failed.empty()) return;
  report.add(kWorkGroup, "200 MB to a pipe, outside", samples[0]);
  report.add(kWorkGroup, "200 MB to a pipe, inside", samples[1]);
  report.compare_rows(kWorkGroup, "200 MB to a pipe, inside", "200 MB to a pipe, outside", 0);
}

double peak_kib(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6));
  }
  return 0;
}

// VmHWM of the front while its command waits for input.
void bench_memory(const Setting& setting, Report& report) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) < 0 || ::pipe2(out, O_CLOEXEC) < 0) return;
  UniqueFd in_read(in[0]), in_write(in[1]), out_read(out[0]), out_write(out[1]);
  const Argv argv = inside(setting, setting.directory, "echo ready; read line");
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in_read.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, out_write.get(), 1);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  in_read.reset();
  out_write.reset();
  if (error != 0) return;
  char word[8];
  const bool ready = ::read(out_read.get(), word, sizeof word) > 0;
  Samples peak;
  if (ready) peak.us.push_back(peak_kib(pid));
  in_write.reset();
  ::waitpid(pid, nullptr, 0);
  if (!ready) return report.left_out.push_back("memory of the front: the command did not start");
  report.add("memory", "front process, peak resident", peak);
  report.rows.back().unit = "KiB";
  report.rows.back().target = 3072;
}

}  // namespace

void bench_work(const Setting& setting, Report& report) {
  const fs::path sources = fs::path(setting.directory) / "sources", tree = fs::path(setting.directory) / "tree";
  write_sources(sources);
  if (installed("g++")) compare_work(setting, report, "g++, 4 files", sources, "for f in *.cc; do g++ -O1 -c $f; done", 7);
  else report.left_out.push_back("g++: not installed");
  if (installed("git")) {
    write_tree(tree);
    compare_work(setting, report, "10 x git status, 10 000 files", tree,
                 "for i in 0 1 2 3 4 5 6 7 8 9; do git -c safe.directory=* --no-optional-locks status --short; done", 15);
  } else {
    report.left_out.push_back("git: not installed");
  }
  bench_output(setting, report);
  bench_memory(setting, report);
}

}  // namespace belljar::bench
