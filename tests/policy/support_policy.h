// Short ways to say layers in the tests of policy/.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/merge.h"
#include "policy/parse.h"

namespace belljar::policy {

inline MergeContext place() {
  return {
      .workspace = "/w", .home = "/home/u", .tmpdir = "", .cwd = "/w/sub", .runtime_dir = "", .config_dir = "", .state_dir = ""};
}

inline Layer layer(std::string_view name, std::string_view toml) {
  auto parsed = parse_toml(toml, std::string(name) + ".toml", name);
  EXPECT_TRUE(parsed) << parsed.error().line();
  if (!parsed) return {};
  parsed->narrow_only = name == "project";
  return *std::move(parsed);
}

inline Result<Effective> merged(const std::vector<Layer>& layers, const MergeContext& context = place()) {
  return merge(layers, context);
}

// The access of a path, in words.
inline std::string access_of(const Result<Effective>& effective, std::string_view path) {
  if (!effective) return "error: " + effective.error().line();
  const FsEntry* rule = find_rule(effective->complete, path);
  return rule == nullptr ? "no rule" : std::string(to_string(rule->access));
}

}  // namespace belljar::policy
