// Commands with what the checks say of them, and a twin of each that they let pass.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "guard/judge.h"
#include "guard/rules.h"

namespace belljar::guard {

// What no check speaks about is allowed here: what is left is what the checks say. "forbid remove-root", "allow".
inline std::string judged(std::string_view text) {
  Judge judge(*parse_rules("unmatched = \"allow\"\nredirects = \"allow\"\n", "r.toml", Trust::kUser));
  const Verdict verdict = judge.judge(text);
  std::string result(to_string(verdict.decision));
  if (verdict.decision == Decision::kAllow) return result;
  for (const CommandVerdict& command : verdict.commands) {
    if (command.decision == verdict.decision && !command.findings.empty()) return result + " " + command.findings[0].rule;
  }
  return result + " unread";
}

struct Row {
  const char *text, *expected, *twin;
};

inline void expect_rows(std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    EXPECT_EQ(judged(row.text), row.expected) << row.text;
    EXPECT_EQ(judged(row.twin), "allow") << row.twin;
  }
}

}  // namespace belljar::guard
