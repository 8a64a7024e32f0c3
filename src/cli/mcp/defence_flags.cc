#include "cli/mcp/defence_flags.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "belljar/content_policy.h"
#include "belljar/error.h"
#include "belljar/guardian.h"
#include "belljar/result.h"
#include "belljar/state_dir.h"
#include "belljar/tools.h"
#include "belljar/turn.h"
#include "belljar/units.h"
#include "cli/command_line.h"
#include "cli/load.h"
#include "mcp/defence.h"
#include "mcp/task_file.h"

namespace belljar::cli {
namespace {

Error cannot_be(std::string_view option, std::string_view word, std::string_view words) {
  return Error(Code::kInvalidArgument, format("{} cannot be {}", option, belljar::quoted(word))).next(format("one of {}", words));
}

Result<mcp::DefenceLevel> level_of(const std::string& word, ToolTexts texts) {
  // The documents' texts are to the letter: no delimiters around them.
  if (word.empty()) return texts == ToolTexts::kBelljar ? mcp::DefenceLevel::kOn : mcp::DefenceLevel::kJudge;
  if (word == "on") return mcp::DefenceLevel::kOn;
  if (word == "judge") return mcp::DefenceLevel::kJudge;
  if (word == "off") return mcp::DefenceLevel::kOff;
  return cannot_be("--defence", word, "on, judge, off");
}

// What says what the user wants.
Result<void> check_words(const DefenceFlags& flags, bool off) {
  const char* const option = !flags.task.empty()        ? "--task"
                             : !flags.task_file.empty() ? "--task-file"
                             : flags.task_prompt        ? "--task-prompt"
                                                        : nullptr;
  if (off && option != nullptr)
    return Error(Code::kInvalidArgument, format("{} does nothing with --defence off", option)).next("leave --defence out");
  if (!flags.task.empty() && !flags.task_file.empty())
    return Error(Code::kInvalidArgument, "--task and --task-file say two things").next("leave one out");
  BELLJAR_TRY(mcp::TaskFile(flags.task_file).changed());
  return {};
}

}  // namespace

void add_defence_options(const OptionParser& command, DefenceFlags& flags) {
  command
      .add_option(
          "--defence", flags.level,
          "Against instructions in what tools bring in. on (the default): results stand between delimiters, in the place of what "
          "reads like a planted instruction stands a note of it, and calls are judged by where their strings came from: blocked, "
          "or put to a "
          "person through the client or `belljar review`. judge: only the calls (the default with --texts). off")
      .type_name("LEVEL");
  command
      .add_option("--content", flags.content,
                  "What a model sees of content, by source (TOML: [workspace], [network], [tool] with action, suspicious, max; and "
                  "reveal: who lets it see what was withheld)")
      .type_name("FILE");
  command
      .add_option(
          "--task", flags.task,
          "What the user wants done, in the user's words, for a client that does not send them (`_meta` belljar/user): calls are "
          "then judged by what was asked for, and fewer of them are asked about")
      .not_empty()
      .type_name("TEXT");
  command
      .add_option("--task-file", flags.task_file,
                  "The same from a file, read again when it changes: a hook of the client writes the user's newest prompt there. "
                  "Nowhere that commands write")
      .not_empty()
      .type_name("FILE");
  command.add_flag("--task-prompt", flags.task_prompt,
                   "Offer a prompt `task` whose argument is the user's words. Only for a client in which no model gets prompts");
  command
      .add_option("--review-wait", flags.review_wait,
                  "How long a call waits for `belljar review answer` where the client cannot ask (45s; with --texts not at all); "
                  "then it is refused, and the same call finds an answer given within ten minutes")
      .not_empty()
      .type_name("TIME");
  add_guardian_options(command, flags.guardian);
}

Result<mcp::DefenceOptions> defence_of(const DefenceFlags& flags, ToolTexts texts) {
  mcp::DefenceOptions options{.level = BELLJAR_TRY(level_of(flags.level, texts)), .task = flags.task};
  // Loops written for the documents' tools give a call half a minute, and show nobody that one waits.
  const std::string usual = texts == ToolTexts::kBelljar ? "45s" : "0s";
  options.review_wait = BELLJAR_TRY(time_of("--review-wait", flags.review_wait.empty() ? usual : flags.review_wait));
  options.state_dir = default_state_dir();
  if (!flags.content.empty()) {
    const std::string text = BELLJAR_TRY(read_text_file(flags.content, "the content policy"));
    options.content = BELLJAR_TRY(parse_content_policy(text, flags.content));
  }
  if (auto gate = ContentGate::create(options.content); !gate) return std::move(gate).error();
  const bool off = options.level == mcp::DefenceLevel::kOff;
  BELLJAR_CHECK(check_words(flags, off));
  if (off && (!flags.content.empty() || !flags.guardian.url.empty()))
    return Error(Code::kInvalidArgument, "--content and --guardian-url do nothing with --defence off").next("leave --defence out");
  if (options.level == mcp::DefenceLevel::kJudge && !flags.content.empty())
    return Error(Code::kInvalidArgument, "--content needs --defence on").reason("with judge, results are shown as they are");
  std::optional<GuardianOptions> guardian = BELLJAR_TRY(guardian_of(flags.guardian));
  if (guardian) {
    std::shared_ptr<Guardian> asked = BELLJAR_TRY(http_guardian(*std::move(guardian)));
    options.guardian = [asked = std::move(asked)](const GuardianQuestion& question) { return guarded(*asked, question); };
  }
  return options;
}

}  // namespace belljar::cli
