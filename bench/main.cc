// belljar bench, and ./dev bench, which calls this program by itself.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "bench/compare.h"
#include "bench/report.h"
#include "bench/rows.h"
#include "cli/command_line.h"
#include "cli/complete.h"
#include "cli/errors.h"

namespace {

using namespace belljar;
using namespace belljar::bench;

struct Options {
  Setting setting;
  std::string only, compare, json, svg, markdown, command = "belljar bench";
};

struct Group {
  const char* name;
  void (*run)(const Setting&, Report&);
};
constexpr Group kGroups[] = {{"process", bench_process}, {"agents", bench_agents}, {"library", bench_library},
                             {"session", bench_session}, {"end", bench_end},       {"egress", bench_egress},
                             {"guard", bench_guard},     {"work", bench_work},     {"txn", bench_txn},
                             {"files", bench_files},     {"trees", bench_trees},   {"container", bench_container},
                             {"burst", bench_burst}};

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

// Those that decide what the numbers mean are repeated in the report.
void add_options(const cli::OptionParser& command, Options& options) {
  const auto number = [&](const char* name, int& to, int least, const char* help) {
    command
        .on_option(
            name,
            [&options, &to, name](const std::vector<std::string>& given) {
              to = std::atoi(given.back().c_str());
              options.command += format(" {} {}", name, to);
            },
            help)
        .last_counts()
        .between(least, 1'000'000'000);
  };
  const auto file = [&](const char* name, std::string& to, const char* help) {
    command.add_option(name, to, help).not_empty().type_name("FILE");
  };
  std::vector<std::string> groups;
  for (const Group& group : kGroups) groups.emplace_back(group.name);
  command
      .on_option(
          "--only",
          [&options](const std::vector<std::string>& given) {
            options.only = given.back();
            options.command += " --only " + options.only;
          },
          "This group alone")
      .last_counts()
      .one_of(groups);
  number("--runs", options.setting.runs, 1, "How often each is measured (200)");
  number("--sandboxes", options.setting.sandboxes, 0, "How many idle ones at one time (500)");
  number("--execs", options.setting.execs, 0, "Commands of the soak (20000)");
  number("--files", options.setting.files, 0, "Files of the largest workspace (100000)");
  number("--requests", options.setting.requests, 0, "Requests of the proxy's soak (0: none)");
  file("--belljar", options.setting.belljar, "Another belljar than the one beside this program");
  file("--compare", options.compare, "Tell what got slower since, beyond noise: FILE is what --json wrote then");
  file("--json", options.json, "The report as JSON. Groups that are not measured now stay as they are in FILE");
  file("--svg", options.svg, "The picture: starts, work on files, bursts, density; with --json, of all that its FILE then has");
  file("--markdown", options.markdown, "Put the tables into this file, between their marks");
}

// What was in the file of --json before, to be kept; a pipe or an empty file has nothing.
Result<Report> read_kept(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored) || std::filesystem::is_empty(path, ignored)) return Report();
  return read_report(path);
}

int measure(Options& options) {
  const auto wanted = [&](const Group& group) { return options.only.empty() || options.only == group.name; };
  // Before minutes are spent.
  const auto then = options.compare.empty() ? Result<Report>(Report()) : read_report(options.compare);
  if (!then) return cli::print_error(then.error());
  const auto kept = read_kept(options.json);
  if (!kept) return cli::print_error(kept.error());
  char directory[] = "/var/tmp/belljar-bench-XXXXXX";
  if (::mkdtemp(directory) == nullptr)
    return cli::print_error(Error(Code::kUnavailable, "cannot make a directory in `/var/tmp`").sys(errno, "mkdtemp"));
  options.setting.directory = directory;
  if (!options.svg.empty()) options.command += " --svg " + options.svg;
  if (!options.markdown.empty()) options.command += " --markdown " + options.markdown;

  Report report;
  for (const Group& group : kGroups) {
    if (wanted(group)) group.run(options.setting, report);
  }
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);

  report.where = circumstances();
  std::fputs(to_table(report).c_str(), stdout);
  if (!options.compare.empty())
    std::fputs(format("\ncompared with {}\n{}", quoted(options.compare), to_comparison(report, *then)).c_str(), stdout);
  const Report all = merged(*kept, report);
  const bool written = write_file(options.json, to_json(all)) && write_file(options.svg, to_svg(all)) &&
                       write_file(options.markdown, to_markdown(read_file(options.markdown), report, options.command));
  return written ? 0 : 125;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--hold") return hold_idle(argv[2], argv[3], std::atoi(argv[4]));
  if (argc == 5 && std::string(argv[1]) == "--files-inside") return files_inside(argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  if (argc == 4 && std::string(argv[1]) == "--egress-inside") return egress_inside(argv[2], std::atoi(argv[3]));
  Options options;
  options.setting.belljar = sibling();
  int exit_code = 0;
  const cli::CommandLine app("belljar-bench: measure this machine", "belljar");
  app.require_subcommand();
  const cli::OptionParser command =
      app.add_subcommand("bench", "Measure this machine, beside the peers that are installed. What and how: bench/README.md");
  add_options(command, options);
  command.callback([&] { exit_code = measure(options); });
  std::vector<std::string> words = cli::own_words(argc, argv);
  if (words.empty() || (words[0] != "bench" && words[0] != "man" && words[0] != cli::kCompleteWord))
    words.insert(words.begin(), "bench");
  return app.parse_and_run(std::move(words), exit_code);
}
