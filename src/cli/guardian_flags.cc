#include "cli/guardian_flags.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/turn.h"
#include "belljar/units.h"
#include "cli/load.h"

namespace belljar::cli {
namespace {

Error cannot_be(std::string_view option, std::string_view word, std::string_view words) {
  return Error(Code::kInvalidArgument, format("{} cannot be {}", option, belljar::quoted(word))).next(format("one of {}", words));
}

// From a file, or from a variable that nothing started later finds.
Result<std::string> key_of(const GuardianFlags& flags) {
  std::string key = variable(kGuardianKey);
  if (!flags.key_file.empty()) key = BELLJAR_TRY(read_text_file(flags.key_file, "the guardian's key"));
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  return key;
}

}  // namespace

void add_guardian_options(CLI::App& command, GuardianFlags& flags) {
  command
      .add_option("--guardian-url", flags.url,
                  "A second model that looks at each command and change before it is done; it can only make a judgement stricter. "
                  "The key is read from BELLJAR_GUARDIAN_KEY")
      ->type_name("URL");
  command.add_option("--guardian-model", flags.model, "Its name")->type_name("NAME");
  command.add_option("--guardian-wire", flags.wire, "What it speaks: openai or anthropic")->type_name("WIRE");
  command.add_option("--guardian-key-file", flags.key_file, "Its key, instead of the variable")->type_name("FILE");
  command.add_option("--guardian-failure", flags.failure, "When it gives no verdict: block or ask")->type_name("ADVICE");
  command.add_option("--guardian-timeout", flags.timeout, "How long it may take")->type_name("TIME");
}

Result<std::optional<GuardianOptions>> guardian_of(const GuardianFlags& flags) {
  if (flags.url.empty() && !flags.model.empty()) return Error(Code::kInvalidArgument, "--guardian-model needs --guardian-url");
  if (flags.url.empty()) return std::optional<GuardianOptions>();
  GuardianOptions options{.url = flags.url, .model = flags.model};
  if (flags.wire == "anthropic") options.wire = GuardianWire::kAnthropic;
  else if (flags.wire != "openai") return cannot_be("--guardian-wire", flags.wire, "openai, anthropic");
  if (flags.failure == "ask") options.on_failure = Advice::kAsk;
  else if (flags.failure != "block") return cannot_be("--guardian-failure", flags.failure, "block, ask");
  options.timeout = BELLJAR_TRY(time_of("--guardian-timeout", flags.timeout));
  options.key = BELLJAR_TRY(key_of(flags));
  return std::optional<GuardianOptions>(std::move(options));
}

Result<std::chrono::milliseconds> time_of(std::string_view option, const std::string& text) {
  auto time = parse_duration(text);
  if (time && time->count() >= 0) return time;
  return Error(Code::kInvalidArgument, format("{} cannot be {}", option, belljar::quoted(text))).next("a time, such as 30s");
}

}  // namespace belljar::cli
