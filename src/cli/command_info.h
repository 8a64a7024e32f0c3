// What a program's command line takes, as values: command_line.cc reads them off the parser itself, and from them come help, manual
// pages and completion. So these three never tell of an option that is not parsed, nor miss one that is.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::cli {

struct OptionInfo {
  std::vector<std::string> names;  // "-c", "--net"; of an argument its name without dashes
  std::string value;               // what its value is called: "none|proxy|host", "DIR"; empty: it takes none
  std::string text;
  std::string heading;  // "Policy"; empty: none of its own
  bool argument = false, required = false, repeatable = false;
};

// Words that fit where help says "ID", say, and what each is; looked for when somebody completes.
struct FittingWord {
  std::string word, text;
};
using Offers = std::map<std::string, std::function<std::vector<FittingWord>()>, std::less<>>;

struct CommandInfo {
  std::string name;  // all of it: "belljar policy show"
  std::string text;
  std::vector<OptionInfo> options;  // hidden ones are left out, and --help, which all have
  std::vector<CommandInfo> commands;

  std::string_view last_word() const { return std::string_view(name).substr(name.rfind(' ') + 1); }
};

}  // namespace belljar::cli
