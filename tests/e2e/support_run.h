// The fixture of tests of `belljar run`: a workspace of its own, which belongs to an ordinary user where we are root.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "support/as_user.h"
#include "support/built.h"
#include "support/identity.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

// For what commands see and do not write: a directory in /tmp is not there inside.
inline std::string place_of_programs() {
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  return is_root() || home == nullptr ? "/var/lib" : home;
}

class Run : public testing::Test {
 protected:
  void SetUp() override {
    BELLJAR_NEEDS(user_namespaces());
    if (is_root()) workspace_.give_to(user_uid(), user_gid());
  }
  Outcome run_in(std::vector<std::string> args, RunOptions options = {.stdin_is = Input::kNull}) const {
    args.insert(args.begin(), "run");
    options.cwd = workspace_.path();
    return belljar(std::move(args), options);
  }
  Outcome shell(const std::string& text) const { return run_in({"-c", text}); }
  std::vector<std::string> command_line(std::vector<std::string> args) const {
    args.insert(args.begin(), {kBelljar, "run"});
    return args;
  }

  TempDir workspace_;
};

}  // namespace belljar::test
