// The backends as `belljar doctor` tells of them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "belljar/policy.h"

namespace belljar::cli {

struct BackendState {
  std::string name;
  Isolation isolation = Isolation::kNone;  // here, as far as is known without a start
  bool usable = false;
  std::string detail;  // why, or why not
  std::string next;    // what to do; empty where it is usable
};

// What keeps the two backends that are plans of our own from starting; empty: it starts.
struct OwnBackends {
  std::string native_refusal, landlock_refusal;
};

// Every backend, in the order of policy::backend_kinds(); containers have one row for each engine.
// Asks engines through belljar-full, for three seconds at most; services are not asked, their keys never shown.
std::vector<BackendState> find_backends(const OwnBackends& own);

std::string backends_text(const std::vector<BackendState>& backends);
nlohmann::ordered_json backends_json(const std::vector<BackendState>& backends);

}  // namespace belljar::cli
