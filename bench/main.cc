// belljar-bench [--runs N] [--only GROUP] [--sandboxes N] [--execs N] [--files N] [--belljar PROGRAM] [--json FILE]
// [--svg FILE] [--markdown FILE]
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "bench/report.h"
#include "bench/rows.h"

namespace {

using namespace belljar::bench;

struct Options {
  Setting setting;
  std::string only, json, svg, markdown, command = "belljar bench";
};

struct Group {
  const char* name;
  void (*run)(const Setting&, Report&);
};
constexpr Group kGroups[] = {
    {"process", bench_process}, {"library", bench_library}, {"session", bench_session},    {"end", bench_end},
    {"egress", bench_egress},   {"guard", bench_guard},     {"work", bench_work},          {"txn", bench_txn},
    {"files", bench_files},     {"trees", bench_trees},     {"container", bench_container}};

std::string usage() {
  std::string names;
  for (const Group& group : kGroups) names += (names.empty() ? "" : "|") + std::string(group.name);
  return "belljar bench [--runs N] [--only " + names +
         "] [--sandboxes N] [--execs N] [--files N] [--requests N] [--belljar PROGRAM] [--json FILE] [--svg FILE] [--markdown "
         "FILE]";
}

int refuse(const std::string& wrong) {
  std::fprintf(stderr, "belljar: unknown or incomplete option `%s`\n  next:   %s\n", wrong.c_str(), usage().c_str());
  return 125;
}

// The program beside this one.
std::string sibling() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path - 1);
  if (size <= 0) return "belljar";
  return (std::filesystem::path(std::string(path, static_cast<std::size_t>(size))).parent_path() / "belljar").string();
}

std::string read_file(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return true;
  std::ofstream file(path);
  file << text;
  file.close();
  if (file.good()) return true;
  std::fprintf(stderr, "belljar: cannot write `%s`\n", path.c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--hold") return hold_idle(argv[2], argv[3], std::atoi(argv[4]));
  if (argc == 5 && std::string(argv[1]) == "--files-inside") return files_inside(argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  if (argc == 4 && std::string(argv[1]) == "--egress-inside") return egress_inside(argv[2], std::atoi(argv[3]));
  Options options;
  options.setting.belljar = sibling();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h") {
      std::printf("Measures this machine, beside the peers installed; see bench/README.md.\n%s\n", usage().c_str());
      return 0;
    }
    if (i + 1 == argc) return refuse(word);
    const std::string value = argv[i + 1];
    if (word == "--runs") options.setting.runs = std::atoi(value.c_str());
    else if (word == "--sandboxes") options.setting.sandboxes = std::atoi(value.c_str());
    else if (word == "--execs") options.setting.execs = std::atoi(value.c_str());
    else if (word == "--files") options.setting.files = std::atoi(value.c_str());
    else if (word == "--requests") options.setting.requests = std::atoi(value.c_str());
    else if (word == "--only") options.only = value;
    else if (word == "--belljar") options.setting.belljar = value;
    else if (word == "--json") options.json = value;
    else if (word == "--svg") options.svg = value;
    else if (word == "--markdown") options.markdown = value;
    else return refuse(word);
    if (word == "--runs" || word == "--sandboxes" || word == "--execs" || word == "--files" || word == "--only" ||
        word == "--svg" || word == "--markdown")
      options.command += " " + word + " " + value;
    ++i;
  }
  if (options.setting.runs < 1) return refuse("--runs");
  const auto wanted = [&](const Group& group) { return options.only.empty() || options.only == group.name; };
  if (std::ranges::none_of(kGroups, wanted)) return refuse("--only " + options.only);
  char directory[] = "/var/tmp/belljar-bench-XXXXXX";
  if (::mkdtemp(directory) == nullptr) return refuse("/var/tmp is not writable");
  options.setting.directory = directory;

  Report report;
  for (const Group& group : kGroups) {
    if (wanted(group)) group.run(options.setting, report);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);

  std::fputs(to_table(report).c_str(), stdout);
  const bool written = write_file(options.json, to_json(report)) && write_file(options.svg, to_svg(report)) &&
                       write_file(options.markdown, to_markdown(read_file(options.markdown), report, options.command));
  return written ? 0 : 125;
}
