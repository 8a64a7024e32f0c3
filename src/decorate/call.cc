#include "decorate/call.h"

namespace belljar::decorate {

std::string text_of(const Command& command) {
  const auto& argv = command.argv;
  if (argv.size() == 3 && (argv[1] == "-c" || argv[1] == "-lc")) return argv[2];
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string text_of(const NetworkRules& rules) {
  std::string text = text_of(rules.allowed_domains, "allowed ");
  for (const std::string& part : {text_of(rules.denied_domains, "denied "), text_of(rules.allowed_requests, "requests ")}) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  }
  return text.empty() ? "no host" : text;
}

std::string text_of(const std::vector<std::string>& hosts, std::string_view title) {
  std::string text;
  for (const std::string& host : hosts) text += (text.empty() ? std::string(title) : ", ") + host;
  return text;
}

Error callback_threw() { return Error(Code::kAborted, "the call did not return").reason("callback threw"); }

}  // namespace belljar::decorate
