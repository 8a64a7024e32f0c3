// The report of a `run` whose command line was refused: an earlier report must not stand for it.
//
// A script that reads the file after a failed run would take yesterday's result for today's. So even when the
// words are wrong, as much of them is parsed as it takes to know --report and --json, and both get a failed
// start. For the same reason an option with `=` and nothing behind it is refused before the parsing: CLI11
// would take the next word for its value, and that word may be an option which protects. To find --report all
// the same, such a word is replaced by a flag that has no value and does nothing here.
#include "cli/refused_run.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/unique_fd.h"
#include "cli/command_line.h"
#include "cli/complete.h"
#include "cli/errors.h"
#include "cli/output_file.h"
#include "runtime/json.h"
#include "runtime/run.h"

namespace belljar::cli {
namespace {

bool is_empty_option(std::string_view word) { return word.starts_with("--") && word.find('=') == word.size() - 1; }

}  // namespace

std::optional<Error> find_empty_option(std::span<const char* const> words) {
  for (const std::string_view word : words) {
    if (word == "--" || word == kCompleteWord) return {};
    if (is_empty_option(word))
      return Error(Code::kInvalidArgument, format("{} has no value", belljar::quoted(word)))
          .reason("nothing stands behind its `=`")
          .next("give it a value, or leave the option out");
  }
  return {};
}

void report_refusal(const OptionParser& app, const Error& refused) {
  const OptionParser run = app.subcommand("run");
  const bool json = run.option("--json").times_given() > 0;
  const std::vector<std::string> reports = run.option("--report").values();
  const std::string result = runtime::to_json(runtime::failed_start(refused), runtime::JsonStreams::kInclude);
  const auto deliver = [&result](int fd, std::string_view what) {
    if (const auto wrote = write_line(fd, result, what); !wrote) print_error(wrote.error());
  };
  const UniqueFd report = create_report_of_refusal(reports.empty() ? "" : reports.back(), refused);
  if (report.valid()) deliver(report.get(), "the report");
  if (json) deliver(STDOUT_FILENO, "the result to stdout");
}

int refuse_empty_option(const CommandLine& app, std::vector<std::string> words, const Error& refused) {
  print_error(refused);
  // Not taken away: what stands behind it would become the value of what stands before it, and the report a file of any name.
  std::ranges::replace_if(words, is_empty_option, "--verbose");
  app.subcommand("run").callback([] {});  // parsed for its options alone
  (void)app.parse(std::move(words));      // what is wrong besides is told when this is mended
  report_refusal(app, refused);
  return refused.exit_code();
}

}  // namespace belljar::cli
