// belljar scan FILE... | --evaluate DIR
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "belljar/error.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/guard/commands.h"
#include "cli/guard/evaluate.h"
#include "cli/load.h"
#include "detect/detect.h"
#include "policy/json.h"

namespace belljar::cli {
namespace {

constexpr std::size_t kMaxInput = 8U << 20;

struct ScanFlags {
  std::vector<std::string> files;
  std::string evaluate, talk;
  bool json = false, quiet = false, without_model = false;
};

std::string as_json(const std::string& name, const detect::Scan& scan) {
  std::string signs;
  for (const detect::Sign& sign : scan.signs) {
    signs += format(R"({}{{"name":{},"weight":{},"layer":{},"begin":{},"end":{},"excerpt":{}}})", signs.empty() ? "" : ",",
                    policy::json_text(sign.name), sign.weight, policy::json_text(sign.layer), sign.begin, sign.end,
                    policy::json_text(sign.excerpt));
  }
  return format(R"({{"file":{},"score":{},"suspicious":{},"signs":[{}]}})", policy::json_text(name), scan.score, scan.suspicious(),
                signs) +
         "\n";
}

std::string as_text(const std::string& name, const detect::Scan& scan) {
  std::string text = format("{}: score {}{}\n", escaped(name), scan.score, scan.suspicious() ? ", suspicious" : "");
  for (const detect::Sign& sign : scan.signs)
    text += format("  {:>3} {:<20} bytes {}-{} ({}): {}\n", sign.weight, sign.name, sign.begin, sign.end, sign.layer,
                   belljar::quoted(sign.excerpt));
  return text;
}

int scan_all(const ScanFlags& flags) {
  bool suspicious = false;
  for (const std::string& file : flags.files) {
    std::string text;
    if (file == "-") {
      auto read = read_stdin(kMaxInput);
      if (!read) return print_error(read.error());
      text = *std::move(read);
      if (text.size() > kMaxInput)
        return print_error(Error(Code::kInvalidArgument, "cannot scan stdin").reason("it is larger than 8 MiB"));
    } else {
      auto read = read_text_file(file, "the text");
      if (!read)
        return print_error(Error(read.error().code(), format("cannot scan {}", belljar::quoted(file)))
                               .reason(read.error().reason())
                               .sys(read.error().errnum(), read.error().call())
                               .next("name files, or `-` for stdin"));
      text = std::move(*read);
    }
    detect::Options options{.model = !flags.without_model};
    if (detect::is_for_agents(file)) options.reader = detect::Reader::kAgent;
    const detect::Scan found = detect::scan(text, options);
    suspicious = suspicious || found.suspicious();
    if (flags.quiet && !found.suspicious()) continue;
    if (const int failed = print_result(flags.json ? as_json(file, found) : as_text(file, found)); failed != 0) return failed;
  }
  return suspicious ? 1 : 0;
}

int scan_or_evaluate(const ScanFlags& flags) {
  if (flags.evaluate.empty() == flags.files.empty())
    return print_error(
        Error(Code::kInvalidArgument, "cannot scan")
            .reason(flags.files.empty() ? "neither a FILE nor --evaluate DIR is named" : "both a FILE and --evaluate DIR are named")
            .next("name files, `-` for stdin, or --evaluate DIR"));
  if (flags.evaluate.empty() && !flags.talk.empty())
    return print_error(Error(Code::kInvalidArgument, "cannot scan").reason("--talk is for --evaluate").next("leave it out"));
  if (flags.evaluate.empty()) return scan_all(flags);
  const auto table = evaluate(flags.evaluate, {.detect = {.model = !flags.without_model}, .talk = flags.talk, .json = flags.json});
  return table ? print_result(*table) : print_error(table.error());
}

}  // namespace

void add_scan(const OptionParser& app, int& exit_code) {
  const auto flags = std::make_shared<ScanFlags>();
  const OptionParser command =
      app.add_subcommand("scan",
                         "Look for instructions to a model in text that should be data. A heuristic: it misses "
                         "what is phrased as ordinary content. Exit code 1: suspicious");
  command.add_option("FILE", flags->files,
                     "Text; `-` reads stdin. Files that are written for agents (AGENTS.md, SKILL.md ...) may give orders");
  command
      .add_option("--evaluate", flags->evaluate,
                  "Measure instead, with 95 % intervals. *.jsonl of a directory: rates of what is flagged by family, net of clean "
                  "twins, also with sentences about attacks in front. An object a line: text, label (attack or another word), "
                  "family, twin, part. Every other file below it: an ordinary text, by first directory")
      .type_name("DIR");
  command.add_option("--talk", flags->talk, "Sentences that --evaluate puts in front of attacks, a line each, two at a time")
      .type_name("FILE");
  command.add_flag("--without-model", flags->without_model, "Rows of signs alone, without the linear model");
  command.add_flag("--json", flags->json, "One JSON object for each file, or for each row of the table");
  command.add_flag("--quiet", flags->quiet, "Only suspicious files");
  command.callback([flags, &exit_code] { exit_code = scan_or_evaluate(*flags); });
}

}  // namespace belljar::cli
