#include "cli/guardian_flags.h"

#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/turn.h"
#include "belljar/units.h"
#include "cli/command_line.h"
#include "cli/load.h"

namespace belljar::cli {
namespace {

constexpr const char* kGuardianKey = "BELLJAR_GUARDIAN_KEY";

Error cannot_be(std::string_view option, std::string_view word, std::string_view words) {
  return Error(Code::kInvalidArgument, format("{} cannot be {}", option, belljar::quoted(word))).next(format("one of {}", words));
}

// From a file, or from the variable.
Result<std::string> key_of(const GuardianFlags& flags, std::string key) {
  if (!flags.key_file.empty()) key = BELLJAR_TRY(read_text_file(flags.key_file, "the guardian's key"));
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  return key;
}

}  // namespace

void add_guardian_options(const OptionParser& command, GuardianFlags& flags) {
  command
      .add_option("--guardian-url", flags.url,
                  "A second model that looks at each command and change before it is done; it can only make a judgement stricter. "
                  "The key is read from BELLJAR_GUARDIAN_KEY")
      .type_name("URL");
  const auto text = [&](const char* name, std::string& to, const char* type, const char* help) {
    command.add_option(name, to, help).not_empty().type_name(type);
  };
  text("--guardian-model", flags.model, "NAME", "Its name");
  text("--guardian-wire", flags.wire, "WIRE", "What it speaks: openai (default) or anthropic");
  text("--guardian-key-file", flags.key_file, "FILE", "Its key, instead of the variable");
  text("--guardian-failure", flags.failure, "ADVICE", "When it gives no verdict: block (default) or ask");
  text("--guardian-timeout", flags.timeout, "TIME", "How long it may take (10s)");
}

Result<std::optional<GuardianOptions>> guardian_of(const GuardianFlags& flags) {
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const std::string&>>{{"--guardian-model", flags.model},
                                                                         {"--guardian-wire", flags.wire},
                                                                         {"--guardian-key-file", flags.key_file},
                                                                         {"--guardian-failure", flags.failure},
                                                                         {"--guardian-timeout", flags.timeout}}) {
    if (flags.url.empty() && !value.empty())
      return Error(Code::kInvalidArgument, format("{} needs --guardian-url", name)).next("add --guardian-url URL");
  }
  std::string variable = take_variable(kGuardianKey);
  if (flags.url.empty()) return std::optional<GuardianOptions>();
  GuardianOptions options{.url = flags.url, .model = flags.model};
  if (flags.wire == "anthropic") options.wire = GuardianWire::kAnthropic;
  else if (!flags.wire.empty() && flags.wire != "openai") return cannot_be("--guardian-wire", flags.wire, "openai, anthropic");
  if (flags.failure == "ask") options.on_failure = Advice::kAsk;
  else if (!flags.failure.empty() && flags.failure != "block") return cannot_be("--guardian-failure", flags.failure, "block, ask");
  options.timeout = BELLJAR_TRY(time_of("--guardian-timeout", flags.timeout.empty() ? "10s" : flags.timeout));
  options.key = BELLJAR_TRY(key_of(flags, std::move(variable)));
  return std::optional<GuardianOptions>(std::move(options));
}

Result<std::chrono::milliseconds> time_of(std::string_view option, const std::string& text) {
  auto time = parse_duration(text);
  if (time && time->count() >= 0) return time;
  return Error(Code::kInvalidArgument, format("{} cannot be {}", option, belljar::quoted(text))).next("a time, such as 30s");
}

}  // namespace belljar::cli
