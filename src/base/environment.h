// Variables as "NAME=VALUE" entries, and by name.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace belljar {

// This process's own. Not while another thread changes them: environ(7).
std::vector<std::string> own_environment();

// `given` as entries; empty: this process's own.
std::vector<std::string> entries_or_own(const std::map<std::string, std::string>& given);

// Of several with one name the first counts, as for getenv(3); what has no '=' is left out.
std::map<std::string, std::string> by_name(const std::vector<std::string>& entries);

}  // namespace belljar
