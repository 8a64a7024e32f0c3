#include "decorate/call.h"

namespace belljar::decorate {

std::string text_of(const Command& command) {
  const auto& argv = command.argv;
  if (argv.size() == 3 && (argv[1] == "-c" || argv[1] == "-lc")) return argv[2];
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace belljar::decorate
