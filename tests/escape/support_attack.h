// A sandbox under attack: a workspace, a directory beside it, a home, and a probe that tries one thing.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "support/leftovers.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace belljar::test {

// All three directories belong to an ordinary user and lie outside /tmp, which a sandbox has for itself.
class Attack : public testing::Test {
 protected:
  Attack();
  void SetUp() override;

  using Words = std::vector<std::string>;
  // What probe.c prints for the act: `ok` or the name of the errno.
  std::string inside(Words act, Words options = {}) const;
  // The twin: the same act by the same user, without a sandbox.
  std::string outside(Words act) const;
  // The twin of what only the privileged may do anywhere: by whoever runs the tests.
  std::string outside_as_ourselves(const Words& act) const;
  // The twin of what needs a privilege that anybody has in namespaces of their own: by whoever runs the tests, in a mount, network
  // and uts namespace (and as an ordinary user, a user namespace that makes it root there).
  std::string outside_in_namespaces(const Words& act) const;
  // belljar run OPTIONS -c TEXT, in the workspace.
  Outcome shell(const std::string& text, Words options = {}) const;
  Outcome run_in(Words arguments, RunOptions options = {}) const;
  // The words that start it, for Running.
  Words program(Words arguments) const;
  RunOptions in_workspace(RunOptions options = {}) const;
  // Makes a file or directory that belongs to the user. `path` is below the workspace, beside() or home().
  void plant(const std::string& path, const std::string& content = "planted") const;
  void plant_dir(const std::string& path) const;
  // After `plant` as root: everything to the user again.
  void hand_over() const;
  // A process of the same user, outside, which has become the user's.
  Running victim() const;

  std::string workspace(std::string_view name = {}) const { return below("ws", name); }
  std::string beside(std::string_view name = {}) const { return below("beside", name); }
  std::string home(std::string_view name = {}) const { return below("home", name); }
  std::string probe() const { return workspace("probe"); }

  // Options of every `belljar run` of this test, before its own.
  Words always_;

 private:
  std::string below(std::string_view part, std::string_view name) const;
  TempDir top_;
};

// A socket of the host that anybody may connect to, listening where it is a stream; `@` for an abstract name. Invalid: errno.
UniqueFd listen_unix(const std::string& name, int type = SOCK_STREAM);

}  // namespace belljar::test
