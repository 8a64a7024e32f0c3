// Variables as "NAME=VALUE" entries, and by name.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace belljar {

// This process's own. Not while another thread changes them: environ(7).
std::vector<std::string> own_environment();
// One of them; empty: not set. The same holds.
std::string own_variable(const char* name);
// One of `variables`; empty: not among them.
std::string variable_of(const std::map<std::string, std::string>& variables, const std::string& name);

// `given` as entries; empty: this process's own.
std::vector<std::string> entries_or_own(const std::map<std::string, std::string>& given);

// Of several with one name the first counts, as for getenv(3); what has no '=' is left out.
std::map<std::string, std::string> by_name(const std::vector<std::string>& entries);

}  // namespace belljar
