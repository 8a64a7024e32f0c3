#include "cli/named_hosts.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/paths.h"
#include "policy/host.h"

namespace belljar::cli {
namespace {

using Words = std::vector<std::string>;

enum class Where : std::uint8_t {
  kFirst,   // the first operand, `USER@` before it or not
  kDotted,  // any operand with a dot; the way on a server may follow
  kLookUp,  // the second, behind the name of a database of hosts
  kCopy,    // operands of the form [USER@]HOST:PATH
  kGit,     // any word USER@HOST:PATH: HOST:PATH may be a refspec, or an option's value
};

struct Client {
  std::string_view name;
  Where where;
  std::string_view valued;  // letters of options that take a value
  bool by_tcp = true;
};

constexpr Client kClients[] = {
    {"ssh", Where::kFirst, "BbcDEeFIiJLlmOoPpQRSWw"},
    {"sftp", Where::kFirst, "BbcDFiJloPRSsX"},
    {"telnet", Where::kFirst, "belnSX"},
    {"nc", Where::kFirst, "eGgIiMmOPpqsTVWwXx"},
    {"ncat", Where::kFirst, "cegGimopsTwx"},
    {"netcat", Where::kFirst, "eGgIiMmOPpqsTVWwXx"},
    {"host", Where::kFirst, "cmNRtW"},
    {"nslookup", Where::kFirst, ""},
    {"ping", Where::kFirst, "cFIilMmpQSsTtWw", false},
    {"ping6", Where::kFirst, "cFIilMmpQSsTtWw", false},
    {"dig", Where::kDotted, "bcfkmpqtxy"},
    {"curl", Where::kDotted, "AbcCdDeEFHhKmoPQrtTuUwxXyYzZ"},
    {"wget", Where::kDotted, "aABDeiIlOoPQRTtUwX"},
    {"getent", Where::kLookUp, "is"},
    {"scp", Where::kCopy, "cDFiJloPSX"},
    {"rsync", Where::kCopy, "BefMT"},
    {"git", Where::kGit, ""},
};

// Behind these stands another command.
constexpr std::string_view kWrappers[] = {"command", "env", "exec", "nice", "nohup", "time", "timeout"};
constexpr std::string_view kDatabases[] = {"hosts", "ahosts", "ahostsv4", "ahostsv6"};

bool among(const auto& list, std::string_view word) { return std::ranges::find(list, word) != std::end(list); }

// Simple commands of shell text, by blanks, quotes and operators alone. What the shell would expand stays, and is no host then.
std::vector<Words> simple_commands(std::string_view text) {
  std::vector<Words> commands(1);
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) commands.back().push_back(std::exchange(word, {}));
  };
  char quote = 0;
  for (const char c : text) {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? '\0' : c;
    } else if (quote == 0 && std::string_view(";|&()`\n").find(c) != std::string_view::npos) {
      end_word();
      commands.emplace_back();
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      end_word();
    } else {
      word += c;
    }
  }
  end_word();
  return commands;
}

// Without assignments, and without the programs that run another one, their options and numbers.
Words::const_iterator program_of(const Words& words) {
  bool wrapped = false;
  for (auto word = words.begin(); word != words.end(); ++word) {
    const bool option = wrapped && word->find_first_of("-0123456789") == 0;
    if (among(kWrappers, file_name(*word))) wrapped = true;
    else if (!option && word->find('=') == std::string::npos) return word;
  }
  return words.end();
}

// The words that are no options and no values of options. What follows a long option may be its value.
std::vector<std::string_view> operands_of(Words::const_iterator word, Words::const_iterator end, std::string_view valued) {
  std::vector<std::string_view> operands;
  for (; word != end; ++word) {
    const std::string_view text = *word;
    if (text.size() < 2 || !text.starts_with('-')) {
      operands.push_back(text);
    } else if (text.starts_with("--")) {
      if (text.size() > 2 && text.find('=') == std::string_view::npos && word + 1 != end) ++word;
    } else if (const std::size_t letter = text.find_first_of(valued, 1); letter == text.size() - 1 && word + 1 != end) {
      ++word;
    }
  }
  return operands;
}

class HostCollector {
 public:
  // `place`: behind a user, if there is one.
  void add(std::string_view place, bool by_tcp) {
    const auto host = policy::parse_host(place.substr(place.rfind('@') + 1));
    if (!host || host->ip || policy::is_localhost(*host)) return;
    const std::string name = policy::to_string(*host);
    if (std::ranges::find(hosts_, name, &NamedHost::name) == hosts_.end()) hosts_.push_back({name, by_tcp});
  }

  void add_urls(std::string_view text) {
    constexpr std::string_view kScheme = "://";
    for (std::size_t at = text.find(kScheme); at != std::string_view::npos; at = text.find(kScheme, at + kScheme.size())) {
      const std::string url = "x" + std::string(text.substr(at, text.find_first_of(" \t\n'\"|&;<>()`", at) - at));
      const std::string_view place = policy::place_in_url(url);
      add(place.substr(0, place.find_first_of(":/?#")), true);
    }
  }

  void add_command(const Words& words) {
    const auto program = program_of(words);
    if (program == words.end()) return;
    const Client* client = std::ranges::find(kClients, file_name(*program), &Client::name);
    if (client == std::end(kClients)) return;
    const std::vector<std::string_view> operands = operands_of(program + 1, words.end(), client->valued);
    switch (client->where) {
      case Where::kFirst:
        if (!operands.empty()) add(client->name == "sftp" ? before_path(operands[0]) : operands[0], client->by_tcp);
        return;
      case Where::kLookUp:
        if (operands.size() > 1 && among(kDatabases, operands[0])) add(operands[1], true);
        return;
      case Where::kDotted:
      case Where::kCopy:
        for (const std::string_view operand : operands) add_remote(client->where, operand);
        return;
      case Where::kGit:
        for (auto word = program + 1; word != words.end(); ++word) {
          if (!word->starts_with('-')) add_remote(client->where, *word);
        }
        return;
    }
  }

  std::vector<NamedHost> take() { return std::move(hosts_); }

 private:
  static std::string_view before_path(std::string_view operand) { return operand.substr(0, operand.find_first_of(":/?#")); }

  void add_remote(Where where, std::string_view operand) {
    const std::string_view place = before_path(operand);
    const bool remote = place.size() < operand.size() && operand[place.size()] == ':';
    const bool user = place.find('@') != std::string_view::npos && !place.starts_with('@');
    if (where == Where::kDotted ? place.find('.') != std::string_view::npos : remote && (user || where == Where::kCopy))
      add(place, true);
  }

  std::vector<NamedHost> hosts_;
};

}  // namespace

std::vector<NamedHost> named_hosts(const std::vector<std::string>& words) {
  HostCollector hosts;
  hosts.add_command(words);
  for (const std::string& word : words) {
    hosts.add_urls(word);
    if (word.find_first_of(" \t\n") == std::string::npos) continue;
    for (const Words& command : simple_commands(word)) hosts.add_command(command);
  }
  return hosts.take();
}

}  // namespace belljar::cli
