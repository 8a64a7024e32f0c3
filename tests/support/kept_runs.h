// For tests of what a run was refused: a workspace, a home and kept runs of the test's own, and the two programs at work in them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

class KeptRuns : public testing::Test {
 protected:
  void SetUp() override;  // skips where there are no user namespaces or no python3
  RunOptions options() const;
  // belljar run FLAGS -- python3 ARGS
  Outcome python(std::vector<std::string> flags, const std::vector<std::string>& args) const;
  Outcome explain(std::vector<std::string> args = {}) const;
  // A listening socket in the workspace: of the host, nobody inside made it.
  UniqueFd serve(const std::string& name) const;
  std::string kept() const { return base_ / "home/.local/state/belljar"; }

  TempDir base_;  // ws, home
};

}  // namespace belljar::test
