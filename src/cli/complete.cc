// What fits where Tab was pressed: the words before the cursor are walked as the parser would, without
// parsing them.
//
// The shell's script passes the words on and prints what comes back, so the rules live here and not in each
// shell's language. The position is either behind an option that waits for its value, or at an argument, or
// behind `--`, where another program's words begin. Values are completed by what help calls them: lower-case
// words of `none|proxy|host` are values themselves, upper-case words stand for something that is looked for
// (a file, a profile, a running sandbox).
#include "cli/complete.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/format.h"
#include "cli/help.h"
#include "policy/profiles.h"
#include "policy/schema.h"

namespace belljar::cli {
namespace {

class CompletionWords {
 public:
  // What comes before a value in the same word, and what the value begins with.
  CompletionWords(std::string before, std::string_view begun) : before_(std::move(before)), begun_(begun) {}
  void offer(std::string_view word, std::string_view text) {
    if (word.starts_with(begun_)) text_ += format("{}{}\t{}\n", before_, word, first_sentence(text.substr(0, text.find(';'))));
  }
  void leave_to_shell(std::string_view what) { text_ += format(":{}\n", what); }
  std::string take() { return std::move(text_); }

 private:
  std::string before_, text_;
  std::string_view begun_;
};

const OptionInfo* find_option(const CommandInfo& command, std::string_view name) {
  for (const OptionInfo& option : command.options) {
    if (!option.argument && std::ranges::find(option.names, name) != option.names.end()) return &option;
  }
  return nullptr;
}

void offer_profiles(CompletionWords& answer) {
  for (const policy::EmbeddedProfile& profile : policy::embedded_profiles()) answer.offer(profile.name, "");
}

// By what help calls the value: "none|proxy|host" are words, "PATH" and "MODE|PROFILE|FILE" stand for something.
void offer_values(CompletionWords& answer, std::string_view value, const Offers& offers) {
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t end = std::min(value.find('|', at), value.size());
    const std::string_view word = value.substr(at, end - at);
    if (const auto known = offers.find(word); known != offers.end()) {
      for (const FittingWord& fitting : known->second()) answer.offer(fitting.word, fitting.text);
    }
    if (word == "DIR") answer.leave_to_shell("directories");
    else if (word == "MODE") offer_values(answer, policy::find_key("mode")->values, offers);
    else if (word == "PROFILE") offer_profiles(answer);
    else if (word == "FILE" || word == "PATH") answer.leave_to_shell("files");
    else if (word.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos) answer.offer(word, "");
    at = end + 1;
  }
}

bool runs_program(const CommandInfo& command) { return usage_of(command).find("-- PROGRAM") != std::string::npos; }

// Where the words have brought us: behind an option that waits for its value, or at an argument.
struct Cursor {
  const OptionInfo* waits = nullptr;
  std::size_t arguments = 0;
  bool program = false;
};

Cursor reach(const CommandInfo& command, std::span<const std::string> words) {
  Cursor at;
  for (const std::string& word : words) {
    if (at.waits != nullptr) {
      at.waits = nullptr;
    } else if (word == "--") {
      at.program = runs_program(command);
      return at;
    } else if (word.starts_with('-')) {
      const OptionInfo* const option = find_option(command, word);  // `--net=proxy` has its value
      if (option != nullptr && !option->value.empty()) at.waits = option;
    } else {
      ++at.arguments;
    }
  }
  return at;
}

void offer_argument(CompletionWords& answer, const CommandInfo& command, std::size_t number, const Offers& offers) {
  for (const OptionInfo& option : command.options) {
    if (!option.argument) continue;
    if (number == 0 || option.repeatable) {
      const std::string& name = option.names.front();
      // What an argument is called may say more than the kind of its value.
      const bool named = name == "FILE" || offers.contains(name);
      offer_values(answer, name == "paths" ? "FILE" : named ? name : option.value, offers);
      return;
    }
    --number;
  }
}

}  // namespace

std::string completions(const CommandInfo& command, std::span<const std::string> words, const Offers& offers) {
  const std::string current = words.empty() ? "" : words.back();
  const Cursor at = reach(command, words.empty() ? words : words.first(words.size() - 1));
  CompletionWords plain("", current);
  if (at.program) {
    plain.leave_to_shell("program");
  } else if (at.waits != nullptr) {
    offer_values(plain, at.waits->value, offers);
  } else if (const std::size_t equals = current.find('='); current.starts_with("--") && equals != std::string::npos) {
    const OptionInfo* const option = find_option(command, current.substr(0, equals));
    CompletionWords behind(current.substr(0, equals + 1), std::string_view(current).substr(equals + 1));
    if (option != nullptr) offer_values(behind, option->value, offers);
    return behind.take();
  } else if (current.starts_with('-')) {
    for (const OptionInfo& option : command.options) {
      if (option.argument) continue;
      for (const std::string& name : option.names) plain.offer(name, option.text);
    }
    plain.offer("--help", "What the options are");
    if (runs_program(command)) plain.offer("--", "Behind it stands the program");
  } else {
    if (at.arguments == 0) {
      for (const CommandInfo& sub : command.commands) plain.offer(sub.last_word(), sub.text);
    }
    offer_argument(plain, command, at.arguments, offers);
  }
  return plain.take();
}

}  // namespace belljar::cli
