#include "base/environment.h"

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace belljar {

std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::string own_variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): said in the header
  return value == nullptr ? std::string() : std::string(value);
}

std::string variable_of(const std::map<std::string, std::string>& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? std::string() : found->second;
}

std::vector<std::string> entries_or_own(const std::map<std::string, std::string>& given) {
  if (given.empty()) return own_environment();
  std::vector<std::string> entries;
  for (const auto& [name, text] : given) entries.push_back(name + "=" + text);
  return entries;
}

std::map<std::string, std::string> by_name(const std::vector<std::string>& entries) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

}  // namespace belljar
