// A layer: the part of a policy that one source says, each value with the line it came from. Values; no system calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "belljar/policy.h"

namespace belljar::policy {

struct Key;  // schema.h

// What a key may hold. Enumerations travel as their text, already checked against the schema.
using Value = std::variant<bool, double, std::uint64_t, Bytes, std::chrono::milliseconds, std::string, std::vector<std::string>,
                           std::vector<PortPair>, std::map<std::string, std::string>, std::vector<FsEntry>, std::vector<Volume>>;

struct Setting {
  const Key* key = nullptr;
  Value value;
  Origin origin;
  std::vector<Origin> items;  // for lists of text: where each element stands; empty: all at `origin`
  bool operator==(const Setting&) const = default;
};

struct Layer {
  std::string name;               // "system", "user", "project", "flag", or a profile's name
  bool narrow_only = false;       // comes from inside the workspace: may only narrow
  std::vector<Setting> settings;  // in the order they were written
  bool operator==(const Layer&) const = default;
};

}  // namespace belljar::policy
