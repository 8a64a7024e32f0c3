// Many files and many repositories: unpacking and cloning with live rules, and a start that does not ask how large the workspace
// is.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/format.h"
#include "bench/rows.h"

namespace belljar::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTreesGroup = "trees";
constexpr int kRounds = 5;

void fill(const fs::path& directory, int folders, int files_each) {
  for (int i = 0; i < folders; ++i) {
    const fs::path folder = directory / format("folder{}", i);
    fs::create_directories(folder);
    for (int k = 0; k < files_each; ++k) std::ofstream(folder / format("file{}", k)) << i << ' ' << k << '\n';
  }
}

// A workspace belongs to a person (work.cc says what it costs where it does not).
void give_away(const fs::path& directory) {
  if (::geteuid() == 0) run_process({"chown", "-R", "1000:1000", directory.string()});
}

// `text` makes files below a fresh directory each time: what was made before is removed only with the whole bench.
void compare_making(const Setting& setting, Report& report, const std::string& name, const fs::path& workspace,
                    const std::string& text) {
  const std::string script = "out=$(mktemp -d ./out.XXXXXX) && " + text;
  const Argv outside = {"/bin/sh", "-c", "cd '" + workspace.string() + "' && " + script};
  const Argv inside = {setting.belljar, "run", "--workspace", workspace.string(), "--cwd", workspace.string(), "-c", script};
  std::vector<std::string> failed;
  const auto samples = compare({{name + ", outside", [&] { return run_process(outside) == 0; }},
                                {name + ", inside", [&] { return run_process(inside) == 0; }}},
                               kRounds, failed);
  for (const std::string& one : failed) report.left_out.push_back(one + ": failed");
  if (!failed.empty()) return;
  report.add(kTreesGroup, name + ", outside", samples[0]);
  report.add(kTreesGroup, name + ", inside", samples[1]);
  report.compare_rows(kTreesGroup, name + ", inside", name + ", outside", 1.4);
}

void bench_clone(const Setting& setting, Report& report) {
  if (!installed("git")) return report.left_out.push_back("git: not installed");
  const fs::path workspace = fs::path(setting.directory) / "clone";
  fill(workspace / "from", 40, 250);
  give_away(workspace);
  for (const Argv& words : {Argv{"init", "-q"}, Argv{"add", "-A"}, Argv{"commit", "-qm", "all"}, Argv{"gc", "-q"}}) {
    Argv argv = {"git", "-C", (workspace / "from").string(), "-c", "safe.directory=*", "-c", "user.name=b", "-c", "user.email=b@b"};
    argv.insert(argv.end(), words.begin(), words.end());
    run_process(argv);
  }
  // A file: git clone takes -c from the environment of the upload-pack that it starts.
  std::ofstream(workspace / "config") << "[safe]\n\tdirectory = *\n";
  give_away(workspace);
  compare_making(setting, report, "git clone, 10 000 files", workspace,
                 "GIT_CONFIG_GLOBAL=\"$PWD/config\" git clone -q ./from \"$out/to\"");
}

void bench_unpack(const Setting& setting, Report& report) {
  if (!installed("tar")) return report.left_out.push_back("tar: not installed");
  const fs::path workspace = fs::path(setting.directory) / "unpack";
  fill(workspace / "from", 60, 500);
  run_process({"tar", "-C", workspace.string(), "-cf", (workspace / "from.tar").string(), "from"});
  fs::remove_all(workspace / "from");
  give_away(workspace);
  compare_making(setting, report, "tar, 30 000 files", workspace, "tar -C $out -xf from.tar");
}

// As git makes one, as far as the rules look.
void make_repositories(const fs::path& directory, int count) {
  fs::create_directories(directory);
  for (int i = 0; i < count; ++i) {
    const fs::path git = directory / format("r{}", i) / ".git";
    for (const char* below : {"objects", "refs", "hooks"}) fs::create_directories(git / below);
    std::ofstream(git / "HEAD") << "ref: refs/heads/main\n";
    std::ofstream(git / "config") << "[core]\n\tbare = false\n";
  }
  give_away(directory);
}

// Starts of `true` take turns in the workspaces; the first is empty.
void bench_start(const Setting& setting, Report& report) {
  struct Tree {
    std::string name;
    fs::path at;
  };
  std::vector<Tree> trees;
  for (const int count : {0, 10, 1000}) {
    trees.push_back({format("start, {} repositories", count), fs::path(setting.directory) / format("repositories{}", count)});
    make_repositories(trees.back().at, count);
  }
  trees.push_back({format("start, {} files", setting.files), fs::path(setting.directory) / "many"});
  fill(trees.back().at, setting.files / 1000, 1000);
  give_away(trees.back().at);
  std::vector<Rival> rivals;
  for (const Tree& tree : trees) {
    const Argv argv = {setting.belljar, "run", "--workspace", tree.at.string(), "--cwd", tree.at.string(), "--", "/bin/true"};
    rivals.push_back({tree.name, [argv] { return run_process(argv) == 0; }});
  }
  std::vector<std::string> failed;
  const auto samples = compare(rivals, setting.runs, failed);
  for (const std::string& one : failed) report.left_out.push_back(one + ": failed");
  if (!failed.empty()) return;
  for (std::size_t i = 0; i < trees.size(); ++i) report.add(kTreesGroup, trees[i].name, samples[i]);
  for (std::size_t i = 1; i < trees.size(); ++i) report.compare_rows(kTreesGroup, trees[i].name, trees[0].name, 1.1);
}

}  // namespace

void bench_trees(const Setting& setting, Report& report) {
  bench_start(setting, report);
  bench_clone(setting, report);
  bench_unpack(setting, report);
}

}  // namespace belljar::bench
