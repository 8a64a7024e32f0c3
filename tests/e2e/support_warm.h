// The fixture of tests of `belljar run --warm`: a state directory of its own, whose spares end with the test.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "e2e/support_run.h"
#include "support/eventually.h"
#include "support/leftovers.h"
#include "support/temp_dir.h"

namespace belljar::test {

class Warm : public Run {
 protected:
  void TearDown() override { end_spares(state_.path()); }

  RunOptions options() const {
    RunOptions options{.stdin_is = Input::kNull, .cwd = workspace_.path()};
    options.env = {{"XDG_STATE_HOME", state_.path()}, {"HOME", home_.path()}, {"BELLJAR_WARM", ""}};
    return options;
  }
  RunOptions with_secret() const {
    RunOptions with = options();
    with.env["BELLJAR_SECRET"] = "1";
    return with;
  }
  Outcome warm_command(const std::vector<std::string>& args) const {
    std::vector<std::string> words{"warm"};
    words.insert(words.end(), args.begin(), args.end());
    return belljar(words, options());
  }
  void stop() const { warm_command({"--stop"}); }

  // Those that wait, by what they say.
  std::set<std::string> spares() const {
    std::set<std::string> pids;
    const std::string text = warm_command({"--json"}).out;
    for (std::size_t at = 0; (at = text.find("\"pid\":", at)) != std::string::npos; at += 6)
      pids.insert(text.substr(at + 6, text.find(',', at) - at - 6));
    return pids;
  }

  // Of kinds for which no spare is made any more.
  std::size_t marks() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(state_ / "belljar/warm"))
      count += entry.path().string().ends_with(".cold") ? 1 : 0;
    return count;
  }

  // After a first run like it, which leaves spares.
  void make_ready(std::vector<std::string> args, const RunOptions& options) const {
    stop();
    args.insert(args.begin(), {"run", "--warm"});
    belljar(args, options);
    ASSERT_TRUE(eventually([&] { return spares().size() == 2; }));
  }

  struct Ran {
    Outcome outcome;
    bool warm = false;
  };
  // A spare that was used is not among those that wait any more.
  Ran again(std::vector<std::string> args, const RunOptions& options) const {
    const std::set<std::string> before = spares();
    args.insert(args.begin(), {"run", "--warm"});
    Ran ran{belljar(args, options)};
    const std::set<std::string> after = spares();
    for (const std::string& pid : before) ran.warm |= !after.contains(pid);
    return ran;
  }

  TempDir state_{"/var/tmp"};
  TempDir home_{"/var/tmp"};
};

}  // namespace belljar::test
