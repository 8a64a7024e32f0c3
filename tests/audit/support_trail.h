// Files of a trail, for tests that look at bytes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "belljar/audit.h"
#include "support/temp_dir.h"

namespace belljar::test {

inline void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  const auto read = read_audit(path, [&](std::string_view line) {
    lines.emplace_back(line);
    return true;
  });
  EXPECT_TRUE(read.has_value());
  return lines;
}

inline AuditVerification verified(const std::string& path, const std::optional<AuditHead>& head = {}) {
  auto found = verify_audit(path, head);
  EXPECT_TRUE(found.has_value()) << found.error().line();
  return found ? *found : AuditVerification{};
}

// Where the first problem is: "line 3", or "" when all is well.
inline std::string first_problem(const AuditVerification& found) {
  return found.problems.empty() ? "" : "line " + std::to_string(found.problems[0].line);
}

inline AuditTrail open_trail(const std::string& path, AuditOptions options = {.sync = AuditSync::kNever}) {
  auto trail = AuditTrail::open(path, std::move(options));
  if (!trail) ADD_FAILURE() << trail.error().line();
  return *std::move(trail);
}

}  // namespace belljar::test
