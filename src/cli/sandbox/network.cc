// belljar network ID [--allow-domain RULE]... [--deny-domain RULE]... [--drop RULE]... [--reset]
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "belljar/result.h"
#include "cli/command_line.h"
#include "cli/errors.h"
#include "cli/sandbox/ask.h"
#include "cli/sandbox/commands.h"
#include "keeper/directory.h"
#include "keeper/wire.h"

namespace belljar::cli {
namespace {

constexpr std::chrono::milliseconds kRulesPatience{10'000};

struct NetworkFlags {
  std::string id;
  std::vector<std::string> allow, deny, requests, drop;
  bool reset = false, json = false;
};

std::string in_words(const keeper::Json& rules) {
  std::string text;
  const auto add = [&](const char* title, const keeper::Json& list) {
    for (const keeper::Json& rule : list) text += format("{:<9} {}\n", title, escaped(rule.get<std::string>()));
  };
  add("denied", rules.at("denied_domains"));
  add("allowed", rules.at("allowed_domains"));
  add("requests", rules.at("allowed_requests"));
  const auto mode = rules.at("mode").get<std::string>();
  if (mode == "host") return "the host's own network: nothing is filtered\n";
  if (mode == "none") return "no network\n";
  return text.empty() ? "no host may be reached\n" : text;
}

Result<int> network(const NetworkFlags& flags) {
  keeper::Json message = request("network");
  message["allowed_domains"] = flags.allow;
  message["denied_domains"] = flags.deny;
  message["allowed_requests"] = flags.requests;
  message["drop"] = flags.drop;
  message["reset"] = flags.reset;
  const keeper::Entry entry = BELLJAR_TRY(find_running(flags.id));
  const keeper::Json rules = BELLJAR_TRY(ask(entry, message, kRulesPatience));
  return print_result(flags.json ? rules.dump() + "\n" : in_words(rules));
}

int network_or_tell(const NetworkFlags& flags) {
  const auto done = network(flags);
  return done ? *done : print_error(done.error());
}

}  // namespace

void add_network(const OptionParser& command, const KeeperCommandWords& /*words*/, int& exit_code) {
  const auto flags = std::make_shared<NetworkFlags>();
  const auto rules = [&](const char* name, std::vector<std::string>& list, const char* help) {
    command.add_option(name, list, help).repeatable().type_name("RULE");
  };
  command.add_option("ID", flags->id, "Its id or name").required();
  rules("--allow-domain", flags->allow, "May be reached from now on (repeatable; as of `run`)");
  rules("--deny-domain", flags->deny,
        "May not, whatever rule allows it; what is connected to it is cut. Ports joined by --host-port stay");
  rules("--allow-request", flags->requests, "These requests may go there; where the sandbox was made with such rules");
  rules("--drop", flags->drop,
        "Takes a rule away, as `belljar network ID` shows it (`denied HOST` where it is allowed, too); what it had opened is cut");
  command.add_flag("--reset", flags->reset, "First back to what the sandbox was made with");
  command.add_flag("--json", flags->json, "One JSON object");
  command.callback([flags, &exit_code] { exit_code = network_or_tell(*flags); });
}

}  // namespace belljar::cli
